package cost_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

const us = time.Microsecond

// machine has links that carry a byte in a nanosecond and have a latency of a microsecond; GW-Links take ten times as
// long.
func machine(t testing.TB, shape topology.Shape, ipus int, replicas ...int) topology.Topology {
	t.Helper()
	fast := topology.Speed{BytesPerSecond: 1e9, Latency: us}
	slow := topology.Speed{BytesPerSecond: 1e8, Latency: 10 * us}
	m, err := topology.New(topology.Config{Shape: shape, Replicas: replicas, IPUsPerReplica: ipus,
		Speeds: topology.Speeds{IPULink: fast, HostLink: fast, GWLink: slow}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// upTo is 0, 1, ..., n-1.
func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// all prices a method for all replicas of a machine, on its own rings or on the one given.
func all(t testing.TB, m topology.Topology, method methods.Method, c schedule.Collective, ring []int,
	bytes int64) cost.Estimate {
	t.Helper()
	members := upTo(m.Replicas())
	rings, err := m.Rings(topology.Auto, members)
	if err != nil {
		t.Fatal(err)
	}
	if ring != nil {
		rings.First = ring
	}
	s, err := methods.Build(methods.Spec{Method: method, Collective: c, Size: len(members), Ring: rings.First,
		Second: rings.Second})
	if err != nil {
		t.Fatal(err)
	}
	e, err := cost.Price(s, members, m, bytes)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The numbers are worked out by hand: 1000 bytes take 1 us, 2 us with the latency.
func TestPrice(t *testing.T) {
	t.Parallel()
	clique, ladder := machine(t, topology.Clique, 1, 4), machine(t, topology.OpenLadder, 1, 8)
	tests := []struct {
		name       string
		machine    topology.Topology
		method     methods.Method
		collective schedule.Collective
		ring       []int
		bytes      int64
		want       cost.Estimate
	}{
		// Six rounds of a quarter; two in which three quarters leave by the same port; one in which three times
		// everything does.
		{"clique ring", clique, methods.ClockwiseRing, schedule.AllReduce, nil, 4000, cost.Estimate{Rounds: 6, SentBytes: 6000, Time: 12 * us}},
		{"clique direct", clique, methods.Direct, schedule.AllReduce, nil, 4000, cost.Estimate{Rounds: 2, SentBytes: 6000, Time: 8 * us}},
		{"clique broadcast", clique, methods.SendToAll, schedule.AllReduce, nil, 4000, cost.Estimate{Rounds: 1, SentBytes: 12000, Time: 13 * us}},
		{"clique doubling", clique, methods.RecursiveDoubling, schedule.AllReduce, nil, 4000, cost.Estimate{Rounds: 2, SentBytes: 8000, Time: 10 * us}},
		// Both directions are of one port: nothing gained. Half way round it is four rounds, of two quarters, one, one
		// and two.
		{"clique pair", clique, methods.BidirectionalRingPair, schedule.AllReduce, nil, 4000, cost.Estimate{Rounds: 6, SentBytes: 6000, Time: 12 * us}},
		{"clique middle", clique, methods.MeetInMiddleRing, schedule.AllReduce, nil, 4000, cost.Estimate{Rounds: 4, SentBytes: 6000, Time: (4 + 6) * us}},
		// The root sends 3 x 4000, or deals out 3 x 1000, whereupon the others receive what they lack.
		{"clique from the root", clique, methods.SendToAll, schedule.Broadcast, nil, 4000, cost.Estimate{Rounds: 1, SentBytes: 12000, Time: 13 * us}},
		{"clique dealt out", clique, methods.Direct, schedule.Broadcast, nil, 4000, cost.Estimate{Rounds: 2, SentBytes: 6000, Time: (4 + 4) * us}},
		{"nothing", clique, methods.ClockwiseRing, schedule.AllReduce, nil, 0, cost.Estimate{Rounds: 6, Time: 6 * us}},
		{"one rank", machine(t, topology.Clique, 1, 1), methods.Direct, schedule.AllReduce, nil, 4000, cost.Estimate{Rounds: 1}},

		// A replica of four IPUs has a port for each.
		{"wide ports", machine(t, topology.Clique, 4, 4), methods.ClockwiseRing, schedule.AllReduce, nil, 4000, cost.Estimate{Rounds: 6, SentBytes: 6000, Time: 6*us + 6*us/4}},
		// Two hosts of two, round 0 1 2 3: each round waits for the hops between hosts, 10 us + 1000 bytes at 10 ns.
		{"two hosts", machine(t, topology.Clique, 1, 2, 2), methods.ClockwiseRing, schedule.AllReduce, nil, 4000, cost.Estimate{Rounds: 6, SentBytes: 6000, Time: 6 * 20 * us}},

		// Round the edge every hop is a link. In rank order 7 to 0 takes four hops, 7 5 3 1 0, and shares 1-0 with 1 to
		// 2, which has the other half.
		{"peripheral ring", ladder, methods.ClockwiseRing, schedule.AllReduce, nil, 8000, cost.Estimate{Rounds: 14, SentBytes: 14000, Time: 14 * 2 * us}},
		{"ring in rank order", ladder, methods.ClockwiseRing, schedule.AllReduce, upTo(8), 8000, cost.Estimate{Rounds: 14, SentBytes: 14000, Time: 14 * 5 * us}},
		// Half of a link's bytes, then a quarter, since the mirror image has links of its own.
		{"both ways", ladder, methods.BidirectionalRingPair, schedule.AllReduce, nil, 8000, cost.Estimate{Rounds: 14, SentBytes: 14000, Time: 14 * 3 * us / 2}},
		{"both links", ladder, methods.QuadDirectionalRing, schedule.AllReduce, nil, 8000, cost.Estimate{Rounds: 14, SentBytes: 14000, Time: 14 * 5 * us / 4}},
		// Replicas of two IPUs on a joined ladder: two rails of two links, of which a ring has one.
		{"rung ring", machine(t, topology.JoinedLadder, 2, 4), methods.ClockwiseRing, schedule.AllReduce, nil, 4000, cost.Estimate{Rounds: 6, SentBytes: 6000, Time: 6 * 3 * us / 2}},
		// Ring-on-line, 0 2 3 1 on four rungs: the hops over a rung (0 to 2, 3 to 1) take two latencies and cross no
		// link that another crosses.
		{"ring on line", machine(t, topology.OpenLadder, 2, 4), methods.ClockwiseRing, schedule.AllReduce, nil, 4000, cost.Estimate{Rounds: 6, SentBytes: 6000, Time: 6 * 5 * us / 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := all(t, tt.machine, tt.method, tt.collective, tt.ring, tt.bytes); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// toRankZero is a schedule, if of no use, in which each of the ranks given sends chunk 0 of one to rank 0.
func toRankZero(size int, from ...int) *schedule.Schedule {
	s := &schedule.Schedule{Collective: schedule.AllReduce, Size: size, Chunks: 1,
		Programs: make([]schedule.Program, size)}
	for i := range s.Programs {
		s.Programs[i] = schedule.Program{{}}
	}
	for _, r := range from {
		round := &s.Programs[r][0]
		round.Moves = append(round.Moves, schedule.Step{Verb: schedule.Send, Peer: 0, Src: schedule.In(0, 1)})
	}
	return s
}

// On a ladder of four, 3 reaches 0 through 1.
func TestBundle(t *testing.T) {
	t.Parallel()
	ladder := machine(t, topology.OpenLadder, 1, 4)
	tests := []struct {
		from []int
		want time.Duration
	}{
		{[]int{1}, 2 * us},
		{[]int{1, 1}, 2 * us},             // a half each
		{[]int{1, 1, 1}, 3 * us},          // two on one half
		{[]int{1, 2, 3}, 3 * us},          // two latencies, and a half of 1-0 each
		{[]int{1, 1, 3}, 4 * us},          // two latencies, and two on one half
		{[]int{1, 1, 1, 3}, 4 * us},       // two on either
		{[]int{2, 2, 2, 2}, 3 * us},       // two on either
		{[]int{1, 1, 1, 1, 1}, 4 * us},    // three on one
		{[]int{3, 3, 3, 3, 3}, 5 * us},    // the same on a longer way
		{[]int{1, 1, 1, 2, 2}, 3 * us},    // apart
		{[]int{3, 3, 1, 2, 2, 2}, 4 * us}, // two of three on one half of 1-0, the longer way among them
	}
	for _, tt := range tests {
		e, err := cost.Price(toRankZero(4, tt.from...), upTo(4), ladder, 1000)
		if err != nil || e.Time != tt.want {
			t.Errorf("from %v: %v, %v, want %v", tt.from, e.Time, err, tt.want)
		}
	}
}

// Members need not be all replicas, nor in order: only where they sit counts.
func TestMembers(t *testing.T) {
	t.Parallel()
	ladder := machine(t, topology.OpenLadder, 1, 8)
	for _, tt := range []struct {
		members []int
		want    time.Duration
	}{
		{[]int{0, 1}, 2 * us},
		{[]int{0, 2}, 2 * us},
		{[]int{0, 3}, 3 * us},
		{[]int{7, 0}, 5 * us},
	} {
		e, err := cost.Price(toRankZero(2, 1), tt.members, ladder, 1000)
		if err != nil || e.Time != tt.want {
			t.Errorf("members %v: %v, %v, want %v", tt.members, e.Time, err, tt.want)
		}
	}
}

// TestRingsOfLadders compares methods where topology has a ring of links: one-way, both ways and both ways on two
// rings halve the bytes of a link each time.
func TestRingsOfLadders(t *testing.T) {
	t.Parallel()
	const large = 1 << 40 // latencies do not count
	for n := 4; n <= 16; n += 2 {
		ladder := machine(t, topology.OpenLadder, 1, n)
		one := all(t, ladder, methods.ClockwiseRing, schedule.ReduceScatter, nil, large)
		for method, ratio := range map[methods.Method]float64{methods.AnticlockwiseRing: 1,
			methods.BidirectionalRingPair: 2, methods.QuadDirectionalRing: 4} {
			e := all(t, ladder, method, schedule.ReduceScatter, nil, large)
			if got := float64(one.Time) / float64(e.Time); math.Abs(got-ratio) > 1e-6 {
				t.Errorf("n=%d: clockwise takes %v times as long as %v, want %v", n, got, method, ratio)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	clique := machine(t, topology.Clique, 1, 4)
	bad := func(change func(s *schedule.Schedule)) *schedule.Schedule {
		s := toRankZero(2, 1)
		change(s)
		return s
	}
	step := func(s *schedule.Schedule) *schedule.Step { return &s.Programs[1][0].Moves[0] }
	tests := []struct {
		name    string
		s       *schedule.Schedule
		members []int
		bytes   int64
		want    string
	}{
		{"nil", nil, nil, 0, "nil schedule"},
		{"too few members", toRankZero(2), []int{0}, 0, "1 members for a schedule of 2 ranks"},
		{"too many members", toRankZero(2), []int{0, 1, 2}, 0, "3 members for a schedule of 2 ranks"},
		{"unknown member", toRankZero(2), []int{0, 4}, 0, "rank 1 is replica 4, but there are 4 replicas"},
		{"negative member", toRankZero(2), []int{-1, 0}, 0, "rank 0 is replica -1, but there are 4 replicas"},
		{"member twice", toRankZero(2), []int{3, 3}, 0, "replica 3 is a member twice"},
		{"negative bytes", toRankZero(2), []int{0, 1}, -1, "-1 bytes"},
		{"no programs", &schedule.Schedule{Size: 2, Chunks: 1}, []int{0, 1}, 0, "0 programs for 2 ranks"},
		{"no chunks", bad(func(s *schedule.Schedule) { s.Chunks = 0 }), []int{0, 1}, 0, "0 chunks"},
		{"unknown peer", bad(func(s *schedule.Schedule) { step(s).Peer = 2 }), []int{0, 1}, 0, "rank 1 round 0: a message to rank 2 of 2"},
		{"negative peer", bad(func(s *schedule.Schedule) { step(s).Peer = -1 }), []int{0, 1}, 0, "a message to rank -1 of 2"},
		{"itself", bad(func(s *schedule.Schedule) { step(s).Peer = 1 }), []int{0, 1}, 0, "a message to rank 1 of 2"},
		{"chunks past the end", bad(func(s *schedule.Schedule) { step(s).Src.First = 1 }), []int{0, 1}, 0, "1 chunks from chunk 1 on, of 1"},
		{"negative chunk", bad(func(s *schedule.Schedule) { step(s).Src.First = -1 }), []int{0, 1}, 0, "1 chunks from chunk -1 on, of 1"},
		{"bad fold", bad(func(s *schedule.Schedule) {
			*step(s) = schedule.Step{Verb: schedule.RecvReduce, Peer: 0, Dst: schedule.Out(1, 1)}
		}), []int{0, 1}, 0, "rank 1 round 0: a fold of 1 chunks from chunk 1 on, of 1"},
		{"bad local fold", bad(func(s *schedule.Schedule) {
			s.Programs[1][0].Then = []schedule.Step{{Verb: schedule.Fold, Dst: schedule.Out(0, 2)}}
		}), []int{0, 1}, 0, "a fold of 2 chunks from chunk 0 on, of 1"},
		{"stride without a run", bad(func(s *schedule.Schedule) {
			s.Chunks, step(s).Src.Count, step(s).Src.Stride = 4, 2, 2
		}), []int{0, 1}, 0, "a message of 2 chunks from chunk 0 on, in runs of 0, each 2 after the one before, of 4"},
		{"stride of all chunks", bad(func(s *schedule.Schedule) {
			s.Chunks, step(s).Src = 4, schedule.In(0, 2).Strided(1, 4)
		}), []int{0, 1}, 0, "in runs of 1, each 4 after the one before, of 4"},
		{"too many runs", bad(func(s *schedule.Schedule) {
			s.Chunks, step(s).Src = 1<<30, schedule.In(0, 1<<29).Strided(1, 2)
		}), []int{0, 1}, 0, "in runs of 1, each 2 after the one before, of 1073741824"},
		{"too many chunks", bad(func(s *schedule.Schedule) { step(s).Src.Count = math.MaxInt }), []int{0, 1}, 0, "chunks from chunk 0 on, of 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if e, err := cost.Price(tt.s, tt.members, clique, tt.bytes); err == nil ||
				!strings.Contains(err.Error(), tt.want) || e != (cost.Estimate{}) {
				t.Errorf("%+v, error %v, want one with %q", e, err, tt.want)
			}
		})
	}
}

// TestStrides: a strided message costs the bytes of its chunks, of which some are longer by one here, and folding them
// takes as long as folding its runs.
func TestStrides(t *testing.T) {
	t.Parallel()
	clique := machine(t, topology.Clique, 1, 8)
	members := []int{0, 1, 2, 3, 4, 5, 6, 7}
	const bytes = 8*1000 + 5
	for c, g := range map[schedule.Collective]methods.Generator{schedule.AllGather: methods.Bruck(),
		schedule.ReduceScatter: methods.PAT(0)} {
		s, err := g.Schedule(methods.Request{Spec: methods.Spec{Collective: c, Size: 8}})
		if err != nil {
			t.Fatal(err)
		}
		runs := *s // the same without strides, in more messages
		runs.Programs = nil
		for _, p := range s.Programs {
			var q schedule.Program
			for _, r := range p {
				var moves []schedule.Step
				for _, st := range r.Moves {
					moves = st.AppendRuns(moves, s.Chunks)
				}
				q = append(q, schedule.Round{Moves: moves})
			}
			runs.Programs = append(runs.Programs, q)
		}
		price := func(s *schedule.Schedule, m cost.Model) cost.Estimate {
			e, err := m.Price(s, members, bytes)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		slow := cost.Model{Network: cost.Machine(clique), FoldBytesPerSecond: 1e6}
		have, want := price(s, slow), price(&runs, slow)
		folds := have.Time - price(s, cost.Model{Network: cost.Machine(clique)}).Time
		if have.SentBytes != want.SentBytes || have.SentBytes < 7000 ||
			(folds > 6*time.Millisecond) != c.Contract().Combines {
			t.Errorf("%v: %+v, of which folding takes %v; want as many bytes as %+v", c, have, folds, want)
		}
		messages := cost.Model{Network: cost.Machine(clique), Overhead: time.Second}
		one, several := price(s, messages).Time, price(&runs, messages).Time
		if one.Round(time.Second) != 6*time.Second || several <= one {
			t.Errorf("%v: %v, want 6s for 3 messages sent and received, and %v for more of them", c, one, several)
		}
	}
}

// TestManyRuns: a span of many runs, which are not priced all at once, has the bytes of its chunks.
func TestManyRuns(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ chunks, count, run, stride, first int }{
		{10_007, 9_001, 2, 3, 5}, {10_007, 10_007, 3, 9_999, 10_006}, {4_099, 4_096, 1, 2, 0}, {2_049, 1_025, 1, 2, 1},
	} {
		const bytes = 50_021
		s := &schedule.Schedule{Collective: schedule.Broadcast, Size: 2, Chunks: x.chunks, Programs: []schedule.Program{
			{{Moves: []schedule.Step{{Verb: schedule.Send, Peer: 1,
				Src: schedule.In(x.first, x.count).Strided(x.run, x.stride)}}}}, {},
		}}
		want := int64(0)
		for k := range x.count {
			chunk := (x.first + k/x.run*x.stride + k%x.run) % x.chunks
			want += int64((chunk+1)*bytes/x.chunks - chunk*bytes/x.chunks)
		}
		e, err := cost.Price(s, []int{0, 1}, machine(t, topology.Clique, 1, 2), bytes)
		if err != nil || e.SentBytes != want {
			t.Errorf("%+v: %d bytes, want %d; %v", x, e.SentBytes, want, err)
		}
	}
}

// Numbers that are too large stop at the greatest.
func TestHuge(t *testing.T) {
	t.Parallel()
	e := all(t, machine(t, topology.Clique, 1, 4), methods.SendToAll, schedule.AllReduce, nil, math.MaxInt64)
	if e.SentBytes != math.MaxInt64 || e.Time != math.MaxInt64 {
		t.Errorf("%+v, want the greatest numbers", e)
	}
}

func BenchmarkPrice(b *testing.B) {
	for _, n := range []int{8, 32} {
		for _, method := range []methods.Method{methods.ClockwiseRing, methods.Direct} {
			b.Run(fmt.Sprintf("method=%v/n=%d", method, n), func(b *testing.B) {
				ladder := machine(b, topology.OpenLadder, 1, n)
				for b.Loop() {
					all(b, ladder, method, schedule.AllReduce, nil, 1<<20)
				}
			})
		}
	}
}
