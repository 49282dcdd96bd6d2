package methods

import "gogcl.dev/methods/schedule"

// chainWays are what the ring methods and recursive_doubling become when each element must be the left fold of the
// inputs in rank order: a pipeline that goes up from rank 0 to rank k-1, each rank adding its own operand, and back
// down. Piece i is at rank r going up in round i+r-1, and coming down in round i+2k-3-r.
//
// An all-reduce in m pieces takes m+2k-3 rounds, and the ranks in the middle send 2n elements. A reduce-scatter has
// one piece for each owner, which all arrive in round 2k-3, and needs two slots for each direction.
//
//	all-reduce, 3 ranks, 1 chunk, 4 rounds
//	round | rank 0 | rank 1   | rank 2
//	------+--------+----------+---------
//	    0 | I0>1   | O0=I0+<0 |
//	    1 |        | O0>2     | O0=I0+<1
//	    2 |        | O0<2     | O0>1
//	    3 | O0<1   | O0>0     | -
//
//	all-reduce, 4 ranks, 2 chunks, 7 rounds
//	round   0   1     2     3     4     5     6
//	rank 0 ─●─ ─●─── ───── ───── ───── ─▲─── ─▲─
//	        │   │                       │     │
//	rank 1 ─⊕─ ─⊕─●─ ─●─── ───── ─▲─── ─●─▲─ ─●─
//	              │   │           │       │
//	rank 2 ─── ───⊕─ ─⊕─●─ ─●─▲─ ─●─▲─ ───●─ ───
//	                    │   │ │     │
//	rank 3 ─── ───── ───⊕─ ─⊕─●─ ───●─ ───── ───
//
//draw:clockwise_ring all-reduce 3 rank-order
//shape:clockwise_ring all-reduce 4 rank-order pieces=2
var chainRecipes = recipes{
	schedule.AllReduce: {
		chunks:  Spec.pieces,
		program: func(s Spec, rank int) schedule.Program { return s.chain(rank, s.pieces(), true) },
		traffic: func(s Spec, t *schedule.Traffic) { s.chainTraffic(t, s.pieces(), true) },
		reach:   wholeRing,
	},
	schedule.ReduceScatter: {
		chunks:  perRank,
		program: func(s Spec, rank int) schedule.Program { return s.chain(rank, s.Size, false) },
		traffic: func(s Spec, t *schedule.Traffic) { s.chainTraffic(t, s.Size, false) },
	},
}

// chain is the chain of a rank for m chunks. all ranks have all results in the end, or else each has its own.
func (s Spec) chain(rank, m int, all bool) schedule.Program {
	k := s.Size
	p := make(schedule.Program, 2*k-2)
	if all {
		p = make(schedule.Program, m+2*k-3)
	}
	add := func(t int, st schedule.Step) { p[t].Moves = append(p[t].Moves, st) }
	last := rank == k-1
	for i := range m {
		// up and down say where the piece lies at this rank, as a partial result and as the final one.
		up, down := schedule.Out(i, 1), schedule.Out(i, 1)
		if !all {
			up, down = schedule.Tmp(i%2, i, 1), schedule.Tmp(2+i%2, i, 1)
			if i == rank {
				down = schedule.Out(i, 1)
			}
		}
		if last {
			up = down
		}
		stops := !all && i == rank || rank == 0 // nobody below needs it
		if rank > 0 {
			add(i+rank-1, recvReduce(up, schedule.In(i, 1), rank-1))
		}
		if !last {
			src := up
			if rank == 0 {
				src = schedule.In(i, 1)
			}
			add(i+rank, send(src, rank+1))
			if all || i <= rank {
				add(i+2*k-3-rank, recv(down, rank+1))
			}
		}
		if !stops && (all || i < rank) {
			add(i+2*k-2-rank, send(down, rank-1))
		}
	}
	return p
}
