package methods

import (
	"slices"

	"gogcl.dev/methods/schedule"
)

// HalvingDoubling returns the Generator of the all-reduce by Rabenseifner, for data so long that bytes count, in few
// rounds: a reduce-scatter by halving, and an all-gather by doubling that takes the same steps back. Partners of the
// reduce-scatter are p/2, p/4, ..., 1 apart, where p is the greatest power of two that is not above k, the number of
// ranks. In each round a rank gives half of the chunks that it still has to do with to its partner, and folds the other
// half.
//
//	k ranks, n bytes        rounds     sent by a rank, at most     sent by all ranks
//	k = p                   2 log2 p   2n (p-1)/p                  2n (p-1)
//	k > p                   2 log2 p   2n (p-1)/p + n              2n (p-1) + 2n (k-p)
//	                        + 2
//
// The k-p ranks above a power of two are left out in the middle. Each folds its data into a neighbour in a round
// before, and gets the result from there in one after. A reduce-scatter and an all-gather alone are those of
// recursive_doubling. Each element is combined on one rank, in an order that differs between chunks. So the Generator
// does no request with RankOrder.
//
// Sources: Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004, and Thakur, Rabenseifner and
// Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.
//
//	all-reduce, 4 ranks, 4 chunks, 4 rounds
//	round | rank 0       | rank 1       | rank 2       | rank 3
//	------+--------------+--------------+--------------+-------------
//	    0 | I2-3>2       | I2-3>3       | I0-1>0       | I0-1>1
//	      | O0-1=I0-1+<2 | O0-1=I0-1+<3 | O2-3=I2-3+<0 | O2-3=I2-3+<1
//	    1 | O1>1         | O0>0         | O3>3         | O2>2
//	      | O0+<1        | O1+<0        | O2+<3        | O3+<2
//	    2 | O0>1         | O1>0         | O2>3         | O3>2
//	      | O1<1         | O0<0         | O3<3         | O2<2
//	    3 | O0-1>2       | O0-1>3       | O2-3>0       | O2-3>1
//	      | O2-3<2       | O2-3<3       | O0-1<0       | O0-1<1
//
//	all-reduce, 8 ranks, 8 chunks, 6 rounds
//	round   0         1     2   3   4     5
//	chunks  4         2     1   1   2     4
//	rank 0 ─⊕─────── ─⊕─── ─⊕─ ─▲─ ─▲─── ─▲───────
//	        │         │     │   │   │     │
//	rank 1 ─│─⊕───── ─│─⊕─ ─⊕─ ─▼─ ─│─▲─ ─│─▲─────
//	        │ │       │ │           │ │   │ │
//	rank 2 ─│─│─⊕─── ─⊕─│─ ─⊕─ ─▲─ ─▼─│─ ─│─│─▲───
//	        │ │ │       │   │   │     │   │ │ │
//	rank 3 ─│─│─│─⊕─ ───⊕─ ─⊕─ ─▼─ ───▼─ ─│─│─│─▲─
//	        │ │ │ │                       │ │ │ │
//	rank 4 ─⊕─│─│─│─ ─⊕─── ─⊕─ ─▲─ ─▲─── ─▼─│─│─│─
//	          │ │ │   │     │   │   │       │ │ │
//	rank 5 ───⊕─│─│─ ─│─⊕─ ─⊕─ ─▼─ ─│─▲─ ───▼─│─│─
//	            │ │   │ │           │ │       │ │
//	rank 6 ─────⊕─│─ ─⊕─│─ ─⊕─ ─▲─ ─▼─│─ ─────▼─│─
//	              │     │   │   │     │         │
//	rank 7 ───────⊕─ ───⊕─ ─⊕─ ─▼─ ───▼─ ───────▼─
//
//	all-reduce, 6 ranks, 4 chunks, 6 rounds
//	round   0   1     2   3   4     5
//	chunks  4   2     1   1   2     4
//	rank 0 ─⊕─ ───⊕─ ─⊕─ ─▲─ ───▲─ ─●─
//	        │     │   │   │     │   │
//	rank 1 ─●─ ───│─ ─│─ ─│─ ───│─ ─▼─
//	              │   │   │     │
//	rank 2 ─⊕─ ─⊕─│─ ─⊕─ ─▼─ ─▲─│─ ─●─
//	        │   │ │           │ │   │
//	rank 3 ─●─ ─│─│─ ─── ─── ─│─│─ ─▼─
//	            │ │           │ │
//	rank 4 ─── ─│─⊕─ ─⊕─ ─▲─ ─│─▼─ ───
//	            │     │   │   │
//	rank 5 ─── ─⊕─── ─⊕─ ─▼─ ─▼─── ───
//
//draw:halving_doubling all-reduce 4
//shape:halving_doubling all-reduce 8
//shape:halving_doubling all-reduce 6
func HalvingDoubling() Generator {
	return described{halvingDoubling, halvingDoublingTraffic, onlyOf(func(r *Request) int {
		if r.Collective == schedule.AllReduce {
			return r.fold().p
		}
		return r.Size
	}, schedule.AllReduce, schedule.ReduceScatter, schedule.AllGather)}
}

func halvingDoubling(r Request) (*schedule.Schedule, error) {
	if err := r.only(schedule.AllReduce, schedule.ReduceScatter, schedule.AllGather); err != nil {
		return nil, err
	}
	if r.Collective != schedule.AllReduce {
		if _, err := r.builder(r.Size); err != nil {
			return nil, err
		}
		r.Method = RecursiveDoubling
		return Build(r.Spec)
	}
	f := r.fold()
	b, err := r.builder(f.p)
	if err != nil {
		return nil, err
	}
	last := 2*(f.before()+f.rounds()) - 1
	for j := range f.extra {
		rank := f.first(j)
		b.Fold(0, rank+1, rank, 0, f.p)
		b.Copy(last, rank, rank+1, 0, f.p)
	}
	for t := range f.rounds() {
		round, half := f.before()+t, f.p>>(t+1)
		for j := range f.p {
			partner := j ^ half
			given := partner / half * half // the first chunk on the partner's side
			b.Fold(round, f.first(j), f.first(partner), given, half)
			b.Copy(last-round, f.first(partner), f.first(j), given, half)
		}
	}
	return b.Build()
}

func halvingDoublingTraffic(r Request) (*schedule.Traffic, error) {
	if err := r.only(schedule.AllReduce, schedule.ReduceScatter, schedule.AllGather); err != nil {
		return nil, err
	}
	if r.Collective != schedule.AllReduce {
		r.Method = RecursiveDoubling
		return r.Spec.Traffic()
	}
	f := r.fold()
	t := &schedule.Traffic{Size: r.Size, Chunks: f.p}
	half := func(step int) int { return f.p >> (step + 1) }
	f.traffic(t, f.p, f.p, true, true, half, func(step, _ int) int { return half(step) })
	back := slices.Clone(t.Rounds[f.before() : f.before()+f.rounds()])
	slices.Reverse(back)
	for i := range back {
		back[i].Flows = slices.Clone(back[i].Flows)
		for j := range back[i].Flows {
			back[i].Flows[j].Fold = false
		}
	}
	t.Rounds = slices.Insert(t.Rounds, f.before()+f.rounds(), back...)
	return t, nil
}
