package methods

import (
	"slices"

	"gogcl.dev/methods/schedule"
)

// laneAllReduce is the reduce-scatter and then the all-gather.
func (s Spec) laneAllReduce(r ring) schedule.Program {
	return slices.Concat(s.laneReduceScatter(r), s.laneAllGather(r))
}

// laneReduceScatter makes each fragment travel towards its owner, and every rank on the way add its own contribution.
// In a lane of reach R the fragment of owner p starts R places before p; at round t a rank sends the fragment of the
// rank R-t places ahead. Two lanes that carry one fragment meet at its owner. Partial results of an all-reduce lie in
// the Output, those of a reduce-scatter, whose Output has room for the own fragments only, in two slots for each lane,
// used in turn.
func (s Spec) laneReduceScatter(r ring) schedule.Program {
	p := r.rounds(0)
	met := make([]bool, r.fragments) // the own fragment has its first contribution
	steps := r.steps()
	for t := range p {
		begin := len(steps)
		var receives []schedule.Step // apart, since the two halves of a fold stand side by side
		for _, l := range r.lanes {
			if t >= l.reach {
				continue
			}
			// partial is where chunk f is kept after round t, on the way to its owner.
			partial := func(f, t int) schedule.Span {
				if s.Collective == schedule.AllReduce {
					return schedule.Out(f, 1)
				}
				return schedule.Tmp(2*l.id+t%2, f, 1)
			}

			out := l.ahead(l.reach-t)*r.fragments + l.fragment
			src := schedule.In(out, 1)
			if t > 0 {
				src = partial(out, t-1)
			}
			steps = append(steps, send(src, l.ahead(1)))

			in := l.ahead(l.reach-t-1)*r.fragments + l.fragment
			dst, operand := partial(in, t), schedule.In(in, 1)
			if t == l.reach-1 {
				dst = schedule.Out(in, 1)
				if met[l.fragment] {
					operand = dst
				}
				met[l.fragment] = true
			}
			receives = append(receives, recvReduce(dst, operand, l.behind(1)))
		}
		steps = append(steps, receives...)
		p[t].Moves = slices.Clip(steps[begin:])
	}
	return p
}

// laneAllGather makes each fragment travel from its owner, and every rank on the way keep a copy. At round t a rank
// sends what it got at round t-1, the fragment of the rank t places behind. In an all-reduce the own fragment is in
// the Output already.
func (s Spec) laneAllGather(r ring) schedule.Program {
	p := r.rounds(0)
	steps := r.steps()
	for t := range p {
		begin := len(steps)
		for _, l := range r.lanes {
			if t >= l.reach {
				continue
			}
			out := l.behind(t)*r.fragments + l.fragment
			in := l.behind(t+1)*r.fragments + l.fragment
			src := schedule.Out(out, 1)
			if t == 0 && s.Collective == schedule.AllGather {
				src = schedule.In(out, 1)
			}
			steps = append(steps, send(src, l.ahead(1)), recv(schedule.Out(in, 1), l.behind(1)))
		}
		p[t].Moves = slices.Clip(steps[begin:])
	}
	if s.Collective == schedule.AllGather {
		p[0].Then = append(p[0].Then, keep(r.lanes[0].self()*r.fragments, r.fragments))
	}
	return p
}
