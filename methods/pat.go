package methods

import (
	"fmt"
	"math/bits"
	"slices"

	"gogcl.dev/methods/schedule"
)

// PAT returns the Generator of the all-gather and the reduce-scatter by parallel aggregated trees, for many ranks and
// little data. Each chunk goes down a binomial tree from its owner, first to the rank far away and last to the
// neighbour, and those of all owners go together. So the long ways carry one chunk, and the short ones many. In the
// all-gather by Bruck and in recursive_doubling it is the other way round. The chunks of a message lie apart: it is a
// strided span, see schedule.Span. The reduce-scatter takes the same steps back, and folds.
//
// most bounds how many chunks a message has, and so what a rank must keep for others. 0 means no bound.
//
//	k ranks, n bytes, p the power of two from k on    rounds = messages of a rank    sent by each rank
//	no bound, or most at least p/2                    log2 p                         n (k-1)/k
//	most at least 2^a and less than 2^(a+1)           a + min(p/2^a, k) - 1          n (k-1)/k
//
// With a bound, the first rounds spread each chunk to 2^a ranks that lie p/2^a apart. From there on a round is one edge
// of the trees in between, which each of the 2^a ranks passes on for as many owners.
//
// Each element is combined on one rank, and not in the order of the ranks. So the Generator does no request with
// RankOrder.
//
// Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", 2025,
// arxiv.org/abs/2506.20252. The order of the edges under a bound is not that of the paper.
//
//	all-gather, 4 ranks, 4 chunks, 2 rounds
//	round | rank 0   | rank 1   | rank 2   | rank 3
//	------+----------+----------+----------+---------
//	    0 | I0>2     | I1>3     | I2>0     | I3>1
//	      | O2<2     | O3<3     | O0<0     | O1<1
//	      | then     | then     | then     | then
//	      | O0=I0    | O1=I1    | O2=I2    | O3=I3
//	    1 | O2:2x2>1 | O3:2x2>2 | O0:2x2>3 | O1:2x2>0
//	      | O1:2x2<3 | O2:2x2<0 | O3:2x2<1 | O0:2x2<2
//
//	reduce-scatter, 4 ranks, 4 chunks, 2 rounds
//	round | rank 0                    | rank 1                    | rank 2              | rank 3
//	------+---------------------------+---------------------------+---------------------+--------------------
//	    0 | I1:2x2>3                  | I2:2x2>0                  | I3:2x2>1            | I0:2x2>2
//	      | S0[2:2x2 of 0-]=I2:2x2+<1 | S0[3:2x2 of 1-]=I3:2x2+<2 | S0[0:2x2]=I0:2x2+<3 | S0[1:2x2]=I1:2x2+<0
//	    1 | S0[2 of 0-]>2             | S0[3 of 1-]>3             | S0[0]>0             | S0[1]>1
//	      | O0=S0[0]+<2               | O1=S0[1]+<3               | O2=S0[2 of 0-]+<0   | O3=S0[3 of 1-]+<1
//
//	all-gather, 8 ranks, 8 chunks, 3 rounds
//	round   0         1           2
//	chunks  1         2           4
//	rank 0 ─▲─────── ─●─────▲─── ─●───▲─
//	        │         │     │     │   │
//	rank 1 ─│─▲───── ─│─●───│─▲─ ─▼─●─│─
//	        │ │       │ │   │ │     │ │
//	rank 2 ─│─│─▲─── ─▼─│─●─│─│─ ─●─▼─│─
//	        │ │ │       │ │ │ │   │   │
//	rank 3 ─│─│─│─▲─ ─●─▼─│─│─│─ ─▼─●─│─
//	        │ │ │ │   │   │ │ │     │ │
//	rank 4 ─▼─│─│─│─ ─│─●─▼─│─│─ ─●─▼─│─
//	          │ │ │   │ │   │ │   │   │
//	rank 5 ───▼─│─│─ ─▼─│─●─│─│─ ─▼─●─│─
//	            │ │     │ │ │ │     │ │
//	rank 6 ─────▼─│─ ───▼─│─●─│─ ─●─▼─│─
//	              │       │   │   │   │
//	rank 7 ───────▼─ ─────▼───●─ ─▼───●─
//
//draw:pat all-gather 4
//draw:pat reduce-scatter 4
//shape:pat all-gather 8
func PAT(most int) Generator {
	return described{
		func(r Request) (*schedule.Schedule, error) { return pat(r, most) },
		func(r Request) (*schedule.Traffic, error) { return trafficOfPAT(r, most) },
		func(r Request) error {
			if _, err := patEdges(r, most); err != nil {
				return err
			}
			return r.fits(r.Size)
		},
	}
}

func pat(r Request, most int) (*schedule.Schedule, error) {
	edges, err := patEdges(r, most)
	if err != nil {
		return nil, err
	}
	b, err := r.builder(r.Size)
	if err != nil {
		return nil, err
	}
	k := r.Size
	for t, e := range edges {
		n := e.chunks(k)
		for rank := range k {
			from := (rank - e.distance + k) % k
			first := ((rank-e.offset-(n-1)*e.every)%k + k) % k // the chunk that has come furthest
			if r.Collective == schedule.AllGather {
				b.CopyStrided(t, from, rank, first, n, 1, e.every)
			} else {
				b.FoldStrided(len(edges)-1-t, rank, from, first, n, 1, e.every)
			}
		}
	}
	return b.Build()
}

func trafficOfPAT(r Request, most int) (*schedule.Traffic, error) {
	edges, err := patEdges(r, most)
	if err != nil {
		return nil, err
	}
	out := &schedule.Traffic{Size: r.Size, Chunks: r.Size}
	for _, e := range edges {
		flow := schedule.Flow{Move: e.distance, Chunks: e.chunks(r.Size)}
		if r.Collective == schedule.ReduceScatter {
			flow.Move, flow.Fold = -e.distance, true
		}
		out.Rounds = append(out.Rounds, schedule.Alike{Times: 1, Flows: []schedule.Flow{flow}})
	}
	if r.Collective == schedule.ReduceScatter {
		slices.Reverse(out.Rounds)
	}
	return out, nil
}

// patEdge is a round of the all-gather: each rank receives, from the rank so far behind it, the chunks whose owners
// are offset, offset+every, offset+2*every and so on behind it, as long as that is less than once round the circle.
type patEdge struct{ distance, offset, every int }

// chunks is how many chunks each of k ranks receives.
func (e patEdge) chunks(k int) int { return (k - e.offset + e.every - 1) / e.every }

// patEdges are the rounds for a request, and messages of so many chunks at most.
func patEdges(r Request, most int) (out []patEdge, err error) {
	if most < 0 {
		return nil, fmt.Errorf("pat with messages of %d chunks, want 1 or more, or 0 for no bound", most)
	}
	if err := r.only(schedule.ReduceScatter, schedule.AllGather); err != nil {
		return nil, err
	}
	k := r.Size
	p := 1 << bits.Len(uint(k-1))
	every := p
	for every > 1 && (most == 0 || p/every <= most/2 || every == 2 && p/2 <= most) {
		every /= 2
		out = append(out, patEdge{every, every, 2 * every})
	}
	for offset := 1; offset < min(every, k); offset++ {
		out = append(out, patEdge{offset & -offset, offset, every})
	}
	return out, nil
}
