package stream

import (
	"context"
	"errors"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
)

var errGivesUp = errors.New("gives up")

// TestAbortBeforeLeft: a replica that leaves since another has aborted does not seem to leave for no reason, to those
// whom the other's word has not reached yet.
func TestAbortBeforeLeft(t *testing.T) {
	leaktest.Check(t)
	late := make(chan struct{})
	eps := openRingsHeld(t, 3, 16<<10, func(from, to int) {
		if from == 0 && to == 2 {
			<-late
		}
	})
	eps[0].Abort(errGivesUp)
	<-eps[1].Done()
	if err := eps[1].Close(); err != nil {
		t.Error(err)
	}
	buf := make([]byte, 8)
	err := eps[2].Exchange(context.Background(), transport.Call{Group: 1, Seq: 1},
		[]transport.Transfer{{Kind: transport.Recv, Peer: 1, Buf: buf}})
	var aborted *transport.AbortError
	if !errors.As(err, &aborted) || aborted.Replica != 0 {
		t.Errorf("%v, want the abort of replica 0", err)
	}
	close(late)
	for _, e := range eps {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCloseAfterAbort: who closes with messages that others have not read, because of an abort, blames nobody.
func TestCloseAfterAbort(t *testing.T) {
	leaktest.Check(t)
	late := make(chan struct{})
	eps := openRingsHeld(t, 3, 16<<10, func(from, to int) {
		if from == 0 && to == 2 {
			<-late
		}
	})
	buf := make([]byte, 8)
	if err := eps[2].Exchange(context.Background(), transport.Call{Group: 1, Seq: 1},
		[]transport.Transfer{{Kind: transport.Send, Peer: 1, Buf: buf}}); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- eps[2].Close() }()
	eps[0].Abort(errGivesUp)
	<-eps[1].Done()
	eps[1].Close()
	if err := <-closed; err != nil {
		t.Errorf("%v, want nil", err)
	}
	close(late)
	eps[0].Close()
}

// TestCircle: replicas that wait for each other in a circle, in calls of different groups, all learn of it.
func TestCircle(t *testing.T) {
	leaktest.Check(t)
	for _, n := range []int{2, 3, 7} {
		eps := openRings(t, n, 16<<10, false)
		errs := make(chan error, n)
		for i, e := range eps {
			go func() {
				ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
				defer stop()
				buf := make([]byte, 8)
				errs <- e.Exchange(ctx, transport.Call{Group: uint64(100 + i), Seq: 1},
					[]transport.Transfer{{Kind: transport.Recv, Peer: (i + 1) % n, Buf: buf}})
			}()
		}
		for range n {
			err := <-errs
			var circle *transport.DeadlockError
			if !errors.As(err, &circle) || len(circle.Replicas) != n || len(circle.Calls) != n {
				t.Errorf("n=%d: %v, want a circle of all", n, err)
				continue
			}
			for k, r := range circle.Replicas {
				if circle.Replicas[(k+1)%n] != (r+1)%n || circle.Calls[k].Group != uint64(100+r) {
					t.Errorf("n=%d: %v", n, circle)
				}
			}
		}
		for _, e := range eps {
			e.Close()
		}
	}
}

// TestNoCircle: a chain that waits for long for a replica that comes late is no circle.
func TestNoCircle(t *testing.T) {
	leaktest.Check(t)
	const n = 4
	eps := openRings(t, n, 16<<10, false)
	errs := make(chan error, n)
	for i, e := range eps {
		go func() {
			call, buf := transport.Call{Group: 1, Seq: 1}, make([]byte, 8)
			if i == n-1 {
				time.Sleep(400 * time.Millisecond)
			} else if err := e.Exchange(context.Background(), call,
				[]transport.Transfer{{Kind: transport.Recv, Peer: i + 1, Buf: buf}}); err != nil {
				errs <- err
				return
			}
			if i == 0 {
				errs <- nil
				return
			}
			errs <- e.Exchange(context.Background(), call,
				[]transport.Transfer{{Kind: transport.Send, Peer: i - 1, Buf: buf}})
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for _, e := range eps {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestProbeComesBack: a probe that comes back shows a circle, unless something has moved meanwhile, or a message is on
// its way to who has passed it on.
func TestProbeComesBack(t *testing.T) {
	for _, test := range []struct {
		still  bool
		sent   uint64
		number uint32
		circle bool
	}{{true, 0, 3, true}, {false, 0, 3, false}, {true, 1, 3, false}, {true, 0, 2, false}} {
		_, l, _ := loneNode(t, 0)
		call := transport.Call{Group: 1, Seq: 1}
		l.busy.Lock()
		l.begin(t.Context(), call, []transport.Transfer{{Kind: transport.Recv, Peer: 1, Buf: make([]byte, 8)}})
		l.peers[1].sent.Store(test.sent)
		l.chase.number, l.chase.still = 3, test.still
		l.chase.come = []probe{{from: 1, number: test.number, path: []stationCall{{0, call}, {1, call}}}}
		l.chase.any.Store(true)
		err := l.follow()
		if circle := errors.As(err, new(*transport.DeadlockError)); circle != test.circle {
			t.Errorf("%+v: %v", test, err)
		}
		l.settled = true
		l.end()
		l.peers[1].sent.Store(0)
		l.Close()
	}
}

// TestProbesAllocateNothing: a call that waits for long sends and takes probes, and is a call like others.
func TestProbesAllocateNothing(t *testing.T) {
	node, l, host := loneNode(t, 0)
	call := transport.Call{Group: 1, Seq: 1}
	l.busy.Lock()
	l.begin(t.Context(), call, []transport.Transfer{{Kind: transport.Recv, Peer: 1, Buf: make([]byte, 8)}})
	number, room := uint32(0), make([]byte, 0, MaxMessage)
	if n := testing.AllocsPerRun(100, func() {
		l.beginChase()
		number++
		message := appendProbe(room, l.number, number, forMessage, 0)
		message = appendStation(message, stationCall{1, call})
		for range 3 {
			if err := node.Handle(1, message); err != nil {
				t.Error(err)
			}
		}
		if err := l.follow(); err != nil {
			t.Error(err)
		}
	}); n > 0 || host.told < 200 {
		t.Errorf("%v allocations, %d probes sent", n, host.told)
	}
	l.settled = true
	l.end()
	l.Close()
}

// TestControlAllocatesNothing: nor does a control message that says how many messages have been read.
func TestControlAllocatesNothing(t *testing.T) {
	leaktest.Check(t)
	eps := openRings(t, 2, 16<<10, false)
	node := eps[0].(*Lane).node
	message := append(appendLane(nil, credit, rootLane), make([]byte, 8)...)
	if n := testing.AllocsPerRun(100, func() {
		if err := node.Handle(1, message); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	for _, e := range eps {
		e.Close()
	}
}
