package methods

import (
	"math/bits"

	"gogcl.dev/methods/schedule"
)

// doublingWays are those of recursive_doubling: partners at distance 1, 2, 4, ..., so that a collective takes
// about log2(k) rounds. It is for messages so short that rounds count and bytes do not.
//
//	collective       algorithm             rounds (k a power of two)    sent per rank, in pieces of n/k
//	all-reduce       recursive doubling    log2 k                       k log2 k
//	reduce-scatter   recursive halving     log2 k                       k-1
//	all-gather       recursive doubling    log2 k                       k-1
//	all-to-all       Bruck's               log2 k                       (k/2) log2 k
//	broadcast        binomial tree         log2 k                       k at every sender
//
// Where k is not a power of two, the all-to-all and the broadcast take the next whole number of rounds. The other
// three leave k-p ranks out, p being the power of two below k: an extra rank hands its data to its partner in a round
// before and gets the result in one after. See Thakur, Rabenseifner and Gropp, "Optimization of Collective
// Communication Operations in MPICH", 2005, and Bruck et al., "Efficient Algorithms for All-to-All Communications",
// 1997.
var doublingRecipes = recipes{
	schedule.AllReduce:     {chunks: whole, program: Spec.butterfly, folds: true, traffic: Spec.butterflyTraffic},
	schedule.ReduceScatter: {chunks: perRank, program: Spec.halving, folds: true, traffic: Spec.halvingTraffic},
	schedule.AllGather:     {chunks: perRank, program: Spec.gatherDoubling, folds: true, traffic: Spec.gatherTraffic},
	schedule.AllToAll:      {chunks: perRank, program: Spec.bruck, traffic: Spec.bruckTraffic},
	schedule.Broadcast:     {chunks: whole, program: Spec.binomial, traffic: Spec.binomialTraffic},
}

// fold maps the k ranks onto p active ones, p being the greatest power of two that is not above k: the first 2(k-p)
// ranks are pairs of an active one and an extra one, the others are active by themselves.
type fold struct{ p, extra int }

func (s Spec) fold() fold {
	p := 1 << (bits.Len(uint(s.Size)) - 1)
	return fold{p, s.Size - p}
}

// first is the first rank, and so the first piece, of active rank j. Those of j end where those of j+1 begin.
func (f fold) first(j int) int { return min(2*j, j+f.extra) }

// active is the number of a rank among the active ones, and whether it is one.
func (f fold) active(rank int) (j int, ok bool) {
	if rank < 2*f.extra {
		return rank / 2, rank%2 == 0
	}
	return rank - f.extra, true
}

// rounds is the number of rounds among the active ranks.
func (f fold) rounds() int { return bits.Len(uint(f.p)) - 1 }

// before is 1 if there is a round in which extra ranks hand over their data, else 0.
func (f fold) before() int { return min(f.extra, 1) }

// paired reports whether an active rank has an extra one.
func (f fold) paired(j int) bool { return j < f.extra }

// butterfly is the all-reduce: everything is exchanged with the partner at distance 1, 2, 4, .... What is sent and
// what is written never is the same slot.
//
//	all-reduce, 3 ranks, 1 chunk, 3 rounds
//	round | rank 0      | rank 1 | rank 2
//	------+-------------+--------+------------
//	    0 | S0[0]=I0+<1 | I0>0   |
//	    1 | S0[0]>2     |        | I0>0
//	      | O0=S0[0]+<2 |        | S1[0]=I0+<0
//	    2 | O0>1        | O0<0   |
//	      |             |        | then
//	      |             |        | O0=S1[0]
//
//	all-reduce, 8 ranks, 1 chunk, 3 rounds
//	round   0   1     2
//	rank 0 ─⊕─ ─⊕─── ─⊕───────
//	        │   │     │
//	rank 1 ─⊕─ ─│─⊕─ ─│─⊕─────
//	            │ │   │ │
//	rank 2 ─⊕─ ─⊕─│─ ─│─│─⊕───
//	        │     │   │ │ │
//	rank 3 ─⊕─ ───⊕─ ─│─│─│─⊕─
//	                  │ │ │ │
//	rank 4 ─⊕─ ─⊕─── ─⊕─│─│─│─
//	        │   │       │ │ │
//	rank 5 ─⊕─ ─│─⊕─ ───⊕─│─│─
//	            │ │       │ │
//	rank 6 ─⊕─ ─⊕─│─ ─────⊕─│─
//	        │     │         │
//	rank 7 ─⊕─ ───⊕─ ───────⊕─
//
//draw:recursive_doubling all-reduce 3
//shape:recursive_doubling all-reduce 8
func (s Spec) butterfly(rank int) schedule.Program {
	f := s.fold()
	p := make(schedule.Program, f.rounds()+2*f.before())
	j, ok := f.active(rank)
	if !ok {
		p[0].Moves = append(p[0].Moves, send(schedule.In(0, 1), rank-1))
		p[len(p)-1].Moves = append(p[len(p)-1].Moves, recv(schedule.Out(0, 1), rank-1))
		return p
	}
	cur := schedule.In(0, 1)
	if f.paired(j) {
		cur = schedule.Tmp(0, 0, 1)
		p[0].Moves = append(p[0].Moves, recvReduce(cur, schedule.In(0, 1), rank+1))
	}
	for t := range f.rounds() {
		r := &p[f.before()+t]
		partner := f.first(j ^ 1<<t)
		next := schedule.Tmp((t+1)%2, 0, 1)
		if last := t == f.rounds()-1; last && cur.Buf == schedule.Scratch {
			next = schedule.Out(0, 1)
		}
		r.Moves = append(r.Moves, send(cur, partner), recvReduce(next, cur, partner))
		cur = next
	}
	if cur.Buf == schedule.Scratch { // after one round, which sends the Input
		r := &p[len(p)-1]
		r.Then = append(r.Then, move(schedule.Out(0, 1), cur))
	}
	if f.paired(j) {
		p[len(p)-1].Moves = append(p[len(p)-1].Moves, send(schedule.Out(0, 1), rank+1))
	}
	return p
}

// halving is the reduce-scatter: the partner at half the distance gets the half of the pieces that is on its side,
// until only the own ones are left.
//
//	reduce-scatter, 4 ranks, 4 chunks, 2 rounds
//	round | rank 0          | rank 1            | rank 2          | rank 3
//	------+-----------------+-------------------+-----------------+------------------
//	    0 | I2-3>2          | I2-3>3            | I0-1>0          | I0-1>1
//	      | S1[0-1]=I0-1+<2 | S1[0-1]=I0-1+<3   | S1[2-3]=I2-3+<0 | S1[2-3]=I2-3+<1
//	    1 | S1[1 of 0-]>1   | S1[0]>0           | S1[3 of 2-]>3   | S1[2]>2
//	      | O0=S1[0]+<1     | O1=S1[1 of 0-]+<0 | O2=S1[2]+<3     | O3=S1[3 of 2-]+<2
//
//	reduce-scatter, 8 ranks, 8 chunks, 3 rounds
//	round   0         1     2
//	chunks  4         2     1
//	rank 0 ─⊕─────── ─⊕─── ─⊕─
//	        │         │     │
//	rank 1 ─│─⊕───── ─│─⊕─ ─⊕─
//	        │ │       │ │
//	rank 2 ─│─│─⊕─── ─⊕─│─ ─⊕─
//	        │ │ │       │   │
//	rank 3 ─│─│─│─⊕─ ───⊕─ ─⊕─
//	        │ │ │ │
//	rank 4 ─⊕─│─│─│─ ─⊕─── ─⊕─
//	          │ │ │   │     │
//	rank 5 ───⊕─│─│─ ─│─⊕─ ─⊕─
//	            │ │   │ │
//	rank 6 ─────⊕─│─ ─⊕─│─ ─⊕─
//	              │     │   │
//	rank 7 ───────⊕─ ───⊕─ ─⊕─
//
//draw:recursive_doubling reduce-scatter 4
//shape:recursive_doubling reduce-scatter 8
func (s Spec) halving(rank int) schedule.Program {
	f := s.fold()
	p := make(schedule.Program, f.rounds()+2*f.before())
	j, ok := f.active(rank)
	if !ok {
		p[0].Moves = append(p[0].Moves, send(schedule.In(0, s.Size), rank-1))
		p[len(p)-1].Moves = append(p[len(p)-1].Moves, recv(schedule.Out(rank, 1), rank-1))
		return p
	}
	cur := func(first, n int) schedule.Span { return schedule.In(first, n) }
	if f.paired(j) {
		cur = func(first, n int) schedule.Span { return schedule.Part(0, 0, first, n) }
		p[0].Moves = append(p[0].Moves, recvReduce(cur(0, s.Size), schedule.In(0, s.Size), rank+1))
	}
	lo, hi := 0, f.p // the active ranks whose pieces are still here
	for t := range f.rounds() {
		half := (hi - lo) / 2
		keep, give, partner := [2]int{lo, lo + half}, [2]int{lo + half, hi}, j+half
		if j >= lo+half {
			keep, give, partner = give, keep, j-half
		}
		lo, hi = keep[0], keep[1]
		first, n := f.first(lo), f.first(hi)-f.first(lo)
		given := cur(f.first(give[0]), f.first(give[1])-f.first(give[0]))
		dst := schedule.Tmp(1+t%2, first, n)
		if n == 1 {
			dst = schedule.Out(first, 1)
		}
		r := &p[f.before()+t]
		to := f.first(partner)
		r.Moves = append(r.Moves, send(given, to), recvReduce(dst, cur(first, n), to))
		cur = func(g, n int) schedule.Span { return schedule.Part(1+t%2, first, g, n) }
	}
	if f.paired(j) {
		r := &p[len(p)-1]
		r.Moves = append(r.Moves, send(cur(rank+1, 1), rank+1))
		r.Then = append(r.Then, move(schedule.Out(rank, 1), cur(rank, 1)))
	}
	return p
}

// gatherDoubling is the all-gather: partners exchange all the pieces that they have.
//
//	all-gather, 4 ranks, 4 chunks, 2 rounds
//	round | rank 0 | rank 1 | rank 2 | rank 3
//	------+--------+--------+--------+-------
//	    0 | I0>1   | I1>0   | I2>3   | I3>2
//	      | O1<1   | O0<0   | O3<3   | O2<2
//	      | then   | then   | then   | then
//	      | O0=I0  | O1=I1  | O2=I2  | O3=I3
//	    1 | O0-1>2 | O0-1>3 | O2-3>0 | O2-3>1
//	      | O2-3<2 | O2-3<3 | O0-1<0 | O0-1<1
//
//	all-gather, 6 ranks, 6 chunks, 4 rounds
//	round   0   1    2             3
//	chunks  1                      6
//	rank 0 ─▲─ ─▲2─ ───────●4─▲── ─●─
//	        │   │          │  │    │
//	rank 1 ─●─ ─│── ───────│──│── ─▼─
//	            │          │  │
//	rank 2 ─▲─ ─▼── ─●4─▲──│──│── ─●─
//	        │        │  │  │  │    │
//	rank 3 ─●─ ──── ─│──│──│──│── ─▼─
//	                 │  │  │  │
//	rank 4 ─── ─▲── ─│──│──▼──●2─ ───
//	            │    │  │
//	rank 5 ─── ─▼── ─▼──●2─────── ───
//
//draw:recursive_doubling all-gather 4
//shape:recursive_doubling all-gather 6
func (s Spec) gatherDoubling(rank int) schedule.Program {
	f := s.fold()
	p := make(schedule.Program, f.rounds()+2*f.before())
	j, ok := f.active(rank)
	if !ok {
		p[0].Moves = append(p[0].Moves, send(schedule.In(rank, 1), rank-1))
		p[len(p)-1].Moves = append(p[len(p)-1].Moves, recv(schedule.Out(0, s.Size), rank-1))
		return p
	}
	if f.paired(j) {
		p[0].Moves = append(p[0].Moves, recv(schedule.Out(rank+1, 1), rank+1))
	}
	p[0].Then = append(p[0].Then, keep(rank, 1))
	for t := range f.rounds() {
		lo := j >> t << t
		there := lo ^ 1<<t
		r := &p[f.before()+t]
		have := schedule.Out(f.first(lo), f.first(lo+1<<t)-f.first(lo))
		if t == 0 && f.before() == 0 {
			have = schedule.In(rank, 1)
		}
		partner := f.first(j ^ 1<<t)
		r.Moves = append(r.Moves, send(have, partner),
			recv(schedule.Out(f.first(there), f.first(there+1<<t)-f.first(there)), partner))
	}
	if f.paired(j) {
		p[len(p)-1].Moves = append(p[len(p)-1].Moves, send(schedule.Out(0, s.Size), rank+1))
	}
	return p
}

// binomial is the broadcast: in round t the 2^t ranks that have the data, counted from the root, each send it to the
// one 2^t further.
//
//	broadcast, 4 ranks, 1 chunk, 2 rounds
//	round | rank 0 | rank 1 | rank 2 | rank 3
//	------+--------+--------+--------+-------
//	    0 | I0>1   | O0<0   |        |
//	      | then   |        |        |
//	      | O0=I0  |        |        |
//	    1 | I0>2   | O0>3   | O0<0   | O0<1
//
//	broadcast, 8 ranks, 1 chunk, 3 rounds
//	round   0   1     2
//	rank 0 ─●─ ─●─── ─●───────
//	        │   │     │
//	rank 1 ─▼─ ─│─●─ ─│─●─────
//	            │ │   │ │
//	rank 2 ─── ─▼─│─ ─│─│─●───
//	              │   │ │ │
//	rank 3 ─── ───▼─ ─│─│─│─●─
//	                  │ │ │ │
//	rank 4 ─── ───── ─▼─│─│─│─
//	                    │ │ │
//	rank 5 ─── ───── ───▼─│─│─
//	                      │ │
//	rank 6 ─── ───── ─────▼─│─
//	                        │
//	rank 7 ─── ───── ───────▼─
//
//draw:recursive_doubling broadcast 4
//shape:recursive_doubling broadcast 8
func (s Spec) binomial(rank int) schedule.Program {
	k := s.Size
	v := (rank - s.Root + k) % k
	p := make(schedule.Program, s.treeRounds())
	for t := range p {
		step := 1 << t
		switch {
		case v < step && v+step < k:
			src := schedule.Out(0, 1)
			if v == 0 {
				src = schedule.In(0, 1)
			}
			p[t].Moves = append(p[t].Moves, send(src, (rank+step)%k))
		case v >= step && v < 2*step:
			p[t].Moves = append(p[t].Moves, recv(schedule.Out(0, 1), (rank-step+k)%k))
		}
	}
	if v == 0 {
		p[0].Then = append(p[0].Then, keep(0, 1))
	}
	return p
}

// bruck is the all-to-all: the block for the rank i places further travels by the binary digits of i. In round t all
// blocks with digit t set, packed into one message, go to the rank 2^t further. The first round of the program only
// packs. Slots 0 and 1 in turn are the packed message; slot 2+t is what arrived for digit t.
//
//	all-to-all, 3 ranks, 3 chunks, 3 rounds, apart
//	round | rank 0   | rank 1   | rank 2
//	------+----------+----------+---------
//	    0 | then     | then     | then
//	      | S0[0]=I1 | S0[0]=I2 | S0[0]=I0
//	    1 | S0[0]>1  | S0[0]>2  | S0[0]>0
//	      | S2[0]<2  | S2[0]<0  | S2[0]<1
//	      | then     | then     | then
//	      | S1[0]=I2 | S1[0]=I0 | S1[0]=I1
//	    2 | S1[0]>2  | S1[0]>0  | S1[0]>1
//	      | S3[0]<1  | S3[0]<2  | S3[0]<0
//	      | then     | then     | then
//	      | O2=S2[0] | O0=S2[0] | O1=S2[0]
//	      | O1=S3[0] | O2=S3[0] | O0=S3[0]
//	      | O0=I0    | O1=I1    | O2=I2
//
//	all-to-all, 5 ranks, 5 chunks, 4 rounds
//	round   0   1       2           3
//	chunks      2       2           1
//	rank 0 ─── ─●───▲─ ─●─────▲─── ─▲───●─
//	            │   │   │     │     │   │
//	rank 1 ─── ─▼─●─│─ ─│─●───│─▲─ ─●─▲─│─
//	              │ │   │ │   │ │     │ │
//	rank 2 ─── ─●─▼─│─ ─▼─│─●─│─│─ ─▲─●─│─
//	            │   │     │ │ │ │   │   │
//	rank 3 ─── ─▼─●─│─ ───▼─│─●─│─ ─●─▲─│─
//	              │ │       │   │     │ │
//	rank 4 ─── ───▼─●─ ─────▼───●─ ───●─▼─
//
//draw:recursive_doubling all-to-all 3
//shape:recursive_doubling all-to-all 5
func (s Spec) bruck(rank int) schedule.Program {
	k := s.Size
	digits := bits.Len(uint(k - 1))
	p := make(schedule.Program, 1+digits)
	at := make([]schedule.Span, k) // where the block with i places to go in all is now
	for i := range at {
		at[i] = schedule.In((rank+i)%k, 1)
	}
	for t := range digits {
		n := 0
		for i := range at {
			if i>>t&1 == 1 {
				p[t].Then = append(p[t].Then, move(schedule.Part(t%2, 0, n, 1), at[i]))
				at[i] = schedule.Part(2+t, 0, n, 1)
				n++
			}
		}
		p[t+1].Moves = append(p[t+1].Moves, send(schedule.Tmp(t%2, 0, n), (rank+1<<t)%k),
			recv(schedule.Tmp(2+t, 0, n), (rank-1<<t+k)%k))
	}
	last := &p[digits]
	for i := 1; i < k; i++ {
		last.Then = append(last.Then, move(schedule.Out((rank-i+k)%k, 1), at[i]))
	}
	last.Then = append(last.Then, keep(rank, 1))
	return p
}
