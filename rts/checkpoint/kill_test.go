package checkpoint

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gogcl.dev/tensor"
)

// killed is the model that is saved while its process is killed: enough that a Save has moments between its files.
func killed(t testing.TB, shards int) *model {
	return newModel(t, spec{"w", tensor.F32, tensor.Shape{100, 333}, shards},
		spec{"b", tensor.BF16, tensor.Shape{7}, min(shards, 2)},
		spec{"step", tensor.I64, nil, 1}, spec{"v", tensor.F64, tensor.Shape{9001}, shards})
}

// report is what the child says: the number of the state that it begins to save, or has saved.
type report struct{ Saved, State uint64 }

const killKeep = 2 // checkpoints that the child keeps

// TestKill kills a process that saves one state after the other, again and again, at random moments. Each time what is
// loaded, onto another number of shards, is whole, and is the last state that the process says it has saved, or the one
// that it was saving.
func TestKill(t *testing.T) {
	if os.Getenv("GOGCL_CHECKPOINT_CHILD") != "" {
		saveUntilKilled(t)
	}
	kills := 100
	if testing.Short() {
		kills = 15
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	last, saves, cut, left := uint64(0), 0, 0, 0
	for n := range kills {
		reports := runAndKill(t, dir, last, n, r)
		var doing uint64 // the state whose Save was cut short
		for _, rep := range reports {
			switch rep.Saved {
			case 0:
				doing = rep.State
			case 1:
				last, doing = rep.State, 0
				saves++
			}
		}
		if slices.ContainsFunc(names(t, dir), func(name string) bool { return strings.HasPrefix(name, ".") }) {
			left++
		}
		m := killed(t, n%5+1).fill(0)
		meta, err := Load(context.Background(), dir, m.tensors)
		if errors.Is(err, ErrNone) && last == 0 {
			continue
		}
		if err != nil {
			t.Fatalf("kill %d: %v; the child has saved %d and was saving %d", n, err, last, doing)
		}
		state, err := strconv.ParseUint(meta["state"], 10, 64)
		if err != nil || state == 0 || state != last && state != doing {
			t.Fatalf("kill %d: state %q, error %v; the child has saved %d and was saving %d",
				n, meta["state"], err, last, doing)
		}
		if doing != 0 && state != doing {
			cut++
		}
		m.wantEqual(t, killed(t, n%5+1).fill(int(state)))
		last = state
	}
	t.Logf("%d kills during %d Saves: %d cut one short, %d left directories to clean up", kills, saves, cut, left)
	if saves < kills/4 || cut == 0 || left == 0 {
		t.Error("this has shown nothing")
	}
	saveIt(t, dir, killed(t, 2), nil, Keep(1))
	if got := names(t, dir); len(got) != 4 {
		t.Errorf("%q, want one checkpoint of two shards", got)
	}
}

// runAndKill starts a child that saves the states after last, and kills it soon after one of its first reports.
func runAndKill(t *testing.T, dir string, last uint64, n int, r *rand.Rand) []report {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOGCL_CHECKPOINT_CHILD=%d %s", last, dir))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	goOn, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(pipe)
	after := 1 + r.IntN(5) // reports, so that it comes to something on a slow machine too
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
		reports = append(reports, rep)
		if len(reports) == 1 {
			if n == 0 { // another process saves
				err := Save(context.Background(), dir, nil, nil)
				wantError(t, err, filepath.Join(dir, lockName)+": the directory is in use")
			}
			goOn.Close()
		}
		if len(reports) == after {
			time.AfterFunc(time.Duration(r.IntN(10_000))*time.Microsecond, func() { cmd.Process.Kill() })
		}
	}
	cmd.Wait()
	if len(reports) == 0 || stderr.Len() > 0 {
		t.Fatalf("the child has reported %d times and said %q", len(reports), stderr.String())
	}
	return reports
}

// saveUntilKilled is the child. It reports on standard output, the first time when it has the lock, and then waits
// until its standard input ends.
func saveUntilKilled(t *testing.T) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	var last uint64
	var dir string
	_, err := fmt.Sscan(os.Getenv("GOGCL_CHECKPOINT_CHILD"), &last, &dir)
	fail(err)
	say := func(rep report) { fail(binary.Write(os.Stdout, binary.NativeEndian, rep)) }
	for state := last + 1; ; state++ {
		m := killed(t, int(state%4)+1).fill(int(state))
		read, first := m.tensors[0].Read, true
		m.tensors[0].Read = func(k int) (*tensor.Tensor, error) {
			if first {
				say(report{0, state})
				_, err := io.Copy(io.Discard, os.Stdin)
				fail(err)
				first = false
			}
			return read(k)
		}
		fail(Save(context.Background(), dir, m.tensors, map[string]string{"state": fmt.Sprint(state)}, Keep(killKeep)))
		say(report{1, state})
	}
}
