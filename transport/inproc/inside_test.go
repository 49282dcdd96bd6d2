package inproc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"gogcl.dev/transport"
)

func connect(t testing.TB, n int) []*endpoint {
	t.Helper()
	eps, err := New(n)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]*endpoint, n)
	for i, e := range eps {
		out[i] = e.(*endpoint)
	}
	t.Cleanup(func() {
		for _, e := range out {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return out
}

// until waits for a condition that must come true.
func until(cond func() bool) {
	for !cond() {
		runtime.Gosched()
	}
}

func TestNewRefuses(t *testing.T) {
	for _, n := range []int{0, -1, maxReplicas + 1, 1 << 20} { // the last would take more memory than there is
		if _, err := New(n); err == nil {
			t.Errorf("New(%d) succeeds", n)
		}
	}
}

func TestAlone(t *testing.T) {
	e := connect(t, 1)[0]
	if err := e.Exchange(context.Background(), transport.Call{}, nil); err != nil {
		t.Error(err)
	}
}

// A slot fills a cache line and starts at one.
func TestSlotLayout(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("laid out for 64 bits")
	}
	if s, b := unsafe.Sizeof(slot{}), unsafe.Sizeof(block{}); s != 64 || b != 256 {
		t.Errorf("a slot has %d bytes, a block %d", s, b)
	}
	for range 100 {
		var m mailbox
		e := connect(t, 2)
		if s := m.grow(&e[0].heads[1], 2); uintptr(unsafe.Pointer(s))%64 != 0 {
			t.Fatalf("a slot at %p", s)
		}
	}
}

func TestMailbox(t *testing.T) {
	e := connect(t, 2)[0]
	head := &e.heads[1]
	var sender, receiver mailbox
	if receiver.find(head, 0) != nil || receiver.peek(head, 0) != nil {
		t.Error("the receiver finds a slot that nobody has made")
	}
	for _, tag := range []uint32{0, 1, 7, 3, 100} {
		s := sender.grow(head, tag)
		if got := receiver.peek(head, tag); got != s {
			t.Errorf("tag %d: a bystander sees %p, want %p", tag, got, s)
		}
		if got := receiver.find(head, tag); got != s {
			t.Errorf("tag %d: the receiver finds %p, want %p", tag, got, s)
		}
		if got := sender.grow(head, tag); got != s {
			t.Errorf("tag %d: the slot has moved", tag)
		}
	}
	if receiver.find(head, 200) != nil || receiver.peek(head, 200) != nil {
		t.Error("the receiver finds a slot that nobody has made")
	}
}

func TestBusy(t *testing.T) {
	e := connect(t, 2)
	in := make([]byte, 5)
	first := make(chan error)
	go func() {
		first <- e[0].Exchange(context.Background(), transport.Call{},
			[]transport.Transfer{{Peer: 1, Kind: transport.Recv, Buf: in}})
	}()
	until(func() bool { return e[0].waiting.Load() != nil })
	err := e[0].Exchange(context.Background(), transport.Call{},
		[]transport.Transfer{{Peer: 1, Kind: transport.Send, Buf: in}})
	if !errors.Is(err, transport.ErrBusy) {
		t.Errorf("the second Exchange returns %v", err)
	}
	if err := e[1].Exchange(context.Background(), transport.Call{},
		[]transport.Transfer{{Kind: transport.Send, Buf: []byte("hello")}}); err != nil {
		t.Error(err)
	}
	if err := <-first; err != nil || string(in) != "hello" {
		t.Errorf("the first one receives %q, %v", in, err)
	}
}

// A Fold that does not return must not leave anybody with a claimed slot.
func TestFoldUnwinds(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("no") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			e := connect(t, 3)
			var wg sync.WaitGroup
			errs := make([]error, 3)
			for me := range e {
				wg.Go(func() {
					defer func() { _ = recover() }()
					buf := make([]byte, 100)
					batch := []transport.Transfer{
						{Peer: (me + 1) % 3, Kind: transport.Send, Buf: make([]byte, 100)},
						{Peer: (me + 2) % 3, Kind: transport.RecvFold, Buf: buf, With: buf, Fold: func(dst, a, b []byte) {}},
					}
					if me == 1 {
						batch[1].Fold = func(dst, a, b []byte) { leave() }
					}
					for errs[me] == nil {
						errs[me] = e[me].Exchange(context.Background(), transport.Call{}, batch)
					}
				})
			}
			wg.Wait()
			for _, me := range []int{0, 2} {
				var aborted *transport.AbortError
				if !errors.As(errs[me], &aborted) || aborted.Replica != 1 || !errors.Is(errs[me], errUnwound) {
					t.Errorf("replica %d: %v", me, errs[me])
				}
			}
			if err := e[1].Exchange(context.Background(), transport.Call{}, nil); !errors.Is(err, errUnwound) {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// Who reads a peer's memory stops at the next block when the network is aborted.
func TestAbortStopsFold(t *testing.T) {
	e := connect(t, 2)
	cause := errors.New("stop")
	const size = 10 * copyBlock
	sent := make(chan error)
	go func() {
		sent <- e[1].Exchange(context.Background(), transport.Call{},
			[]transport.Transfer{{Kind: transport.Send, Buf: make([]byte, size)}})
	}()
	buf := make([]byte, size)
	pieces := 0
	err := e[0].Exchange(context.Background(), transport.Call{},
		[]transport.Transfer{{Peer: 1, Kind: transport.RecvFold, Buf: buf, With: buf, Fold: func(dst, a, b []byte) {
			pieces++
			e[1].Abort(cause)
		}}})
	if pieces != 1 || !errors.Is(err, cause) {
		t.Errorf("%d pieces are folded, error %v", pieces, err)
	}
	if err := <-sent; !errors.Is(err, cause) {
		t.Errorf("the sender's error is %v", err)
	}
}

// A replica that fails by itself after another one says both.
func TestLateError(t *testing.T) {
	e := connect(t, 2)
	first, second := errors.New("first"), errors.New("second")
	e[1].Abort(first)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(second)
	err := e[0].Exchange(ctx, transport.Call{}, nil)
	var aborted *transport.AbortError
	if !errors.Is(err, first) || !errors.Is(err, second) || !errors.As(err, &aborted) || aborted.Replica != 1 {
		t.Error(err)
	}
	if want := "replica 0 round 0: second (aborted by replica 1: first)"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// Sixty-three replicas that wait for one stand in the register, park no more, and have no timer running; and so does a
// network in which nobody is in Exchange.
func TestIdle(t *testing.T) {
	const n = 64
	e := connect(t, n)
	nw := e[0].lane.nw
	errs := make(chan error, n)
	exchange := func(me int) {
		batch := []transport.Transfer{{Peer: 0, Kind: transport.Recv, Buf: make([]byte, 100)}}
		if me == 0 {
			batch = nil
			for p := 1; p < n; p++ {
				batch = append(batch, transport.Transfer{Peer: p, Kind: transport.Send, Buf: make([]byte, 100)})
			}
		}
		errs <- e[me].Exchange(context.Background(), transport.Call{}, batch)
	}
	for me := 1; me < n; me++ {
		go exchange(me)
	}
	settled := func() bool {
		g := &e[0].lane.blocked
		g.mu.Lock()
		defer g.mu.Unlock()
		for me := 1; me < n; me++ {
			if g.members == nil || g.members[me] == nil || e[me].waiting.Load() == nil {
				return false
			}
		}
		return !nw.armed.Load()
	}
	until(settled)
	parks := func() (sum uint64) {
		e[0].lane.blocked.mu.Lock() // keeps them where they are
		defer e[0].lane.blocked.mu.Unlock()
		for _, x := range e {
			sum += x.parks
		}
		return sum
	}
	before := parks()
	if before > 10*n {
		t.Errorf("%d replicas have parked %d times", n-1, before)
	}
	time.Sleep(5 * patrolEvery)
	if after := parks(); after != before || !settled() {
		t.Errorf("parks while nothing happens: %d, then %d", before, after)
	}
	go exchange(0)
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	until(func() bool { return !nw.armed.Load() })
}

// A lane that all have closed is forgotten.
func TestLanesAreForgotten(t *testing.T) {
	e := connect(t, 3)
	nw := e[0].lane.nw
	for range 10 {
		for _, x := range e {
			d, err := x.Dup(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if x.rank > 0 {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if len(nw.lanes) != 11 || len(e[0].lane.children) != 0 {
		t.Errorf("%d lanes, %d waiting for replicas", len(nw.lanes), len(e[0].lane.children))
	}
	if err := e[0].Close(); err != nil {
		t.Error(err)
	}
	if len(nw.lanes) != 1 {
		t.Errorf("%d lanes, want the first", len(nw.lanes))
	}
	// Replica 1 opens a lane to which replica 0 will not come.
	d, err := e[1].Dup(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	err = d.Exchange(context.Background(), transport.Call{}, []transport.Transfer{{Peer: 0, Kind: transport.Recv}})
	var closed *transport.ClosedError
	if !errors.As(err, &closed) || closed.Replica != 0 {
		t.Errorf("on a lane without replica 0: %v", err)
	}
	for _, x := range e {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(nw.lanes) != 0 {
		t.Errorf("%d lanes left", len(nw.lanes))
	}
}

// The cause of an error is told in one line, whoever tells it.
func TestErrorTexts(t *testing.T) {
	run := func(calls [3]transport.Call, batches [3][]transport.Transfer) []string {
		e := connect(t, 3)
		texts := make([]string, 3)
		var wg sync.WaitGroup
		for me := range e {
			wg.Go(func() {
				if err := e[me].Exchange(context.Background(), calls[me], batches[me]); err != nil {
					texts[me] = err.Error()
				}
			})
		}
		wg.Wait()
		return texts
	}
	var calls [3]transport.Call
	waits := [3][]transport.Transfer{}
	for me := range waits {
		waits[me] = []transport.Transfer{{Peer: (me + 1) % 3, Kind: transport.Recv}}
	}
	zero := fmt.Sprintf("%+v", transport.Call{})
	core := "deadlock: replica 0 in " + zero + " waits for replica 1; replica 1 in " + zero +
		" waits for replica 2; replica 2 in " + zero + " waits for replica 0"
	finders := 0
	for me, text := range run(calls, waits) {
		if text == fmt.Sprintf("replica %d round 0: %s", me, core) {
			finders++
		} else if !strings.HasPrefix(text, fmt.Sprintf("replica %d round 0: aborted by replica ", me)) ||
			!strings.HasSuffix(text, core) {
			t.Errorf("replica %d: %s", me, text)
		}
	}
	if finders != 1 {
		t.Errorf("%d replicas found the deadlock", finders)
	}
}
