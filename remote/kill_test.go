package remote

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	killBytes   = 256<<10 + 24
	killEntries = 8  // to begin with
	killMost    = 20 // to which they grow
)

// What the child says before and after each thing it does.
const (
	childStores uint32 = iota + 1
	childStored
	childGrows
	childGrown
)

type report struct {
	What, Entry uint32 // the number of entries when it grows
	Seq         uint64 // of the value
}

// numbered fills an entry with what no other entry or sequence number gives, in no word.
func numbered(dst []byte, entry int, seq uint64) {
	for i := 0; i < len(dst); i += 8 {
		binary.NativeEndian.PutUint64(dst[i:], seq<<32|uint64(entry)<<24|uint64(i/8))
	}
}

// TestKill kills a process that stores entries, again and again, at random moments. Each time every entry must hold
// the last value that the process says it has stored, or be the one that it was storing: then it holds that one, or
// is lost.
func TestKill(t *testing.T) {
	if os.Getenv("GOGCL_REMOTE_CHILD") != "" {
		storeUntilKilled()
	}
	kills := map[string]int{"native": 100, "plain": 25}
	if testing.Short() {
		kills = map[string]int{"native": 20, "plain": 5}
	}
	for name, p := range map[string]platform{"native": native, "plain": plain} {
		t.Run("storage="+name, func(t *testing.T) {
			dir := Dir(t.TempDir())
			entries := killEntries
			last := make([]uint64, killMost) // sequence numbers; 0 is never stored
			var lost []int
			stores, losses := 0, 0
			r := rand.New(rand.NewPCG(1, 2))
			// On a busy machine a child may be killed before its first store: then there are more.
			n := 0
			for ; n < kills[name] || stores < kills[name] && n < 20*kills[name]; n++ {
				reports := runAndKill(t, dir, name, entries, uint64(n+1), r)
				var doing report
				for _, rep := range reports {
					doing = rep
					switch rep.What {
					case childStored:
						stores++
						last[rep.Entry] = rep.Seq
						lost = slices.DeleteFunc(lost, func(i int) bool { return i == int(rep.Entry) })
					case childGrown:
						entries = int(rep.Entry)
					}
				}

				sp := spec(entries, killBytes/4)
				e, err := dir.open(sp, p)
				if err != nil && doing.What == childGrows {
					entries = int(doing.Entry)
					sp.Entries = entries
					e, err = dir.open(sp, p)
				}
				if err != nil {
					t.Fatalf("kill %d: %v", n, err)
				}
				found := e.Lost()
				buf, want := make([]byte, killBytes), make([]byte, killBytes)
				for i := range entries {
					err := e.Load(i, buf)
					if isLost := errors.Is(err, ErrLost); isLost != slices.Contains(found, i) {
						t.Fatalf("kill %d: entry %d: error %v, but opening found %v lost", n, i, err, found)
					}
					inStore := doing.What == childStores && int(doing.Entry) == i
					switch {
					case err != nil && errors.Is(err, ErrLost):
						if !inStore && !slices.Contains(lost, i) {
							t.Fatalf("kill %d: entry %d is lost, the child was last at %+v", n, i, doing)
						}
						continue
					case err != nil:
						t.Fatalf("kill %d: %v", n, err)
					case slices.Contains(lost, i) && !inStore:
						t.Fatalf("kill %d: entry %d was lost and is back", n, i)
					}
					seq := binary.NativeEndian.Uint64(buf) >> 32
					if seq != last[i] && !(inStore && seq == doing.Seq) {
						t.Fatalf("kill %d: entry %d holds value %d, want %d; the child was last at %+v",
							n, i, seq, last[i], doing)
					}
					if clear(want); seq != 0 {
						numbered(want, i, seq)
					}
					if !slices.Equal(buf, want) {
						t.Fatalf("kill %d: entry %d holds a mixture", n, i)
					}
					last[i] = seq
				}
				if fresh := slices.DeleteFunc(slices.Clone(found), func(i int) bool {
					return slices.Contains(lost, i)
				}); len(fresh) > 1 {
					t.Fatalf("kill %d: entries %v are lost, want at most one", n, fresh)
				} else if len(fresh) == 1 {
					losses++
				}
				lost = found
				closeIt(t, e)
			}
			t.Logf("%d kills during %d stores, %d of them lost an entry; %d entries in the end",
				n, stores, losses, entries)
			if stores < kills[name] {
				t.Errorf("only %d stores: this has shown nothing", stores)
			}
		})
	}
}

// runAndKill starts a child and kills it soon after its first report.
func runAndKill(t *testing.T, dir Dir, platform string, entries int, seed uint64, r *rand.Rand) []report {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOGCL_REMOTE_CHILD=%s %d %d %s", platform, entries, seed, dir))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(pipe)
	var reports []report
	for {
		var rep report
		err := binary.Read(in, binary.NativeEndian, &rep)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Error(err)
			break
		}
		if len(reports) == 0 {
			if seed == 1 { // another process has the file
				_, err := dir.Open(spec(entries, killBytes/4))
				wantError(t, err, fileOf(t, dir), "it is open already")
			}
			time.AfterFunc(time.Duration(r.IntN(8000))*time.Microsecond, func() { cmd.Process.Kill() })
		}
		reports = append(reports, rep)
	}
	cmd.Wait()
	if len(reports) == 0 || stderr.Len() > 0 {
		t.Fatalf("the child has reported %d times and said %q", len(reports), stderr.String())
	}
	return reports
}

// storeUntilKilled is the child. It reports on standard output.
func storeUntilKilled() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	var name, path string
	var entries int
	var seed uint64
	_, err := fmt.Sscan(os.Getenv("GOGCL_REMOTE_CHILD"), &name, &entries, &seed, &path)
	fail(err)
	p := native
	if name == "plain" {
		p = plain
	}
	e, err := Dir(path).open(spec(entries, killBytes/4), p)
	fail(err)
	say := func(what uint32, entry int, seq uint64) {
		fail(binary.Write(os.Stdout, binary.NativeEndian, report{what, uint32(entry), seq}))
	}
	r := rand.New(rand.NewPCG(seed, 3))
	buf := make([]byte, killBytes)
	for n := range uint64(1 << 20) {
		if entries < killMost && r.IntN(200) == 0 {
			say(childGrows, entries+1, 0)
			fail(e.Grow(entries + 1))
			entries++
			say(childGrown, entries, 0)
		}
		i, seq := r.IntN(entries), seed<<20|n+1
		numbered(buf, i, seq)
		say(childStores, i, seq)
		fail(e.Store(i, buf))
		say(childStored, i, seq)
	}
	os.Exit(1)
}
