package tcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// fault is what a process of TestFaults does.
type fault struct {
	When   string // one of faultTimes
	Victim int
	Writes bool // in a piece, the victim writes until it is killed; else it is stopped, and then writes

	me  int
	in  *bufio.Reader
	end transport.Endpoint
}

// faultTimes are when the victim of TestFaults is killed or stopped.
//
//	joining     before it dials anybody
//	assembling  before its first Gather, which makes its seat
//	before      before a later one
//	inside      in a Gather, which waits for another replica
//	piece       in a piece of a Share of 64 MiB
//	closing     in Close, after a Broadcast that nobody has taken
var faultTimes = []string{"joining", "assembling", "before", "inside", "piece", "closing"}

// faultRound is the round in which it happens, but for joining and assembling.
const faultRound = 10

// faultBytes is the length of a buffer that a Share lays open.
const faultBytes = 64 << 20

// say tells the test something in a line, and hear waits for word of it.
func (f *fault) say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (f *fault) hear() {
	if _, err := f.in.ReadString('\n'); err != nil {
		panic(err)
	}
}

// pause is where the victim is killed or stopped.
func (f *fault) pause() {
	f.say("ready")
	f.hear()
}

// meets is Config.meets.
func (f *fault) meets(*mesh) {
	if f.When == "joining" && f.me == f.Victim {
		f.pause()
	}
}

// faultEnd is what a process of TestFaults says at its end.
type faultEnd struct {
	Replica int // that the error names, or -1
	Error   string
}

// ended says how the calls of the process have ended.
func (f *fault) ended(err error) {
	e := faultEnd{Replica: -1, Error: fmt.Sprint(err)}
	if lost, ok := errors.AsType[*transport.LostError](err); ok {
		e.Replica = lost.Replica
	} else if closed, ok := errors.AsType[*transport.ClosedError](err); ok {
		e.Replica = closed.Replica
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	f.say("%s", text)
}

// run is a process of TestFaults, from its connecting on.
func (f *fault) run(l *Listener, addresses []Address) {
	ctx := context.Background()
	if f.When == "joining" && !f.Writes { // one that is killed is not waited for
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
	}
	e, err := l.Connect(ctx, addresses)
	if err != nil {
		f.ended(err)
		return
	}
	f.end = e
	victim := f.me == f.Victim
	buf, err := []byte(nil), error(nil)
	if f.When == "piece" {
		if buf, err = openBytesOf(e, faultBytes); err != nil {
			panic(err)
		}
		buf = buf[:faultBytes]
	}
	err = f.calls(e.(*nearby), buf)
	if buf != nil && !victim {
		for i := range buf {
			buf[i] = 0x55
		}
	}
	f.ended(err)
	if buf != nil && !victim {
		f.hear()
		f.say("%v", bytes.Count(buf, []byte{0x55}) == len(buf))
	}
	e.Close()
	runtime.KeepAlive(buf)
}

// calls are Gathers, until one fails, and the call in which it happens. buf is for a Share.
func (f *fault) calls(e *nearby, buf []byte) error {
	ctx, members, victim := context.Background(), []int{0, 1, 2}, f.me == f.Victim
	seq := uint64(0)
	call := func() transport.Call { seq++; return transport.Call{Group: 1, Seq: seq} }
	for k := 0; ; k++ {
		switch {
		case f.When == "assembling" && k == 0 && victim, f.When == "before" && k == faultRound && victim:
			f.pause()
		case f.When == "inside" && k == faultRound && f.me == (f.Victim+1)%3:
			for word := e.near[f.Victim].segment.Lane(e.Number()); word.Load() == 0; {
				runtime.Gosched() // until the victim sleeps in the Gather
			}
			f.pause()
		case f.When == "piece" && k == faultRound:
			err := e.Share(ctx, call(), members, transport.Memory{Out: buf}, []int{3, 3}, f)
			if err == nil {
				err = errors.New("the Share has ended well")
			}
			return err
		case f.When == "closing" && k == faultRound && victim:
			if err := e.Broadcast(ctx, call(), members, f.me, []byte{1}); err != nil {
				return err
			}
			f.say("ready")
			return e.Close()
		case f.When == "closing" && k == faultRound:
			f.hear()
			if err := e.Broadcast(ctx, call(), members, f.Victim, []byte{0}); err != nil {
				return err
			}
		}
		if _, _, err := e.Gather(ctx, call(), members, make([]byte, 100), 100, nil); err != nil {
			return err
		}
	}
}

// Piece implements transport.Worker: the victim writes to all memory.
func (f *fault) Piece(all []transport.Memory, round, i int) {
	if i != f.Victim || round > 0 {
		return
	}
	if f.say("ready"); !f.Writes {
		f.hear()
	}
	for again := true; again; again = f.Writes {
		for k := range all {
			for b := all[k].Out; len(b) > 0; b = b[4096:] {
				for i := range 4096 {
					b[i] = 0xee
				}
			}
		}
	}
	f.say("written")
}

// TestFaults kills one of three processes that meet in shared memory, or stops it, at each time that makes a
// difference. The others get an error that names it. One that was stopped and goes on later gets an error too, and
// writes to no memory of a call that has returned.
func TestFaults(t *testing.T) {
	for _, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		for i, when := range faultTimes {
			for victim := range 3 {
				if testing.Short() && victim != i%3 {
					continue
				}
				t.Run(fmt.Sprintf("%v/%s/victim=%d", how, when, victim), func(t *testing.T) {
					t.Parallel()
					testFault(t, how, when, victim)
				})
			}
		}
	}
}

func testFault(t *testing.T, how syscall.Signal, when string, victim int) {
	const n = 3
	all := startReplicas(t, n, func(i int) replicaConfig {
		return replicaConfig{Rank: i, Size: n, Network: Shm, Silence: 2 * time.Second,
			Fault: &fault{When: when, Victim: victim, Writes: how == syscall.SIGKILL}}
	})
	limit := time.AfterFunc(time.Minute, func() { // what is read from them ends
		for _, c := range all.children {
			c.Process.Kill()
		}
	})
	defer limit.Stop()
	hear := func(rank int) string {
		line, err := all.outs[rank].ReadString('\n')
		if err != nil {
			t.Errorf("replica %d: %v", rank, err)
		}
		return strings.TrimSuffix(line, "\n")
	}
	tell := func(rank int) { fmt.Fprintln(all.ins[rank], "go on") }
	speaker := victim
	if when == "inside" {
		speaker = (victim + 1) % n
	}
	if said := hear(speaker); said != "ready" {
		t.Fatalf("replica %d: %q", speaker, said)
	}
	if err := all.children[victim].Process.Signal(how); err != nil {
		t.Fatal(err)
	}
	if when == "inside" {
		tell(speaker)
	}
	end := func(rank int) (e faultEnd) {
		if said := hear(rank); json.Unmarshal([]byte(said), &e) != nil {
			t.Fatalf("replica %d: %q", rank, said)
		}
		return e
	}
	for i := range n {
		if i == victim {
			continue
		}
		if when == "closing" {
			tell(i)
		}
	}
	for i := range n {
		if i == victim {
			continue
		}
		e := end(i)
		t.Logf("replica %d: %+v", i, e)
		named := e.Replica == victim
		if when == "joining" {
			// One that has dialled the victim ends, and is missing too where it has not come.
			missing := regexp.MustCompile(fmt.Sprintf(`replicas \[([0-9]+ )*%d( [0-9]+)*\]`, victim))
			named = strings.Contains(e.Error, fmt.Sprintf(": replica %d: ", victim)) ||
				strings.Contains(e.Error, fmt.Sprintf("replica %d has not come: its process has ended", victim)) ||
				missing.MatchString(e.Error)
		}
		if !named {
			t.Errorf("replica %d: %+v does not name replica %d", i, e, victim)
		}
	}
	if how == syscall.SIGSTOP {
		all.children[victim].Process.Signal(syscall.SIGCONT)
		tell(victim)
		if when == "piece" {
			if said := hear(victim); said != "written" {
				t.Errorf("replica %d: %q", victim, said)
			}
		}
		if e := end(victim); when != "closing" && e.Error == "<nil>" {
			t.Errorf("replica %d, which was stopped: %+v", victim, e)
		}
	}
	if when == "piece" {
		for i := range n {
			if i == victim {
				continue
			}
			if tell(i); hear(i) != "true" {
				t.Errorf("replica %d: its memory is written to after the call", i)
			}
		}
	}
	for i, c := range all.children {
		if i == victim && how == syscall.SIGKILL {
			continue
		}
		if err := c.Wait(); err != nil {
			t.Errorf("replica %d: %v", i, err)
		}
	}
}
