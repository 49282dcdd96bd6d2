package calls

import (
	"slices"
	"testing"

	"gogcl.dev/transport"
)

// TestFind: how calls of other replicas stand to a history of which the first group has long been overwritten.
func TestFind(t *testing.T) {
	h := NewHistory(4)
	h.Add(&transport.Call{Group: 7, Seq: 2})
	h.Add(&transport.Call{Group: 7, Seq: 3})
	for seq := range uint64(12) {
		h.Add(&transport.Call{Group: 8, Seq: seq + 1})
		h.Add(&transport.Call{Group: 8, Seq: seq + 1, Round: 1})
		h.Add(&transport.Call{Group: 10})
	}
	for _, c := range []struct {
		call transport.Call
		want Standing
		mine uint64 // Seq
	}{
		{transport.Call{Group: 8, Seq: 13}, Ahead, 12},
		{transport.Call{Group: 8, Seq: 12, Round: 5}, Current, 12},
		{transport.Call{Group: 8, Seq: 12, Collective: 1}, Other, 12},
		{transport.Call{Group: 8, Seq: 9}, Same, 9},
		{transport.Call{Group: 8, Seq: 9, Collective: 1}, Other, 9},
		{transport.Call{Group: 8, Seq: 8}, GoneLong, 9},
		{transport.Call{Group: 7, Seq: 4}, Ahead, 3},
		{transport.Call{Group: 7, Seq: 3}, Current, 3},
		{transport.Call{Group: 7, Seq: 3, Collective: 1}, Other, 3},
		{transport.Call{Group: 7, Seq: 2}, GoneLong, 3},
		{transport.Call{Group: 10, Seq: 1}, Unknown, 0},
	} {
		if mine, how := h.Find(&c.call); how != c.want || mine.Seq != c.mine {
			t.Errorf("%+v stands %d to %+v, want %d to number %d", c.call, how, mine, c.want, c.mine)
		}
	}
	var last []uint64
	for _, c := range h.Last(9) {
		last = append(last, c.Seq)
	}
	if !slices.Equal(last, []uint64{12, 11, 10, 9}) {
		t.Errorf("the last calls are %d", last)
	}
}

// TestSkipped: a call that was never made, in whose group later ones were, is told from one that is to come, and from
// one so long ago that there is no saying. One that was dropped counts as never made.
func TestSkipped(t *testing.T) {
	h := NewHistory(4)
	find := func(seq uint64) Standing {
		_, how := h.Find(&transport.Call{Group: 7, Seq: seq})
		return how
	}
	h.Add(&transport.Call{Group: 7, Seq: 2})
	h.Add(&transport.Call{Group: 7, Seq: 4})
	for seq, want := range []Standing{1: Skipped, 2: Same, 3: Skipped, 4: Current, 5: Ahead} {
		if how := find(uint64(seq)); seq > 0 && how != want {
			t.Errorf("number %d stands %d, want %d", seq, how, want)
		}
	}
	h.Drop()
	if how := find(4); how != Ahead {
		t.Errorf("a call that was dropped stands %d, want %d", how, Ahead)
	}
	h.Add(&transport.Call{Group: 7, Seq: 4, Method: 1})
	if mine, how := h.Find(&transport.Call{Group: 7, Seq: 4, Method: 1}); how != Current || mine.Method != 1 {
		t.Errorf("the call in place of one that was dropped stands %d, %+v", how, mine)
	}
	for seq := uint64(5); seq < 9; seq++ {
		h.Add(&transport.Call{Group: 7, Seq: seq})
		if seq == 6 {
			h.Drop()
			h.Add(&transport.Call{Group: 7, Seq: seq})
		}
	}
	if how := find(1); how != GoneLong {
		t.Errorf("a number of long ago stands %d, want %d", how, GoneLong)
	}
	if n := len(h.Last(9)); n != 4 {
		t.Errorf("%d last calls, want 4", n)
	}
	h.Drop()
	for _, c := range h.Last(9) {
		if c.Seq == 0 {
			t.Error("the last calls have one that was dropped")
		}
	}
	(&History{}).Drop()
}
