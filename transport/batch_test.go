package transport_test

import (
	"errors"
	"fmt"
	"testing"

	"gogcl.dev/transport"
)

func TestChecker(t *testing.T) {
	var c transport.Checker
	buf := make([]byte, 8)
	message := func(kind transport.Kind, peer, tag int) transport.Transfer {
		return transport.Transfer{Peer: peer, Tag: uint32(tag), Kind: kind, Buf: buf}
	}
	var good []transport.Transfer
	for _, tag := range []int{200, 0, 63, 64, 65, 1, transport.MaxTag} {
		for _, peer := range []int{0, 2} {
			good = append(good, message(transport.Send, peer, tag), message(transport.Recv, peer, tag))
		}
	}
	if err := c.Check(1, 3, good); err != nil {
		t.Error(err)
	}
	if err := (*transport.Checker)(nil).Check(1, 3, good); err != nil {
		t.Errorf("by a nil Checker, which has no memory to keep: %v", err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = c.Check(1, 3, good) }); n != 0 {
		t.Errorf("a good batch costs %v allocations", n)
	}
	for _, tag := range []int{0, 63, 64, transport.MaxTag} {
		for i, kind := range []transport.Kind{transport.Send, transport.Recv} {
			bad := append(good[:len(good):len(good)], message(kind, 2, tag))
			var refused *transport.BatchError
			if err := c.Check(1, 3, bad); !errors.As(err, &refused) {
				t.Errorf("tag %d twice, kind %d: %v", tag, i, err)
			} else if at := bad[refused.Index]; at.Tag != uint32(tag) || at.Peer != 2 || at.Kind != kind {
				t.Errorf("tag %d twice, kind %d: points at %d: %+v", tag, i, refused.Index, at)
			}
		}
	}
	if err := c.Check(1, 3, good); err != nil {
		t.Errorf("after bad ones: %v", err)
	}
}

func TestSame(t *testing.T) {
	a := transport.Call{Seq: 3, Round: 1}
	b := transport.Call{Seq: 3, Round: 2}
	if !a.Same(b) || a.Same(transport.Call{Seq: 4, Round: 1}) {
		t.Error("Same must look at everything but the round")
	}
}

func ExampleRoundError() {
	inner := &transport.RoundError{Replica: 3, Round: 4, Kind: transport.Recv, Peer: 2,
		Err: errors.New("connection reset")}
	fmt.Println(inner)
	fmt.Println(&transport.RoundError{Replica: 0, Round: 5, Peer: -1,
		Err: &transport.AbortError{Replica: 3, Cause: inner}})
	// Output:
	// replica 3 round 4: receive from 2: connection reset
	// replica 0 round 5: aborted by replica 3: replica 3 round 4: receive from 2: connection reset
}

func ExampleBatchError() {
	var c transport.Checker
	fmt.Println(c.Check(0, 4, []transport.Transfer{{Peer: 1, Kind: transport.Send}, {Peer: 4, Kind: transport.Recv}}))
	fmt.Println(c.Check(0, 4, []transport.Transfer{{Peer: 1, Kind: transport.Send}, {Peer: 1, Kind: transport.Send}}))
	// Output:
	// transfer 1 of the batch: peer 4 is not a replica of 0..3
	// transfer 1 of the batch: tag 0 is used twice: send to 1
}
