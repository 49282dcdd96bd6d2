package methods

import (
	"testing"

	"gogcl.dev/methods/schedule"
)

func TestChooseOnIPULinks(t *testing.T) {
	t.Parallel()
	const (
		ar = schedule.AllReduce
		rs = schedule.ReduceScatter
		ag = schedule.AllGather
	)
	for _, c := range []struct {
		collective schedule.Collective
		size       int
		bytes      int64
		strided    bool
		want       Method
	}{
		{rs, 1, 1 << 30, false, ClockwiseRing},
		{rs, 2, 1, false, ClockwiseRing},
		{rs, 2, 1 << 30, false, ClockwiseRing},
		{rs, 3, 1_245_183, false, MeetInMiddleRing},
		{rs, 3, 1_245_184, false, BidirectionalRingPair},
		{rs, 4, 1_245_184, false, BidirectionalRingPair},
		{rs, 5, 1_245_184, false, MeetInMiddleRing},
		{rs, 5, 4_980_735, false, MeetInMiddleRing},
		{rs, 5, 4_980_736, false, BidirectionalRingPair},
		{rs, 8, 4_980_736, false, BidirectionalRingPair},
		{rs, 9, 4_980_736, false, MeetInMiddleRing},
		{rs, 9, 39_845_887, false, MeetInMiddleRing},
		{rs, 9, 39_845_888, false, BidirectionalRingPair},
		{ag, 3, 622_591, false, MeetInMiddleRing},
		{ag, 3, 622_592, false, BidirectionalRingPair},
		{ag, 5, 2_490_367, false, MeetInMiddleRing},
		{ag, 5, 2_490_368, false, BidirectionalRingPair},
		{ag, 9, 19_922_943, false, MeetInMiddleRing},
		{ag, 9, 19_922_944, false, BidirectionalRingPair},
		{ar, 4, 512, false, SendToAll},
		{ar, 4, 513, false, MeetInMiddleRing},
		{ar, 4, 512, true, MeetInMiddleRing},
		{ar, 2, 1024, false, SendToAll},
		{ar, 2, 1025, false, ClockwiseRing},
		{ar, 8, 256, false, SendToAll},
		{ar, 8, 257, false, MeetInMiddleRing},
		{rs, 4, 1, false, MeetInMiddleRing},
	} {
		if got := IPULinks().Choose(c.collective, c.size, c.bytes, c.strided); got != c.want {
			t.Errorf("%v over %d of %d bytes, strided %v: %v, want %v",
				c.collective, c.size, c.bytes, c.strided, got, c.want)
		}
	}
}

func TestChooseWhereAllAreLinked(t *testing.T) {
	t.Parallel()
	host := Tuning{MaxBroadcastBytes: 4096, MaxBroadcastFromRootBytes: 1 << 20, Direct: true}
	if got := host.Choose(schedule.Broadcast, 4, 1<<20, false); got != SendToAll {
		t.Errorf("a broadcast at the limit: %v, want broadcast", got)
	}
	if got := host.Choose(schedule.Broadcast, 4, 1<<20+1, false); got != Direct {
		t.Errorf("a broadcast above the limit: %v, want direct", got)
	}
	if got := host.Choose(schedule.AllReduce, 4, 1024, false); got != SendToAll {
		t.Errorf("small all-reduce: %v, want broadcast", got)
	}
	if got := host.Choose(schedule.AllReduce, 4, 1025, false); got != Direct {
		t.Errorf("large all-reduce: %v, want direct", got)
	}
	if got := host.Choose(schedule.ReduceScatter, 4, 1, false); got != Direct {
		t.Errorf("reduce-scatter: %v, want direct", got)
	}
}
