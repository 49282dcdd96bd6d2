package cost_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
)

// TestPublishedCongestion compares prices with published figures of congestion of two methods of all-reduce on tori of
// powers of two: how much longer the links take than those of a method that sends the fewest bytes and shares no link.
// The methods are those of De Sensi et al., "Swing: Short-cutting Rings for Higher Bandwidth Allreduce", NSDI 2024. The
// convention in which all fourteen numbers come out:
//
//   - Latencies are 0, and each link carries one byte a second in each direction. A message takes the shorter way
//     round, the first dimension first, and up where both ways are as long.
//   - An all-reduce is a reduce-scatter, in whose step s each rank sends n/2^(s+1) of n bytes, and an all-gather with
//     the same steps back. A round takes as long as its busiest link. The rounds are summed.
//   - The fewest bytes are 2n for each rank, without the factor 1-1/p.
//   - Swing runs 2D collectives at once on D dimensions, of n/2D bytes each: two begin in each dimension, one of them
//     the mirror image of the other. A rank has 2D links to send by, so the fewest bytes take n/D seconds.
//   - Recursive doubling is near first: partners at distance 1 come first, with the most data, and dimensions take
//     turns. It runs alone, in one collective of n bytes. It sends by one link at a time, so the fewest bytes take 2n
//     seconds.
func TestPublishedCongestion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		dims            []int
		swing, doubling string
	}{
		{[]int{8}, "1.1250", "1.5000"},
		{[]int{64}, "2.1094", "3.0000"},
		{[]int{8, 8}, "1.0781", "1.3125"},
		{[]int{16, 16}, "1.1367", "1.4062"},
		{[]int{64, 64}, "1.1843", "1.4766"},
		{[]int{8, 8, 8}, "1.0254", "1.1484"},
		{[]int{8, 8, 8, 8}, "1.0071", "1.0693"},
	} {
		d := float64(len(tt.dims))
		swing := must[*schedule.Traffic](t)(methods.SwingTraffic(tt.dims, true))
		if got := fmt.Sprintf("%.4f", busiest(t, swing, tt.dims)*d); got != tt.swing {
			t.Errorf("swing on %v: congestion %s, want %s", tt.dims, got, tt.swing)
		}
		if got := fmt.Sprintf("%.4f", busiest(t, nearFirst(tt.dims), tt.dims)/2); got != tt.doubling {
			t.Errorf("recursive doubling on %v: congestion %s, want %s", tt.dims, got, tt.doubling)
		}
	}
}

// busiest is how many seconds a torus takes on which a link carries as much in a second as the whole data has.
func busiest(t *testing.T, traffic *schedule.Traffic, dims []int) float64 {
	t.Helper()
	torus := must[cost.Network](t)(cost.Torus(dims, cost.Link{BytesPerSecond: 1 << 20}))
	e := must[cost.Estimate](t)(cost.Model{Network: torus}.PriceTraffic(traffic, upTo(traffic.Size), 1<<20))
	return e.Time.Seconds()
}

// nearFirst is the traffic of recursive doubling on a torus of powers of two, all sides as long.
func nearFirst(dims []int) *schedule.Traffic {
	size := 1
	for _, d := range dims {
		size *= d
	}
	t := &schedule.Traffic{Size: size, Chunks: size}
	var steps []schedule.Alike
	for s := range bits.Len(uint(size)) - 1 {
		stride := 1 << (s / len(dims)) // the distance
		for _, d := range dims[:s%len(dims)] {
			stride *= d
		}
		steps = append(steps, schedule.Alike{Times: 1,
			Flows: []schedule.Flow{{Stride: stride, Radix: 2, Move: 1, Chunks: size >> (s + 1)}}})
	}
	t.Rounds = append(t.Rounds, steps...)
	for _, step := range slices.Backward(steps) {
		t.Rounds = append(t.Rounds, step)
	}
	return t
}

// The numbers for eight ranks, by hand. Of n bytes on a ring, links carry n/4, n/8 and 3n/16 in the steps of Swing: a
// link has one message each way in the first two, and three of n/16 in the third, whose partners are 3 apart. Alone,
// with all of the data, Swing has n/2, n/4 and two of n/8 on a link. Recursive doubling has n/2 in each step: one
// message of n/2, two of n/4, and four of n/8, of partners that are 4 apart. The steps come twice.
func TestCongestionByHand(t *testing.T) {
	t.Parallel()
	dims := []int{8}
	if got, want := busiest(t, must[*schedule.Traffic](t)(methods.SwingTraffic(dims, true)), dims), 9./8; got != want {
		t.Errorf("swing both ways: %v, want %v", got, want)
	}
	if got, want := busiest(t, must[*schedule.Traffic](t)(methods.SwingTraffic(dims, false)), dims), 2.; got != want {
		t.Errorf("swing alone: %v, want %v", got, want)
	}
	if got, want := busiest(t, nearFirst(dims), dims), 3.; got != want {
		t.Errorf("recursive doubling: %v, want %v", got, want)
	}
}

// TestSwingIsPricedAsItsSchedule: without an overhead, messages of one run of chunks each cost as much as all in one.
func TestSwingIsPricedAsItsSchedule(t *testing.T) {
	t.Parallel()
	for _, dims := range [][]int{{2}, {8}, {64}, {2, 4}, {8, 8}, {4, 4, 4}} {
		for _, concurrent := range []bool{false, true} {
			s := must[*schedule.Schedule](t)(methods.Swing(dims, concurrent))
			traffic := must[*schedule.Traffic](t)(methods.SwingTraffic(dims, concurrent))
			// Powers of two, so that no sum is rounded.
			m := cost.Model{FoldBytesPerSecond: 1 << 31, Network: must[cost.Network](t)(
				cost.Torus(dims, cost.Link{BytesPerSecond: 1 << 30, Latency: us}))}
			bytes := int64(s.Chunks) << 14
			want := must[cost.Estimate](t)(m.Price(s, upTo(s.Size), bytes))
			if got := must[cost.Estimate](t)(m.PriceTraffic(traffic, upTo(s.Size), bytes)); got != want {
				t.Errorf("%v concurrent=%v: %+v, want %+v", dims, concurrent, got, want)
			}
		}
	}
}
