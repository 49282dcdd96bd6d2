package methods

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/methods/schedule"
)

// Hierarchical returns the Generator of the all-reduce in groups of groups, as one schedule: a reduce-scatter inside
// groups of inner ranks, an all-reduce of each fragment among the ranks that have it, one in each group, and an
// all-gather inside. So what leaves a group is an inner-th of the data. With outer, the all-reduce between is the same
// again: groups of inner ranks stand in groups of outer[0] such groups, these in groups of outer[1], and so on. The
// last level has all that are left: Hierarchical(8) over 64 ranks has 8 groups of 8. Ranks of a group follow each
// other.
//
// Inside the innermost groups everyone sends to everyone, in one round. Between groups it is Circulant, with few
// messages for any number of groups.
//
//	N ranks in groups of g, M = N/g of them, n bytes
//	chunks   rounds                sent by each rank   of which to other groups   sent by all ranks
//	N        2 + 2 ceil(log2 M)    2n (N-1)/N          2 n/g (M-1)/M              2n (N-1)
//
// With outer there are 2 ceil(log2 m) rounds for each level of m groups. A level of 1 has none.
//
// gcl's Hybrid goes the same way in three calls, the first and the last on peer memory. Each element is combined on one
// rank, and not in the order of the ranks. So the Generator does no request with RankOrder. Ranks that the groups do
// not divide are an error that is errors.ErrUnsupported. A group of fewer than 1 is an error.
//
// Source: Jia et al., "Highly Scalable Deep Learning Training System with Mixed-Precision", 2018, have a hierarchical
// all-reduce by a reduce inside. That by a reduce-scatter, so that all ranks of a group send, is usual, as in Mikami et
// al., "Massively Distributed SGD: ImageNet/ResNet-50 Training in a Flash", 2018, on a torus.
//
//	all-reduce, 4 ranks, 4 chunks, 4 rounds
//	round | rank 0       | rank 1       | rank 2       | rank 3
//	------+--------------+--------------+--------------+-------------
//	    0 | I2-3>1       | I0-1>0       | I2-3>3       | I0-1>2
//	      | O0-1=I0-1+<1 | O2-3=I2-3+<0 | O0-1=I0-1+<3 | O2-3=I2-3+<2
//	    1 | O1>2         | O3>3         | O0>0         | O2>1
//	      | O0+<2        | O2+<3        | O1+<0        | O3+<1
//	    2 | O0>2         | O2>3         | O1>0         | O3>1
//	      | O1<2         | O3<3         | O0<0         | O2<1
//	    3 | O0-1>1       | O2-3>0       | O0-1>3       | O2-3>2
//	      | O2-3<1       | O0-1<0       | O2-3<3       | O0-1<2
//
//	all-reduce, 9 ranks, 9 chunks, 6 rounds
//	round   0       1               2               3               4               5
//	chunks  3       1               1               1               1               3
//	rank 0 ─⊕───⊕─ ─⊕───────●───── ─●───────⊕───── ─▲───────●───── ─●───────▲───── ─▲───▲─
//	        │   │   │       │       │       │       │       │       │       │       │   │
//	rank 1 ─⊕─⊕─│─ ─│─⊕─────│─●─── ─│─●─────│─⊕─── ─│─▲─────│─●─── ─│─●─────│─▲─── ─▼─▲─│─
//	          │ │   │ │     │ │     │ │     │ │     │ │     │ │     │ │     │ │       │ │
//	rank 2 ───⊕─⊕─ ─│─│─⊕───│─│─●─ ─│─│─●───│─│─⊕─ ─│─│─▲───│─│─●─ ─│─│─●───│─│─▲─ ───▼─▼─
//	                │ │ │   │ │ │   │ │ │   │ │ │   │ │ │   │ │ │   │ │ │   │ │ │
//	rank 3 ─⊕───⊕─ ─●─│─│─⊕─│─│─│─ ─⊕─│─│─●─│─│─│─ ─●─│─│─▲─│─│─│─ ─▼─│─│─●─│─│─│─ ─▲───▲─
//	        │   │     │ │ │ │ │ │     │ │ │ │ │ │     │ │ │ │ │ │     │ │ │ │ │ │   │   │
//	rank 4 ─⊕─⊕─│─ ─⊕─●─│─│─│─│─│─ ─●─⊕─│─│─│─│─│─ ─▲─●─│─│─│─│─│─ ─●─▼─│─│─│─│─│─ ─▼─▲─│─
//	          │ │   │   │ │ │ │ │   │   │ │ │ │ │   │   │ │ │ │ │   │   │ │ │ │ │     │ │
//	rank 5 ───⊕─⊕─ ─│─⊕─●─│─│─│─│─ ─│─●─⊕─│─│─│─│─ ─│─▲─●─│─│─│─│─ ─│─●─▼─│─│─│─│─ ───▼─▼─
//	                │ │   │ │ │ │   │ │   │ │ │ │   │ │   │ │ │ │   │ │   │ │ │ │
//	rank 6 ─⊕───⊕─ ─│─│───●─⊕─│─│─ ─│─│───⊕─●─│─│─ ─│─│───●─▼─│─│─ ─│─│───▼─●─│─│─ ─▲───▲─
//	        │   │   │ │       │ │   │ │       │ │   │ │       │ │   │ │       │ │   │   │
//	rank 7 ─⊕─⊕─│─ ─●─│───────⊕─│─ ─⊕─│───────●─│─ ─●─│───────▼─│─ ─▼─│───────●─│─ ─▼─▲─│─
//	          │ │     │         │     │         │     │         │     │         │     │ │
//	rank 8 ───⊕─⊕─ ───●─────────⊕─ ───⊕─────────●─ ───●─────────▼─ ───▼─────────●─ ───▼─▼─
//
//draw:hierarchical_8 all-reduce 4 inner=2
//shape:hierarchical_8 all-reduce 9 inner=3
func Hierarchical(inner int, outer ...int) Generator {
	levels := append([]int{inner}, outer...)
	return swept(func(r Request) ([]sweep, error) { return hierarchical(r, levels) })
}

func hierarchical(r Request, levels []int) ([]sweep, error) {
	if err := r.only(schedule.AllReduce); err != nil {
		return nil, err
	}
	for i, g := range levels {
		if g < 1 {
			return nil, fmt.Errorf("level %d of a hierarchy has groups of %d, want 1 or more", i, g)
		}
	}
	left := r.Size
	for _, g := range levels {
		if left%g != 0 {
			return nil, fmt.Errorf("%d ranks are not whole groups of %v: %w", r.Size, levels,
				errors.ErrUnsupported)
		}
		left /= g
	}
	s := sweep{}
	for i, a := range axesOf(append(slices.Clone(levels), left)) {
		if i == 0 {
			s = append(s, directLeg(a))
		} else {
			s = append(s, circulantLeg(a))
		}
	}
	return []sweep{s}, nil
}
