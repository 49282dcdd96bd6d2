package methods

import (
	"fmt"

	"gogcl.dev/methods/schedule"
)

// KNomialTree returns the Generator of collectives along a k-nomial tree, radix being k: 2 is the binomial tree, and a
// radix of the ranks or more a star. A rank's place is its distance from the root. Written with the digits of base k,
// the parent of a place has its lowest digit that is not 0 set to 0. So the places below one that ends with t zeros are
// those that differ in these t digits, next to each other.
//
// Data goes up from the near places to the far ones, and down the other way round: in the first round of a broadcast
// the root sends to places k^(L-1), 2k^(L-1), and so on, where L is ceil(log_k of the ranks). In a round a place sends
// to, or hears from, up to k-1 others.
//
//	collective   over N ranks      rounds   sent by all ranks, n bytes being the larger buffer
//	broadcast    down the tree     L        n (N-1)
//	reduce       up                L        n (N-1)
//	gather       up                L        n/N for each digit that is not 0, of all places
//	scatter      down              L        n/N for each digit that is not 0, of all places
//	all-reduce   up and down       2L       2n (N-1)
//
// An all-reduce is a reduce to rank 0 and a broadcast from there. An inner place folds its own data, and then that of
// whole trees. So the Generator does no request with RankOrder.
//
// Its schedules fail with an error if the radix is below 2.
//
// Source: Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", 2005, of the
// binomial trees. The same with digits of another base is usual.
//
//	broadcast, 4 ranks, 1 chunk, 2 rounds
//	round | rank 0 | rank 1 | rank 2 | rank 3
//	------+--------+--------+--------+-------
//	    0 | I0>2   |        | O0<0   |
//	      | then   |        |        |
//	      | O0=I0  |        |        |
//	    1 | I0>1   | O0<0   | O0>3   | O0<2
//
//	broadcast, 8 ranks, 1 chunk, 3 rounds
//	round   0   1   2
//	rank 0 ─●─ ─●─ ─●─
//	        │   │   │
//	rank 1 ─│─ ─│─ ─▼─
//	        │   │
//	rank 2 ─│─ ─▼─ ─●─
//	        │       │
//	rank 3 ─│─ ─── ─▼─
//	        │
//	rank 4 ─▼─ ─●─ ─●─
//	            │   │
//	rank 5 ─── ─│─ ─▼─
//	            │
//	rank 6 ─── ─▼─ ─●─
//	                │
//	rank 7 ─── ─── ─▼─
//
//	reduce, 8 ranks, 1 chunk, 2 rounds
//	round   0       1
//	rank 0 ─⊕─⊕─⊕─ ─⊕─
//	        │ │ │   │
//	rank 1 ─●─│─│─ ─│─
//	          │ │   │
//	rank 2 ───●─│─ ─│─
//	            │   │
//	rank 3 ─────●─ ─│─
//	                │
//	rank 4 ─⊕─⊕─⊕─ ─●─
//	        │ │ │
//	rank 5 ─●─│─│─ ───
//	          │ │
//	rank 6 ───●─│─ ───
//	            │
//	rank 7 ─────●─ ───
//
//	gather, 4 ranks, 4 chunks, 2 rounds
//	round | rank 0 | rank 1 | rank 2            | rank 3
//	------+--------+--------+-------------------+-------
//	    0 | O1<1   | I1>0   | S0[3]<3           | I3>2
//	      | then   |        | then              |
//	      | O0=I0  |        | S1[2]=I2          |
//	      |        |        | S1[3 of 2-]=S0[3] |
//	    1 | O2-3<2 | -      | S1[2-3]>0         | -
//
//draw:binomial_tree broadcast 4
//shape:binomial_tree broadcast 8
//shape:knomial_4_tree reduce 8
//draw:binomial_tree gather 4
func KNomialTree(radix int) Generator {
	tree := func(r Request) (*schedule.Builder, error) { return knomialTree(r, radix) }
	return listed{tree, func(r Request) error {
		chunks := func(r *Request) int {
			if r.Collective.Contract().PerRank() {
				return r.Size
			}
			return 1
		}
		if radix < 2 {
			return fmt.Errorf("a k-nomial tree of radix %d, want 2 or more", radix)
		}
		return onlyOf(chunks, schedule.AllReduce, schedule.Broadcast, schedule.Reduce, schedule.Gather,
			schedule.Scatter)(r)
	}}
}

func knomialTree(r Request, radix int) (*schedule.Builder, error) {
	if radix < 2 {
		return nil, fmt.Errorf("a k-nomial tree of radix %d, want 2 or more", radix)
	}
	err := r.only(schedule.AllReduce, schedule.Broadcast, schedule.Reduce, schedule.Gather, schedule.Scatter)
	if err != nil {
		return nil, err
	}
	radix = min(radix, max(r.Size, 2)) // a greater one makes the same tree
	rounds := 0
	r.knomial(radix, func(t, _, _, _ int) { rounds = max(rounds, t+1) })
	chunks := 1
	if r.Collective.Contract().PerRank() {
		chunks = r.Size
	}
	b, err := r.builder(chunks)
	if err != nil {
		return nil, err
	}
	switch r.Collective {
	case schedule.Broadcast:
		r.knomial(radix, func(t, child, parent, _ int) { b.Copy(rounds-1-t, parent, child, 0, 1) })
	case schedule.Reduce:
		r.knomial(radix, func(t, child, parent, _ int) { b.Fold(t, child, parent, 0, 1) })
	case schedule.AllReduce:
		r.knomial(radix, func(t, child, parent, _ int) {
			b.Fold(t, child, parent, 0, 1)
			b.Copy(2*rounds-1-t, parent, child, 0, 1)
		})
	case schedule.Gather:
		r.tree(radix, func(t, child, parent, first, n int) { b.Copy(t, child, parent, first, n) })
	case schedule.Scatter:
		r.tree(radix, func(t, child, parent, first, n int) { b.Copy(rounds-1-t, parent, child, first, n) })
	}
	return b, nil
}
