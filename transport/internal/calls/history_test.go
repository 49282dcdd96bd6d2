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
