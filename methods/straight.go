package methods

import "gogcl.dev/methods/schedule"

// sendToAllRecipes are those of broadcast. Like direct it has no ring: a message goes straight from where its data is
// to where it is needed. The two differ in the all-reduce, the broadcast and the reduce only, where direct deals in
// pieces of n/k and takes two rounds.
//
//	all-reduce, 3 ranks, 3 chunks, 2 rounds
//	round | rank 0   | rank 1   | rank 2
//	------+----------+----------+---------
//	    0 | I1>1     | I2>2     | I0>0
//	      | I2>2     | I0>0     | I1>1
//	      | O0=I0+<1 | O1=I1+<0 | S0[2]<0
//	      | O0+<2    | O1+<2    | S0[2]+<1
//	      |          |          | S0[2]+I2
//	      |          |          | then
//	      |          |          | O2=S0[2]
//	    1 | O0>1     | O1>2     | O2>0
//	      | O1<1     | O2<2     | O0<0
//	      | O0>2     | O1>0     | O2>1
//	      | O2<2     | O0<0     | O1<1
//
//	all-reduce, 5 ranks, 5 chunks, 2 rounds
//	round   0           1
//	rank 0 ─●─⊕─⊕─⊕─⊕─ ─●─▲─▲─▲─▲─
//	        │ │ │ │ │   │ │ │ │ │
//	rank 1 ─⊕─●─⊕─⊕─⊕─ ─▼─●─▲─▲─▲─
//	        │ │ │ │ │   │ │ │ │ │
//	rank 2 ─⊕─⊕─●─⊕─⊕─ ─▼─▼─●─▲─▲─
//	        │ │ │ │ │   │ │ │ │ │
//	rank 3 ─⊕─⊕─⊕─●─⊕─ ─▼─▼─▼─●─▲─
//	        │ │ │ │ │   │ │ │ │ │
//	rank 4 ─⊕─⊕─⊕─⊕─●─ ─▼─▼─▼─▼─●─
//
//draw:direct all-reduce 3
//shape:direct all-reduce 5
var sendToAllRecipes = recipes{
	schedule.AllReduce:     {chunks: whole, program: inOneRound(Spec.everythingToEveryone), traffic: foldEverywhere},
	schedule.ReduceScatter: {chunks: perRank, program: inOneRound(Spec.toOwners), traffic: foldEverywhere},
	schedule.AllGather:     {chunks: perRank, program: inOneRound(Spec.gatherParts), traffic: copyEverywhere},
	schedule.AllToAll:      {chunks: perRank, program: inOneRound(Spec.swapBlocks), traffic: copyEverywhere},
	schedule.Broadcast:     {chunks: whole, program: inOneRound(Spec.fromRoot), traffic: Spec.fromRootTraffic},
}

// directRecipes are those of direct.
var directRecipes = recipes{
	schedule.AllReduce: {
		chunks: perRank, program: Spec.reduceByOwners,
		traffic: func(s Spec, t *schedule.Traffic) {
			foldEverywhere(s, t)
			copyEverywhere(s, t)
		},
	},
	schedule.ReduceScatter: sendToAllRecipes[schedule.ReduceScatter],
	schedule.AllGather:     sendToAllRecipes[schedule.AllGather],
	schedule.AllToAll:      sendToAllRecipes[schedule.AllToAll],
	schedule.Broadcast: {
		chunks: perRank, program: Spec.dealAndRegather,
		traffic: func(s Spec, t *schedule.Traffic) {
			s.fromRootTraffic(t)
			inRound(t, schedule.Flow{All: true, Without: s.Root + 1, Chunks: 1})
		},
	},
}

// inOneRound is a program of one round.
func inOneRound(round func(s Spec, rank int) schedule.Round) func(s Spec, rank int) schedule.Program {
	return func(s Spec, rank int) schedule.Program { return schedule.Program{round(s, rank)} }
}

// reduceByOwners is the all-reduce by direct: each piece is reduced by its owner, and goes from there to everyone.
func (s Spec) reduceByOwners(rank int) schedule.Program {
	return schedule.Program{s.toOwners(rank), s.fromOwners(rank, schedule.Out(rank, 1))}
}

// gatherParts is the all-gather: everyone's Input to everyone.
func (s Spec) gatherParts(rank int) schedule.Round {
	r := s.fromOwners(rank, schedule.In(rank, 1))
	r.Then = append(r.Then, keep(rank, 1))
	return r
}

// dealAndRegather is the broadcast by direct.
func (s Spec) dealAndRegather(rank int) schedule.Program {
	return schedule.Program{s.scatter(rank), s.regather(rank)}
}

// others lists the other ranks beginning with the next one, so that not everyone sends to rank 0 first.
func (s Spec) others(rank int) []int {
	out := make([]int, 0, s.Size-1)
	for d := 1; d < s.Size; d++ {
		out = append(out, (rank+d)%s.Size)
	}
	return out
}

// everythingToEveryone is the all-reduce by broadcast: the whole Input to all, and a fold in rank order. The fold
// needs a slot, since the Output may be the Input that is being sent.
//
//	all-reduce, 3 ranks, 1 chunk, 1 round
//	round | rank 0      | rank 1      | rank 2
//	------+-------------+-------------+---------
//	    0 | I0>1        | I0>2        | I0>0
//	      | I0>2        | I0>0        | I0>1
//	      | S0[0]=I0+<1 | S0[0]=I0+<0 | S0[0]<0
//	      | S0[0]+<2    | S0[0]+<2    | S0[0]+<1
//	      |             |             | S0[0]+I0
//	      | then        | then        | then
//	      | O0=S0[0]    | O0=S0[0]    | O0=S0[0]
//
//	all-reduce, 4 ranks, 1 chunk, 1 round
//	round   0
//	rank 0 ─●─⊕─⊕─⊕─
//	        │ │ │ │
//	rank 1 ─⊕─●─⊕─⊕─
//	        │ │ │ │
//	rank 2 ─⊕─⊕─●─⊕─
//	        │ │ │ │
//	rank 3 ─⊕─⊕─⊕─●─
//
//draw:broadcast all-reduce 3
//shape:broadcast all-reduce 4
func (s Spec) everythingToEveryone(rank int) schedule.Round {
	var r schedule.Round
	for _, to := range s.others(rank) {
		r.Moves = append(r.Moves, send(schedule.In(0, 1), to))
	}
	s.foldInOrder(&r, rank, schedule.Tmp(0, 0, 1), schedule.In(0, 1))
	r.Then = append(r.Then, move(schedule.Out(0, 1), schedule.Tmp(0, 0, 1)))
	return r
}

// toOwners is the reduce-scatter: piece j goes to rank j, which folds in rank order. Ranks 0 and 1 may fold straight
// into the Output, because their own operand is one of the first two and is read before anything is overwritten; the
// others fold in a slot, as the Output may be the Input.
func (s Spec) toOwners(rank int) schedule.Round {
	var r schedule.Round
	for _, to := range s.others(rank) {
		r.Moves = append(r.Moves, send(schedule.In(to, 1), to))
	}
	if rank <= 1 {
		s.foldInOrder(&r, rank, schedule.Out(rank, 1), schedule.In(rank, 1))
		return r
	}
	s.foldInOrder(&r, rank, schedule.Tmp(0, rank, 1), schedule.In(rank, 1))
	r.Then = append(r.Then, move(schedule.Out(rank, 1), schedule.Tmp(0, rank, 1)))
	return r
}

// foldInOrder receives one message from every other rank and folds them into dst in the order of the ranks, own taking
// its place. The fold of ranks 0 and 1 starts with the own operand in either: who carries it out puts operands that do
// not commute in the order of the ranks.
func (s Spec) foldInOrder(r *schedule.Round, rank int, dst, own schedule.Span) {
	for from := range s.Size {
		switch {
		case from == rank && rank > 1:
			r.Moves = append(r.Moves, reduce(dst, own))
		case from == rank:
		case from == 0 && rank == 1, from == 1 && rank == 0:
			r.Moves = append(r.Moves, recvReduce(dst, own, from))
		case from == 0:
			r.Moves = append(r.Moves, recv(dst, from))
		default:
			r.Moves = append(r.Moves, recvReduce(dst, dst, from))
		}
	}
}

// fromOwners sends everyone's piece to everyone.
func (s Spec) fromOwners(rank int, own schedule.Span) schedule.Round {
	var r schedule.Round
	for _, to := range s.others(rank) {
		r.Moves = append(r.Moves, send(own, to), recv(schedule.Out(to, 1), to))
	}
	return r
}

// swapBlocks is the all-to-all. When Output is Input, blocks wait in slots until the Input has been sent.
func (s Spec) swapBlocks(rank int) schedule.Round {
	var r schedule.Round
	for i, peer := range s.others(rank) {
		dst := schedule.Out(peer, 1)
		if s.InPlace {
			dst = schedule.Tmp(i, peer, 1)
			r.Then = append(r.Then, move(schedule.Out(peer, 1), dst))
		}
		r.Moves = append(r.Moves, send(schedule.In(peer, 1), peer), recv(dst, peer))
	}
	r.Then = append(r.Then, keep(rank, 1))
	return r
}

// fromRoot is the broadcast in one round: everything from the root to everyone.
func (s Spec) fromRoot(rank int) schedule.Round {
	if rank != s.Root {
		return schedule.Round{Moves: []schedule.Step{recv(schedule.Out(0, 1), s.Root)}}
	}
	var r schedule.Round
	for _, to := range s.others(rank) {
		r.Moves = append(r.Moves, send(schedule.In(0, 1), to))
	}
	r.Then = append(r.Then, keep(0, 1))
	return r
}

// scatter is the first round of the direct broadcast: the root deals out one piece to each rank.
func (s Spec) scatter(rank int) schedule.Round {
	if rank != s.Root {
		return schedule.Round{Moves: []schedule.Step{recv(schedule.Out(rank, 1), s.Root)}}
	}
	var r schedule.Round
	for _, to := range s.others(rank) {
		r.Moves = append(r.Moves, send(schedule.In(to, 1), to))
	}
	r.Then = append(r.Then, keep(0, s.Size))
	return r
}

// regather is the second: everyone passes its piece on to all who lack it, the root included, which kept one back for
// itself.
func (s Spec) regather(rank int) schedule.Round {
	var r schedule.Round
	for _, peer := range s.others(rank) {
		if peer != s.Root {
			src := schedule.Out(rank, 1)
			if rank == s.Root {
				src = schedule.In(rank, 1)
			}
			r.Moves = append(r.Moves, send(src, peer))
		}
		if rank != s.Root {
			r.Moves = append(r.Moves, recv(schedule.Out(peer, 1), peer))
		}
	}
	return r
}
