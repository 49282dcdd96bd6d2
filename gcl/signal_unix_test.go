//go:build unix

package gcl_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/gcl"
)

// signalled is what a process that gets signals is told, in the environment variable signalledVariable.
type signalled struct {
	Does  string // a key of signalledDoes
	Rank  int    // of a job of two processes
	Where string // they meet
}

const signalledVariable = "GCL_TEST_SIGNALLED"

func init() { asReplica = append(asReplica, beSignalled) }

// signalledDoes are the programs that get signals. They say how far they are on standard output, and go on with each
// line of standard input.
var signalledDoes = map[string]func(signalled){
	"hang":        func(signalled) { hang(listens) },
	"closed":      func(signalled) { hang(listens); untilNoneListens(); say("closed"); proceed() },
	"just closed": func(signalled) { hang(listens); say("closed"); proceed() },
	"ignore": func(signalled) {
		signal.Ignore(syscall.SIGQUIT)
		hang(saysCount)
	},
	"handle": func(signalled) { countQuits(); hang(listens); untilNoneListens(); hang(saysCount) },
	"keep":   func(signalled) { countQuits(); hang(atOnce, gcl.WithDumpOnQuit(false)) },
	"user": func(signalled) {
		first, second := gcl.DumpOnSignal(), gcl.DumpOnSignal()
		say("none open")
		proceed()
		hang(atOnce, gcl.WithDumpOnQuit(false))
		first()
		first()
		say("one left")
		proceed()
		second()
		say(fmt.Sprintf("%d listen", listeners()))
	},
	"process": func(m signalled) {
		defer gcl.DumpOnSignal()()
		cfg := gcl.JoinConfig{Rank: m.Rank, Size: 2, Rendezvous: m.Where, Transport: "unix", Job: "signals",
			Timeout: 30 * time.Second, Silence: -1}
		fmt.Println(gcl.RunProcess(context.Background(), cfg, func(ctx context.Context, c *gcl.Comm) error {
			if err := c.Named("first").Barrier(ctx); err != nil {
				return err
			}
			if m.Rank == 1 {
				say("ready")
				proceed()
			} else {
				whenInside(c, `barrier #2 "stuck"`)
			}
			return c.Named("stuck").Barrier(ctx)
		}))
	},
}

var (
	say       = func(text string) { fmt.Println(text) }
	input     = bufio.NewReader(os.Stdin)
	proceed   = func() { _, _ = input.ReadString('\n') } // or the test has ended
	atOnce    = func() bool { return true }
	saysCount = func() bool { say(fmt.Sprintf("%d listen", listeners())); return true }
)

func beSignalled() (was bool) {
	text, ok := os.LookupEnv(signalledVariable)
	if !ok {
		return false
	}
	var m signalled
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic(err)
	}
	signalledDoes[m.Does](m)
	return true
}

// hang runs two replicas. One waits in a barrier for the other, which says "ready" when ready is true.
func hang(ready func() bool, opts ...gcl.CommOption) {
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 1 {
			for !strings.Contains(c.Dump(), `replica 0 is in barrier #1 "stuck"`) || !ready() {
				time.Sleep(time.Millisecond)
			}
			say("ready")
			proceed()
		}
		return c.Named("stuck").Barrier(ctx)
	}, opts...)
	if err != nil {
		panic(err)
	}
}

// whenInside says "ready" when the replica is in a call.
func whenInside(c *gcl.Comm, call string) {
	go func() {
		for !strings.Contains(c.Dump(), "is in "+call) {
			time.Sleep(time.Millisecond)
		}
		say("ready")
	}()
}

// listeners is how many goroutines of gcl listen to a signal.
func listeners() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("flight.listen.func"))
}

func listens() bool { return listeners() > 0 }

// untilNoneListens waits.
func untilNoneListens() {
	for listens() {
		time.Sleep(time.Millisecond)
	}
}

// countQuits says which SIGQUIT has come.
func countQuits() {
	quits := make(chan os.Signal, 10)
	signal.Notify(quits, syscall.SIGQUIT)
	go func() {
		for n := 1; ; n++ {
			<-quits
			say(fmt.Sprintf("quit %d", n))
		}
	}()
}

// victim is a process that gets signals.
type victim struct {
	*testing.T
	cmd    *exec.Cmd
	input  io.Writer
	output *bufio.Reader

	mu     sync.Mutex // guards errors
	errors bytes.Buffer
}

// Write takes what the process writes to standard error.
func (v *victim) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.errors.Write(b)
}

// said is what it has written so far, with T for times.
func (v *victim) said() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return timeless(v.errors.String())
}

// newVictim starts a process, which ends with the test.
func newVictim(t *testing.T, m signalled) *victim {
	order, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), patience)
	v := &victim{T: t, cmd: exec.CommandContext(ctx, must(os.Executable()))}
	v.cmd.Env = append(os.Environ(), signalledVariable+"="+string(order))
	v.cmd.Stderr = v
	v.input = must(v.cmd.StdinPipe())
	v.output = bufio.NewReader(must(v.cmd.StdoutPipe()))
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = v.cmd.Wait() // of those that end by themselves the state has been looked at
		if t.Failed() {
			t.Logf("standard error of %+v:\n%s", m, v.said())
		}
	})
	return v
}

// reads checks the next line of output.
func (v *victim) reads(want string) {
	v.Helper()
	if line, err := v.output.ReadString('\n'); line != want+"\n" {
		v.Fatalf("it says %q (%v), want %q", line, err, want)
	}
}

// gets sends a signal.
func (v *victim) gets(s syscall.Signal) {
	v.Helper()
	if err := v.cmd.Process.Signal(s); err != nil {
		v.Fatal(err)
	}
}

// proceeds lets it go on.
func (v *victim) proceeds() { _, _ = io.WriteString(v.input, "\n") } // else what follows fails

// ends waits for its end, and checks it.
func (v *victim) ends(want string) {
	v.Helper()
	_ = v.cmd.Wait() // the state says it
	if got := v.cmd.ProcessState.String(); got != want {
		v.Errorf("it ended with %s, want %s", got, want)
	}
}

// dumps waits until its standard error has a text so often.
func (v *victim) dumps(times int, text string) {
	v.Helper()
	for limit := time.Now().Add(patience / 2); ; time.Sleep(time.Millisecond) {
		switch got := strings.Count(v.said(), text); {
		case got > times, time.Now().After(limit):
			v.Fatalf("%d times %q, want %d", got, text, times)
		case got == times:
			return
		}
	}
}

// dumpOfHang is what a dump of hang says, from its first line to its last, but for blanks.
const (
	hangWaits = `replica 0 is in barrier #1 "stuck" of group {0, 1} for T, waiting for replica 1, which has made no call`
	hangEnds  = "replica 1, connection 0: 0 collectives\n"
)

// TestQuitDumps: SIGQUIT prints where the replicas are, and then ends the process as without gcl.
func TestQuitDumps(t *testing.T) {
	v := newVictim(t, signalled{Does: "hang"})
	v.reads("ready")
	v.gets(syscall.SIGQUIT)
	v.ends("exit status 2")
	want := regexp.MustCompile(`(?s)\Agcl: SIGQUIT: communicator 1 of 1\n` + regexp.QuoteMeta(hangWaits) + `\n.*` +
		hangEnds + `SIGQUIT: quit\n.*\ngoroutine 1 .*\ngoroutine `)
	if text := v.said(); !want.MatchString(text) || strings.Count(text, "gcl: SIGQUIT") != 1 {
		t.Errorf("it does not match %v", want)
	}
}

// TestQuitOtherwise: SIGQUIT is Go's own when no communicator is open any more. A program that ignores it goes on doing
// so, and one that has said that it handles it gets each once. One that has not said so gets the first one twice.
func TestQuitOtherwise(t *testing.T) {
	const quit = syscall.SIGQUIT
	for _, c := range []struct {
		does  string
		with  func(v *victim)
		ends  string
		dumps int
	}{
		{"closed", func(v *victim) { v.proceeds(); v.reads("closed"); v.gets(quit) }, "exit status 2", 0},
		{"just closed", func(v *victim) { v.proceeds(); v.reads("closed"); v.gets(quit) }, "exit status 2", 0},
		{"ignore", func(v *victim) { v.gets(quit); v.proceeds() }, "exit status 0", 0},
		{"keep", func(v *victim) {
			for n := range 2 {
				v.gets(quit)
				v.reads(fmt.Sprintf("quit %d", n+1))
			}
			v.proceeds()
		}, "exit status 0", 0},
		{"handle", func(v *victim) {
			v.gets(quit)
			v.reads("quit 1")
			v.reads("quit 2")
			v.gets(quit)
			v.reads("quit 3")
			v.proceeds()
			v.reads("0 listen") // with another communicator
			v.reads("ready")
			v.gets(quit)
			v.reads("quit 4")
			v.proceeds()
		}, "exit status 0", 1},
	} {
		t.Run(c.does, func(t *testing.T) {
			v := newVictim(t, signalled{Does: c.does})
			if c.does == "ignore" {
				v.reads("0 listen")
			}
			v.reads("ready")
			c.with(v)
			rest, _ := io.ReadAll(v.output)
			v.ends(c.ends)
			if n := strings.Count(v.said(), "gcl: SIGQUIT"); len(rest) > 0 || n != c.dumps {
				t.Errorf("it also says %q, and has dumped %d times, want %d", rest, n, c.dumps)
			}
		})
	}
}

// TestDumpOnSignal: SIGUSR1 prints where the replicas are, once however often that was asked for, and the program goes
// on, until all who asked have stopped it.
func TestDumpOnSignal(t *testing.T) {
	v := newVictim(t, signalled{Does: "user"})
	v.reads("none open")
	v.gets(syscall.SIGUSR1)
	v.dumps(1, "gcl: SIGUSR1: no communicator is open\n")
	v.proceeds()
	v.reads("ready")
	for n := range 2 {
		v.gets(syscall.SIGUSR1)
		v.dumps(n+1, hangEnds)
		v.dumps(n+1, hangWaits)
		v.dumps(n+1, "gcl: SIGUSR1: communicator 1 of 1\n")
	}
	v.proceeds()
	v.reads("one left")
	v.gets(syscall.SIGUSR1)
	v.dumps(2, "gcl: SIGUSR1: no communicator is open\n")
	v.proceeds()
	v.reads("0 listen")
	v.ends("exit status 0")
}

// TestDumpOnSignalOfProcesses: a dump has what replicas of other processes say, and names one that says nothing.
func TestDumpOnSignalOfProcesses(t *testing.T) {
	var both [2]*victim
	where := "dir:" + t.TempDir()
	for rank := range both {
		both[rank] = newVictim(t, signalled{Does: "process", Rank: rank, Where: where})
	}
	for _, v := range both {
		v.reads("ready")
	}
	v, other := both[0], both[1]
	v.gets(syscall.SIGUSR1)
	v.dumps(1, "gcl: SIGUSR1: communicator 1 of 1, other processes\nreplica 1, in another process, which was asked:\n"+
		"  gcl: flight recorder; times are relative to now\n  replica 1, connection 0: 1 collective\n")
	other.gets(syscall.SIGSTOP)
	var state syscall.WaitStatus // the signal may take its time
	if _, err := syscall.Wait4(other.cmd.Process.Pid, &state, syscall.WUNTRACED, nil); err != nil || !state.Stopped() {
		t.Fatalf("the other is not stopped: %v, %v", state, err)
	}
	v.gets(syscall.SIGUSR1)
	v.dumps(1, "gcl: SIGUSR1: communicator 1 of 1, other processes\n"+
		"replica 1, in another process, is silent: it does not answer\n")
	v.dumps(2, `replica 0 is in barrier #2 "stuck" of group {0, 1} for T`)
	other.gets(syscall.SIGCONT)
	other.proceeds()
	for _, v := range both {
		v.reads("<nil>")
		v.ends("exit status 0")
	}
}

// TestSignalsInBubble: in a bubble of testing/synctest nobody listens, who would keep it from going on.
func TestSignalsInBubble(t *testing.T) {
	before := listeners()
	synctest.Test(t, func(t *testing.T) {
		defer gcl.DumpOnSignal()()
		if err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
			time.Sleep(time.Hour)
			if n := listeners(); n > before {
				t.Errorf("%d goroutines listen, %d before", n, before)
			}
			return c.Barrier(ctx)
		}); err != nil {
			t.Error(err)
		}
	})
}
