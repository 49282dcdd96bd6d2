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
		{rs, 1, 1 << 30, false, Direct},
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
		if got := IPULinks().Choose(c.collective, c.size, c.bytes, c.strided, false); got != c.want {
			t.Errorf("%v over %d of %d bytes, strided %v: %v, want %v",
				c.collective, c.size, c.bytes, c.strided, got, c.want)
		}
	}
}

func TestChooseWhereAllAreLinked(t *testing.T) {
	t.Parallel()
	host := MemoryLinks()
	host.MaxBroadcastBytes = 4096
	if got := host.Choose(schedule.Broadcast, 4, 4<<20, false, false); got != SendToAll {
		t.Errorf("a broadcast at the limit: %v, want broadcast", got)
	}
	if got := host.Choose(schedule.Broadcast, 4, 4<<20+1, false, false); got != Direct {
		t.Errorf("a broadcast above the limit: %v, want direct", got)
	}
	if got := host.Choose(schedule.AllReduce, 4, 1024, false, false); got != SendToAll {
		t.Errorf("small all-reduce: %v, want broadcast", got)
	}
	if got := host.Choose(schedule.AllReduce, 4, 1025, false, false); got != Direct {
		t.Errorf("large all-reduce: %v, want direct", got)
	}
	if got := host.Choose(schedule.ReduceScatter, 4, 1, false, false); got != Direct {
		t.Errorf("reduce-scatter: %v, want direct", got)
	}
}

// TestChooseForFewMessages: the thresholds of sockets by group size, where recursive doubling has fewer rounds than a
// rank has peers, and what is taken elsewhere.
func TestChooseForFewMessages(t *testing.T) {
	t.Parallel()
	const (
		ar = schedule.AllReduce
		rs = schedule.ReduceScatter
		ag = schedule.AllGather
		aa = schedule.AllToAll
		bc = schedule.Broadcast
	)
	never := SocketLinks()
	never.MaxBroadcastBytes = -1
	asked := SocketLinks()
	asked.MaxBroadcastBytes = 64 << 10
	for _, c := range []struct {
		tuning             Tuning
		collective         schedule.Collective
		size               int
		bytes              int64
		strided, rankOrder bool
		want               Method
	}{
		{SocketLinks(), ar, 1, 0, false, false, Direct},
		{Tuning{}, ar, 4, 8, false, false, Direct},
		{SocketLinks(), ar, 2, 0, false, false, RecursiveDoubling},
		{SocketLinks(), ar, 2, 128 << 10, false, false, RecursiveDoubling},
		{SocketLinks(), ar, 2, 128<<10 + 1, false, false, Direct},
		{SocketLinks(), ar, 4, 64 << 10, false, false, RecursiveDoubling},
		{SocketLinks(), ar, 4, 64<<10 + 1, false, false, Direct},
		{SocketLinks(), ar, 4, 8, true, false, RecursiveDoubling},
		{SocketLinks(), ar, 8, 64 << 10, false, false, RecursiveDoubling},
		{SocketLinks(), ar, 8, 64<<10 + 1, false, false, Direct},
		{SocketLinks(), ar, 9, 64 << 10, false, false, RecursiveDoubling},
		{SocketLinks(), ar, 1000, 64 << 10, false, false, RecursiveDoubling},
		{SocketLinks(), ar, 1000, 64<<10 + 1, false, false, Direct},

		// recursive_doubling has 3 rounds for the 2 peers among 3, 4 for the 4 among 5
		{SocketLinks(), ar, 3, 21845, false, false, SendToAll},
		{SocketLinks(), ar, 3, 21846, false, false, Direct},
		{SocketLinks(), ar, 3, 8, true, false, Direct},
		{SocketLinks(), ar, 5, 13107, false, false, SendToAll},
		{SocketLinks(), ar, 5, 13108, false, false, Direct},
		{SocketLinks(), ar, 6, 13108, false, false, RecursiveDoubling},
		{SocketLinks(), rs, 3, 8, false, false, Direct},
		{SocketLinks(), rs, 4, 8, false, false, RecursiveDoubling},
		{SocketLinks(), ag, 5, 8, false, false, Direct},
		{SocketLinks(), ag, 4, 64<<10 + 1, false, false, Direct},
		{SocketLinks(), aa, 3, 8, false, false, Direct},
		{SocketLinks(), aa, 5, 8, false, false, RecursiveDoubling},
		{SocketLinks(), aa, 2, 8, false, false, Direct},
		{SocketLinks(), aa, 4, 16 << 10, false, false, RecursiveDoubling},
		{SocketLinks(), aa, 4, 16<<10 + 1, false, false, Direct},
		{SocketLinks(), bc, 3, 8, false, false, SendToAll},
		{SocketLinks(), bc, 5, 8, false, false, RecursiveDoubling},
		{SocketLinks(), bc, 5, 64<<10 + 1, false, false, Direct},

		// in rank order recursive_doubling is a chain
		{SocketLinks(), ar, 4, 16 << 10, false, true, SendToAll},
		{SocketLinks(), ar, 4, 16<<10 + 1, false, true, Direct},
		{SocketLinks(), rs, 4, 8, false, true, Direct},
		{SocketLinks(), ag, 4, 8, false, true, RecursiveDoubling},
		{SocketLinks(), schedule.Reduce, 4, 8, false, true, Direct},
		{SocketLinks(), schedule.Reduce, 4, 8, false, false, RecursiveDoubling},

		{never, ar, 4, 8, false, false, RecursiveDoubling},
		{never, ar, 3, 8, false, false, Direct},
		{asked, ar, 4, 16 << 10, false, false, SendToAll},
		{asked, ar, 4, 16<<10 + 1, false, false, RecursiveDoubling},

		{NetworkLinks(), ar, 4, 10_000, false, false, RecursiveDoubling},
		{NetworkLinks(), ar, 4, 10_001, false, false, Direct},
		{MemoryLinks(), ar, 4, 0, false, false, SendToAll},
		{MemoryLinks(), rs, 4, 0, false, false, Direct},
	} {
		if got := c.tuning.Choose(c.collective, c.size, c.bytes, c.strided, c.rankOrder); got != c.want {
			t.Errorf("%+v: %v over %d of %d bytes, strided %v, in rank order %v: %v, want %v",
				c.tuning, c.collective, c.size, c.bytes, c.strided, c.rankOrder, got, c.want)
		}
	}
}

// TestDoublingPays holds the tables of links against the schedules: recursive_doubling stands for numbers of ranks with
// which it has fewer rounds than a rank has peers, or as many between 2, and no others. The first round of its
// all-to-all only packs.
func TestDoublingPays(t *testing.T) {
	t.Parallel()
	for _, c := range schedule.Collectives() {
		for size := 2; size <= 33; size++ {
			s, err := Build(Spec{Method: RecursiveDoubling, Collective: c, Size: size})
			if err != nil {
				t.Fatal(err)
			}
			rounds := 0
			for _, p := range s.Programs {
				n := 0
				for _, r := range p {
					if len(r.Moves) > 0 {
						n++
					}
				}
				rounds = max(rounds, n)
			}
			pays := size == 2 && c != schedule.AllToAll || size > 2 && rounds < size-1
			for _, tuning := range []Tuning{SocketLinks(), NetworkLinks()} {
				if got := tuning.Choose(c, size, 8, true, false) == RecursiveDoubling; got != pays {
					t.Errorf("%v over %d in %d rounds: %v, want %v", c, size, rounds, got, pays)
				}
			}
		}
	}
}
