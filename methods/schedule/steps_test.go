package schedule

// Short forms for schedules written by hand.

func send(src Span, to int) Step   { return Step{Verb: Send, Peer: to, Src: src} }
func recv(dst Span, from int) Step { return Step{Verb: Recv, Peer: from, Dst: dst} }
func fold(dst, src Span, from int) Step {
	return Step{Verb: RecvReduce, Peer: from, Src: src, Dst: dst}
}
func move(dst, src Span) Step   { return Step{Verb: Copy, Peer: -1, Src: src, Dst: dst} }
func reduce(dst, src Span) Step { return Step{Verb: Fold, Peer: -1, Src: src, Dst: dst} }

func moves(steps ...Step) Round { return Round{Moves: steps} }
func then(steps ...Step) Round  { return Round{Then: steps} }

// both is a round of moves and local steps.
func both(moves []Step, then ...Step) Round { return Round{Moves: moves, Then: then} }

// steps is a list, for both.
func steps(list ...Step) []Step { return list }

// twoRanks is a schedule for two ranks. The root of a broadcast is rank 0, and an all-to-all asks for buffers apart.
func twoRanks(c Collective, chunks int, rank0, rank1 Program) *Schedule {
	return &Schedule{Collective: c, Size: 2, Chunks: chunks, Apart: c == AllToAll, Programs: []Program{rank0, rank1}}
}

// allReduce2 is the all-reduce of one chunk over two ranks, each sending its own to the other.
func allReduce2() *Schedule {
	rank := func(peer int) Program {
		return Program{both(steps(send(In(0, 1), peer), recv(Tmp(0, 0, 1), peer)), move(Out(0, 1), In(0, 1)),
			reduce(Out(0, 1), Tmp(0, 0, 1)))}
	}
	return twoRanks(AllReduce, 1, rank(1), rank(0))
}

// reduceScatter2 is the reduce-scatter over two ranks in one round.
func reduceScatter2() *Schedule {
	return twoRanks(ReduceScatter, 2,
		Program{moves(send(In(1, 1), 1), fold(Out(0, 1), In(0, 1), 1))},
		Program{moves(send(In(0, 1), 0), fold(Out(1, 1), In(1, 1), 0))})
}

// allGather2 is the all-gather over two ranks in one round.
func allGather2() *Schedule {
	return twoRanks(AllGather, 2,
		Program{both(steps(send(In(0, 1), 1), recv(Out(1, 1), 1)), move(Out(0, 1), In(0, 1)))},
		Program{both(steps(send(In(1, 1), 0), recv(Out(0, 1), 0)), move(Out(1, 1), In(1, 1)))})
}

// allToAll2 is the all-to-all over two ranks with two chunks to a block.
func allToAll2() *Schedule {
	return twoRanks(AllToAll, 4,
		Program{both(steps(send(In(2, 2), 1), recv(Out(2, 2), 1)), move(Out(0, 2), In(0, 2)))},
		Program{both(steps(send(In(0, 2), 0), recv(Out(0, 2), 0)), move(Out(2, 2), In(2, 2)))})
}

// broadcast2 is the broadcast from rank 0 of two.
func broadcast2() *Schedule {
	return twoRanks(Broadcast, 1,
		Program{both(steps(send(In(0, 1), 1)), move(Out(0, 1), In(0, 1)))},
		Program{moves(recv(Out(0, 1), 0))})
}

// fromRank1 makes rank 1 the root.
func fromRank1(s *Schedule) *Schedule {
	s.Root = 1
	return s
}

// ownFirst is the all-reduce over three ranks in which each begins with its own contribution: all results are sums,
// but of different orders.
func ownFirst() *Schedule {
	s := &Schedule{Collective: AllReduce, Size: 3, Chunks: 1}
	for _, peers := range [][2]int{{1, 2}, {0, 2}, {0, 1}} {
		acc := Tmp(0, 0, 1)
		s.Programs = append(s.Programs, Program{both(
			steps(send(In(0, 1), peers[0]), send(In(0, 1), peers[1]), fold(acc, In(0, 1), peers[0]),
				fold(acc, acc, peers[1])),
			move(Out(0, 1), acc))})
	}
	return s
}

// lastInRankOrder is ownFirst, but that the last rank folds in rank order: (0+1)+2.
func lastInRankOrder() *Schedule {
	s, acc := ownFirst(), Tmp(0, 0, 1)
	s.Programs[2][0].Moves = steps(send(In(0, 1), 0), send(In(0, 1), 1), recv(acc, 0), fold(acc, acc, 1),
		reduce(acc, In(0, 1)))
	s.Programs[0][0].Moves = steps(send(In(0, 1), 2), send(In(0, 1), 1), fold(acc, In(0, 1), 2), fold(acc, acc, 1))
	return s
}

// byRank0 is the all-reduce over three ranks in which rank 0 folds what two others send, in that order, its own
// contribution between them, and gives the result back.
func byRank0(first, second int) *Schedule {
	s := &Schedule{Collective: AllReduce, Size: 3, Chunks: 1, Programs: make([]Program, 3)}
	s.Programs[0] = Program{
		moves(fold(Out(0, 1), In(0, 1), first), fold(Out(0, 1), Out(0, 1), second)),
		moves(send(Out(0, 1), 1), send(Out(0, 1), 2)),
	}
	for rank := 1; rank < 3; rank++ {
		s.Programs[rank] = Program{moves(send(In(0, 1), 0)), moves(recv(Out(0, 1), 0))}
	}
	return s
}
