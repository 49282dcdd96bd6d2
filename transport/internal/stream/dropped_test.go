package stream

import (
	"errors"
	"testing"

	"gogcl.dev/transport"
)

// TestNoticeWithoutNumber: word that a replica has long waited for a message, which has no number in its group, is no
// disagreement with the calls that this one has made in the group.
func TestNoticeWithoutNumber(t *testing.T) {
	n, l, _ := loneNode(t, 0)
	if err := l.Exchange(t.Context(), transport.Call{Group: 7, Seq: 1}, nil); err != nil {
		t.Fatal(err)
	}
	notice := transport.AppendCall(appendLane(nil, waits, rootLane), transport.Call{Group: 7, Collective: 1})
	if err := n.Handle(1, notice); err != nil {
		t.Fatal(err)
	}
	if err := l.discord(); err != nil {
		t.Error(err)
	}
}

// TestDroppedNotice: word that a replica has long waited in a call is no disagreement where all have dropped that call,
// whether it has been made as another one since, is the last of its group and long ago, or was not made at all.
func TestDroppedNotice(t *testing.T) {
	first := transport.Call{Group: 7, Seq: 1}
	again := first
	again.Method = 1
	next := transport.Call{Group: 7, Seq: 2}
	for name, test := range map[string]struct {
		drops bool
		since []transport.Call
		long  bool
		wrong bool
	}{
		"dropped":              {drops: true},
		"made again":           {drops: true, since: []transport.Call{again}},
		"made again, long ago": {drops: true, since: []transport.Call{again}, long: true},
		"not made":             {drops: true, since: []transport.Call{next}},
		"another made":         {since: []transport.Call{again}, wrong: true},
		"never made":           {since: []transport.Call{next}, wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			n, l, _ := loneNode(t, 0)
			before := transport.Call{Group: 6, Seq: 1}
			for _, call := range []transport.Call{before, first} {
				if call == first && !test.drops {
					continue
				}
				if err := l.Take(call); err != nil {
					t.Fatal(err)
				}
				if err := l.Enter(t.Context(), &call, []int{0, 1}); err != nil {
					t.Fatal(err)
				}
				if call == first {
					l.Drop()
				}
				l.Exit()
			}
			calls := test.since
			for k := uint64(1); test.long && k <= historyLength; k++ {
				calls = append(calls, transport.Call{Group: 8, Seq: k})
			}
			for _, call := range calls {
				if err := l.Exchange(t.Context(), call, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := n.Handle(1, transport.AppendCall(appendLane(nil, waits, rootLane), first)); err != nil {
				t.Fatal(err)
			}
			err := l.discord()
			if wrong := errors.As(err, new(*transport.MismatchError)); wrong != test.wrong || !wrong && err != nil {
				t.Errorf("got %v, want a mismatch: %t", err, test.wrong)
			}
		})
	}
}
