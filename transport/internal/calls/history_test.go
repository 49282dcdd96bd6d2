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
// one so long ago that there is no saying.
func TestSkipped(t *testing.T) {
	h := NewHistory(4)
	stands(t, &h, Unknown, 4)
	h.Add(&transport.Call{Group: 7, Seq: 2})
	h.Add(&transport.Call{Group: 7, Seq: 4})
	stands(t, &h, Skipped, 1, 3)
	stands(t, &h, Unknown, 0)
	stands(t, &h, Same, 2)
	stands(t, &h, Current, 4)
	stands(t, &h, Ahead, 5)
	for seq := uint64(5); seq < 9; seq++ {
		h.Add(&transport.Call{Group: 7, Seq: seq})
	}
	stands(t, &h, GoneLong, 1)
}

// stands checks how calls of group 7 stand to a history.
func stands(t *testing.T, h *History, want Standing, seqs ...uint64) {
	t.Helper()
	for _, seq := range seqs {
		if _, how := h.Find(&transport.Call{Group: 7, Seq: seq}); how != want {
			t.Errorf("number %d stands %d, want %d", seq, how, want)
		}
	}
}

// TestDrop: a call that was dropped counts as not made, unless it has been made as another one. That it was dropped is
// known as long as it is remembered, also as the last of its group.
func TestDrop(t *testing.T) {
	call := func(group, seq uint64) *transport.Call { return &transport.Call{Group: group, Seq: seq} }
	h := NewHistory(4)
	h.Drop(call(7, 4)) // of nothing
	for seq := uint64(1); seq <= 4; seq++ {
		h.Add(call(7, seq))
	}
	h.Drop(call(7, 3)) // not the last
	h.Drop(call(7, 0)) // without a number
	stands(t, &h, Current, 4)
	h.Drop(call(7, 4))
	stands(t, &h, Ahead, 4)
	stands(t, &h, Same, 1)
	if last := h.Last(9); len(last) != 3 || last[0].Seq != 3 {
		t.Errorf("the last calls are %+v, want numbers 3 to 1", last)
	}
	made := call(7, 4)
	made.Method = 1
	h.Add(made)
	if mine, how := h.Find(made); how != Current || mine != *made {
		t.Errorf("the call in place of one that was dropped stands %d to %+v", how, mine)
	}
	stands(t, &h, Other, 4)

	h.Add(call(7, 5))
	h.Drop(call(7, 5))
	h.Add(call(7, 6))
	stands(t, &h, Skipped, 5)
	h.Add(call(8, 1))
	h.Drop(call(8, 1))
	h.Add(call(9, 1))
	for _, c := range []*transport.Call{made, call(7, 5), call(8, 1)} {
		if !h.Dropped(c) {
			t.Errorf("%+v is not known to have been dropped", *c)
		}
	}
	for _, c := range []*transport.Call{call(7, 3), call(7, 6), call(9, 1), call(6, 1)} {
		if h.Dropped(c) {
			t.Errorf("%+v counts as dropped", *c)
		}
	}

	h.Drop(call(9, 1))
	h.Add(call(9, 1))
	for seq := range uint64(4) {
		h.Add(call(10, seq+1))
	}
	if !h.Dropped(call(9, 1)) {
		t.Error("the last call of a group, made in place of one that was dropped, is not known to have been")
	}
	if h.Dropped(call(8, 1)) {
		t.Error("a call that was dropped, and not made, is still remembered")
	}
}
