package remote

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestKillMaking kills a process that makes files, again and again, at random moments. Each of the files is one that
// can be opened: none is empty, which would be a loss, and none is in the directory that is no file of a buffer.
func TestKillMaking(t *testing.T) {
	const child = "GOGCL_REMOTE_MAKER"
	named := func(i int) Spec {
		s := spec(1, 16)
		s.Buffer = fmt.Sprint(i)
		return s
	}
	if dir := os.Getenv(child); dir != "" {
		for i := range 10_000 {
			if _, err := Dir(dir).Open(named(i)); err != nil {
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
	if fd, err := unix.Open(t.TempDir(), unix.O_TMPFILE|unix.O_RDWR, 0o666); err != nil {
		t.Skip("the file system has no files without names: ", err)
	} else {
		unix.Close(fd)
	}
	r := rand.New(rand.NewPCG(4, 5))
	for n := range kills {
		dir := Dir(t.TempDir())
		cmd := exec.Command(os.Args[0], "-test.run=^TestKillMaking$")
		cmd.Env = append(os.Environ(), child+"="+string(dir))
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
		files, err := os.ReadDir(string(dir))
		if err != nil || len(files) < made+1 || len(files) > made+2 {
			t.Fatalf("kill %d: %d files, error %v, the child has made %d", n, len(files), err, made+1)
		}
		for i := range files {
			e := open(t, dir, named(i))
			holds(t, e, make([]byte, 64))
			closeIt(t, e)
		}
	}
}
