package rounds

import "gogcl.dev/methods/schedule"

// strip is a piece of a chain on peer memory, or of any receive whose message lies apart at its sender: the receiver
// reads each part of it where it lies.
type strip struct {
	dst  schedule.Span
	srcs []operandAt // in the order of the fold
}

// operandAt is memory of the rank's own, or of one of MemoryPlan.senders.
type operandAt struct {
	sender int // -1: the rank's own
	span   schedule.Span
}

// strips cuts operands, as many chunks each as dst has, into pieces none of which has a stride.
func strips(dst schedule.Span, srcs []operandAt, chunks int) []strip {
	lists := [][]schedule.Span{dst.AppendRuns(nil, chunks)}
	for _, src := range srcs {
		lists = append(lists, src.span.AppendRuns(nil, chunks))
	}
	var out []strip
	for len(lists[0]) > 0 {
		n := lists[0][0].Count
		for _, l := range lists {
			n = min(n, l[0].Count)
		}
		t := strip{srcs: make([]operandAt, len(srcs))}
		for i, l := range lists {
			piece := l[0]
			piece.Count = n
			if i == 0 {
				t.dst = piece
			} else {
				t.srcs[i-1] = operandAt{srcs[i-1].sender, piece}
			}
			if l[0].First, l[0].Count = l[0].First+n, l[0].Count-n; l[0].Count == 0 {
				lists[i] = l[1:]
			}
		}
		out = append(out, t)
	}
	return out
}

// cutUp finds the strips of a round, given where each message lies.
func (s *MemoryPlan) cutUp(round *planRound, from []origin) {
	set := func(first, moves int, dst schedule.Span, srcs []operandAt) {
		pieces := strips(dst, srcs, s.plan.chunks)
		for i := range moves {
			from[first+i].strips = pieces
		}
		from[first].moves = moves
	}
	for _, c := range round.chains {
		var srcs []operandAt
		moves := 0
		for _, l := range c.links {
			if l.step.Verb == schedule.Fold || moves == 0 && l.step.Verb == schedule.RecvReduce {
				srcs = append(srcs, operandAt{-1, l.step.Src})
			}
			if l.step.Verb != schedule.Fold {
				srcs = append(srcs, operandAt{from[c.first+moves].sender, from[c.first+moves].span})
				moves++
			}
		}
		set(c.first, moves, c.links[0].step.Dst, srcs)
	}
	moves := round.moves
	for i := 0; i < len(moves); {
		first, apart := i, from[i].span.Stride != 0
		for i++; i < len(moves) && moves[i].next; i++ {
			apart = apart || from[i].span.Stride != 0
		}
		if !apart || moves[first].buf.Buf == inParcel {
			continue
		}
		var srcs []operandAt
		for k := first; k < i; k++ {
			if moves[k].with.Count > 0 {
				srcs = append(srcs, operandAt{-1, moves[k].with})
			}
			srcs = append(srcs, operandAt{from[k].sender, from[k].span})
		}
		set(first, i-first, moves[first].buf, srcs)
	}
}

// fold carries out the strips of run k.
func (s *MemoryPlan) fold(pieces []strip, k int, me *Run) {
	for i := range pieces {
		p := &pieces[i]
		srcs := s.srcs[:0]
		for i := range p.srcs {
			src, of := &p.srcs[i], me
			if src.sender >= 0 {
				of = &s.senders[src.sender].runs[k]
			}
			srcs = append(srcs, of.bytes(&src.span))
		}
		s.srcs = srcs
		s.combine(me, me.bytes(&p.dst), srcs, me.place.bounds[p.dst.First])
	}
}
