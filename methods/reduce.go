package methods

import "gogcl.dev/methods/schedule"

// reduceRecipes are those of the reduce, a broadcast backwards: what went from a to b comes from b to a, and is
// combined.
//
// The whole Input of everyone goes to the root by broadcast; by direct each piece goes to its owner, who reduces it,
// and from there to the root. On rings and by recursive_doubling the chains and the tree of the broadcast are walked
// towards the root. In the order of the ranks a chain goes up all ranks, and the last one sends the result to the root.
//
//	reduce, 4 ranks, 1 chunk, 2 rounds
//	round | rank 0   | rank 1      | rank 2 | rank 3
//	------+----------+-------------+--------+-------
//	    0 | O0=I0+<2 | S0[0]=I0+<3 | I0>0   | I0>1
//	    1 | O0+<1    | S0[0]>0     | -      | -
//
//draw:recursive_doubling reduce 4
var reduceRecipes = collectiveRecipes{
	collective: schedule.Reduce,
	toAll:      recipe{chunks: whole, program: inOneRound(Spec.allToRoot), traffic: Spec.allToRootTraffic},
	direct:     recipe{chunks: perRank, program: Spec.ownersToRoot, traffic: Spec.ownersToRootTraffic},
	ring: func(f ringForm) recipe {
		return built(f.perPiece, func(b *schedule.Builder, s Spec) {
			for _, l := range f.lanes(s, s.Root) {
				for d := l.reach; d > 0; d-- {
					for i := range s.pieces() {
						b.Fold(f.reach(s.Size)-d+i, l.behind(d), l.behind(d-1), l.fragment*s.pieces()+i, 1)
					}
				}
			}
		}).pipelined(f.reach).describes(f.unchain)
	},
	doubling: built(whole, func(b *schedule.Builder, s Spec) {
		for t := s.treeRounds() - 1; t >= 0; t-- {
			for v := 0; v < 1<<t && v+1<<t < s.Size; v++ {
				b.Fold(s.treeRounds()-1-t, s.actual(v+1<<t), s.actual(v), 0, 1)
			}
		}
	}),
	chain: built(Spec.pieces, func(b *schedule.Builder, s Spec) {
		last := s.Size - 1
		for i := range s.pieces() {
			for r := range last {
				b.Fold(i+r, r, r+1, i, 1)
			}
			if s.Root != last {
				b.Copy(i+last, last, s.Root, i, 1)
			}
		}
	}).pipelined(wholeRing).describes(Spec.upChainTraffic),
}

// allToRoot is the reduce by broadcast: the root folds the Inputs in the order of the ranks.
func (s Spec) allToRoot(rank int) schedule.Round {
	if rank != s.Root {
		return schedule.Round{Moves: []schedule.Step{send(schedule.In(0, 1), s.Root)}}
	}
	var r schedule.Round
	s.foldOwn(&r, rank, schedule.Out(0, 1), schedule.In(0, 1), schedule.Tmp(0, 0, 1))
	return r
}

// ownersToRoot is the reduce by direct.
func (s Spec) ownersToRoot(rank int) schedule.Program {
	var first, second schedule.Round
	for _, to := range s.others(rank) {
		first.Moves = append(first.Moves, send(schedule.In(to, 1), to))
	}
	if rank != s.Root {
		s.foldInOrder(&first, rank, schedule.Tmp(0, rank, 1), schedule.In(rank, 1))
		second.Moves = append(second.Moves, send(schedule.Tmp(0, rank, 1), s.Root))
		return schedule.Program{first, second}
	}
	s.foldOwn(&first, rank, schedule.Out(rank, 1), schedule.In(rank, 1), schedule.Tmp(0, rank, 1))
	for _, from := range s.others(rank) {
		second.Moves = append(second.Moves, recv(schedule.Out(from, 1), from))
	}
	return schedule.Program{first, second}
}

// foldOwn is foldInOrder into the Output, by way of a slot where the own operand would be overwritten before it is
// read.
func (s Spec) foldOwn(r *schedule.Round, rank int, out, own, slot schedule.Span) {
	if rank <= 1 {
		s.foldInOrder(r, rank, out, own)
		return
	}
	s.foldInOrder(r, rank, slot, own)
	r.Then = append(r.Then, move(out, slot))
}
