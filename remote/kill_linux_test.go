package remote

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestKillMaking kills a process that makes files, again and again, at random moments. Each of the files is one that
// can be opened: none is empty, which would be a loss. Made in the plain way, one may be left over that is nobody's.
func TestKillMaking(t *testing.T) {
	const child = "GOGCL_REMOTE_MAKER"
	named := func(i int) Spec {
		s := spec(1, 16)
		s.Buffer = fmt.Sprint(i)
		return s
	}
	making := func(name string) platform {
		if name == "plain" {
			return plain
		}
		return native
	}
	if place := os.Getenv(child); place != "" {
		name, dir, _ := strings.Cut(place, " ")
		for i := range 10_000 {
			if _, err := Dir(dir).open(named(i), making(name)); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println(i)
		}
		os.Exit(1)
	}
	kills := 60
	if testing.Short() {
		kills = 10
	}
	for _, name := range []string{"native", "plain"} {
		t.Run("storage="+name, func(t *testing.T) {
			fd, err := unix.Open(t.TempDir(), unix.O_TMPFILE|unix.O_RDWR, 0o666)
			if err != nil {
				t.Skip("the file system has no files without names: ", err)
			}
			unix.Close(fd)
			r := rand.New(rand.NewPCG(4, 5))
			for n := range kills {
				dir := Dir(t.TempDir())
				cmd := exec.Command(os.Args[0], "-test.run=^TestKillMaking$")
				cmd.Env = append(os.Environ(), child+"="+name+" "+string(dir))
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				lines := bufio.NewScanner(out)
				made := -1
				for lines.Scan() {
					if made < 0 {
						time.AfterFunc(time.Duration(r.IntN(6000))*time.Microsecond, func() { cmd.Process.Kill() })
					}
					if _, err := fmt.Sscan(lines.Text(), &made); err != nil {
						t.Fatalf("kill %d: the child says %q", n, lines.Text())
					}
				}
				cmd.Wait()
				if made < 0 {
					t.Fatalf("kill %d: the child has made nothing", n)
				}
				files, err := filepath.Glob(string(dir) + "/*.remote")
				others, _ := filepath.Glob(string(dir) + "/*.new")
				if err != nil || len(files) < made+1 || len(files) > made+2 || len(others) > 1 ||
					name == "native" && len(others) > 0 {
					t.Fatalf("kill %d: files %v and %v, error %v, the child has made %d", n, files, others, err, made+1)
				}
				for i := range files {
					e := openOn(t, dir, making(name), named(i))
					holds(t, e, make([]byte, 64))
					closeIt(t, e)
				}
			}
		})
	}
}
