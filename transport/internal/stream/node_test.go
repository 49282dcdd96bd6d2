package stream

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// deafHost notes the kinds of the control messages that a node sends, and connects it with nobody.
type deafHost struct{ told [][]byte }

func (h *deafHost) Tell(peer int, message []byte) { h.told[peer] = append(h.told[peer], message[0]) }
func (h *deafHost) Connect(peer int, lane uint64) {}
func (h *deafHost) Parker(uint64) (Parker, error) { return &chanParker{make(chan struct{}, 1)}, nil }
func (h *deafHost) Leave()                        {}

// A replica that leaves because of an abort tells the others of the abort first. Else those who hear from it sooner
// than from the replica that has aborted would fail because it has left.
func TestAbortIsPassedOn(t *testing.T) {
	h := &deafHost{told: make([][]byte, 5)}
	n, l, err := NewNode(Config{Rank: 1, Size: 5, Host: h})
	if err != nil {
		t.Fatal(err)
	}
	abort := &transport.AbortError{Replica: 2, Cause: errors.New("no more")}
	for _, from := range []int{3, 2} { // who passes it on, and who has aborted
		if err := n.Handle(from, appendAbort(nil, abort)); err != nil {
			t.Fatal(err)
		}
	}
	n.Abort(errors.New("too late"))
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	for peer, want := range [][]byte{{aborted, left}, nil, {left}, {left}, {aborted, left}} {
		if !slices.Equal(h.told[peer], want) {
			t.Errorf("replica %d is told messages of kinds %d, want %d", peer, h.told[peer], want)
		}
	}
}

// A lane may look for an abort before it comes, and for a replica that leaves after both have come.
func TestDesertionAfterAbort(t *testing.T) {
	n, l, err := NewNode(Config{Rank: 0, Size: 3, Host: &deafHost{told: make([][]byte, 3)}})
	if err != nil {
		t.Fatal(err)
	}
	p := &parting{}
	if err := l.desertion(1, p); !errors.As(err, new(*transport.ClosedError)) {
		t.Errorf("got %v, want a ClosedError", err)
	}
	elsewhere := &transport.AbortError{Replica: 2, Cause: errors.New("no more")}
	if err := n.Handle(1, appendAbort(nil, elsewhere)); err != nil {
		t.Fatal(err)
	}
	var aborted *transport.AbortError
	if err := l.desertion(1, p); !errors.As(err, &aborted) || aborted.Replica != 2 {
		t.Errorf("got %v, want the abort of replica 2", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A replica that closes with a message that nobody has read says in which call the receiver did something else, however
// many calls ago that was.
func TestCloseFindsTheCall(t *testing.T) {
	n, l, _ := loneNode(t, 0)
	n.Attach(1, rootLane, &scriptLink{})
	call := func(seq uint64) transport.Call { return transport.Call{Group: 1, Seq: seq} }
	for seq := range uint64(historyLength / 2) {
		if err := l.Exchange(t.Context(), call(seq+1), one(l, transport.Send, make([]byte, 8))); err != nil {
			t.Fatal(err)
		}
		if err := n.Handle(1, binary.LittleEndian.AppendUint64(appendLane(nil, credit, rootLane), seq)); err != nil {
			t.Fatal(err)
		}
	}
	theirs := call(3)
	theirs.Root++
	if err := n.Handle(1, transport.AppendCall(leftMessage(0), theirs)); err != nil {
		t.Fatal(err)
	}
	var m *transport.MismatchError
	if err := l.Close(); !errors.As(err, &m) || m.Peer != 1 || m.Mine != call(3) || m.Theirs != theirs {
		t.Errorf("got %v, want the mismatch of call 3", err)
	}
}

// A message that a replica which has left has not read is of a call that it has gone through, or may not be.
func TestCloseBlamesTheRightCall(t *testing.T) {
	first, second := transport.Call{Group: 1, Seq: 1}, transport.Call{Group: 2, Seq: 1}
	type list []transport.Call
	later := first
	later.Round++
	for name, test := range map[string]struct {
		calls    list // a message goes in the first of them
		theirs   list // the last calls of the replica that has left, the newest first
		mismatch bool
	}{
		"the last of both":            {calls: list{first}, theirs: list{first}, mismatch: true},
		"the last, an earlier round":  {calls: list{first, later}, theirs: list{later}, mismatch: true},
		"the last, not yet over":      {calls: list{first, later}, theirs: list{first}},
		"one before the last of both": {calls: list{first, second}, theirs: list{second, first}, mismatch: true},
		"the last of theirs alone":    {calls: list{first, second}, theirs: list{first}, mismatch: true},
		"long before the last":        {calls: list{first, second}, theirs: list{second}},
		"one that they did not make":  {calls: list{first}, theirs: list{second}},
	} {
		t.Run(name, func(t *testing.T) {
			n, l, _ := loneNode(t, 0)
			n.Attach(1, rootLane, &scriptLink{})
			for i, call := range test.calls {
				var batch []transport.Transfer
				if i == 0 {
					batch = one(l, transport.Send, make([]byte, 8))
				}
				if err := l.Exchange(t.Context(), call, batch); err != nil {
					t.Fatal(err)
				}
			}
			word := leftMessage(0)
			for _, call := range test.theirs {
				word = transport.AppendCall(word, call)
			}
			if err := n.Handle(1, word); err != nil {
				t.Fatal(err)
			}
			err := l.Close()
			var m *transport.MismatchError
			var closed *transport.ClosedError
			switch {
			case !test.mismatch && !errors.As(err, &closed):
				t.Errorf("Close: %v", err)
			case test.mismatch && (!errors.As(err, &m) || !m.Mine.Same(first)):
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// A replica that closes asks which of its messages have been read, and is told at once.
func TestCloseHearsOfEarlierReads(t *testing.T) {
	eps := openRings(t, 2, 4096, false)
	oneWay(t, eps, 1, 3)
	if err := eps[0].Close(); err != nil {
		t.Error(err)
	}
	if eps[0].(*Lane).node.expired.Load() {
		t.Error("Close has waited in vain")
	}
	if err := eps[1].Close(); err != nil {
		t.Error(err)
	}
}

// A replica may be in Close before its message is read. It hears of it.
func TestCloseHearsOfReads(t *testing.T) {
	eps := openRings(t, 2, 4096, false)
	call := transport.Call{Group: 1, Seq: 1}
	transfer := func(kind transport.Kind, peer int) []transport.Transfer {
		return []transport.Transfer{{Kind: kind, Peer: peer, Buf: make([]byte, 8)}}
	}
	if err := eps[0].Exchange(t.Context(), call, transfer(transport.Send, 1)); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- eps[0].Close() }()
	for !eps[1].(*Lane).peers[0].closing.Load() {
		runtime.Gosched()
	}
	if err := eps[1].Exchange(t.Context(), call, transfer(transport.Recv, 0)); err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if eps[0].(*Lane).node.expired.Load() {
		t.Error("Close has waited in vain")
	}
	if err := eps[1].Close(); err != nil {
		t.Error(err)
	}
}

// A lane that finds two disagreements with a replica at once says the first: that of a message, not of the call that
// the replica waits in by now.
func TestFirstDisagreement(t *testing.T) {
	eps := openRings(t, 2, 16<<10, false)
	call := func(rank, seq int) transport.Call {
		return transport.Call{Group: 1, Seq: uint64(seq), Root: uint32(rank)}
	}
	for seq := 1; seq <= 3; seq++ {
		for rank, e := range eps {
			batch := []transport.Transfer{{Kind: transport.Send, Peer: 1 - rank, Buf: make([]byte, 8)}}
			if err := e.Exchange(t.Context(), call(rank, seq), batch); err != nil {
				t.Fatal(err)
			}
		}
	}
	waits := call(0, 3)
	l := eps[1].(*Lane)
	l.peers[0].waits.set(waits)
	var m *transport.MismatchError
	if err := l.discord(); !errors.As(err, &m) || m.Mine != call(1, 1) || m.Theirs != call(0, 1) {
		t.Errorf("got %v, want the mismatch of the first call", err)
	}
	for _, e := range eps {
		e.Abort(errors.New("seen enough"))
		e.Close()
	}
}

// quickHost is the host of a replica whose peer leaves as soon as it hears of an abort.
type quickHost struct {
	deafHost
	lane  *Lane
	ended chan error // of the lane's wait for the peer
}

func (h *quickHost) Tell(peer int, message []byte) {
	if message[0] != aborted {
		return
	}
	left := &parting{}
	h.lane.peers[peer].left.Store(left)
	ended := make(chan error, 1)
	go func() {
		err := h.lane.desertion(peer, left)
		ended <- err
		h.ended <- err
	}()
	select {
	case <-ended: // too early
	case <-time.After(20 * time.Millisecond):
	}
}

// TestLeftOverThisAbort: a peer that has left over this replica's own abort, while others are still told of it, has not
// left of itself.
func TestLeftOverThisAbort(t *testing.T) {
	h := &quickHost{deafHost: deafHost{make([][]byte, 2)}, ended: make(chan error, 1)}
	n, l, err := NewNode(Config{Rank: 0, Size: 2, Host: h})
	if err != nil {
		t.Fatal(err)
	}
	h.lane = l
	n.Abort(errors.New("the cause"))
	var abort *transport.AbortError
	if err := <-h.ended; !errors.As(err, &abort) {
		t.Errorf("got %v, want the abort", err)
	}
	l.Close()
}
