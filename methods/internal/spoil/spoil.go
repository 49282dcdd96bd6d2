// Package spoil puts one fault at a time into a right schedule, for tests of what finds them: schedule.Check must
// refuse every one.
package spoil

import (
	"reflect"

	"gogcl.dev/methods/schedule"
)

// Each calls do with every schedule that differs from s in one step, or in the order of two rounds of one rank, with
// what was done where. It does not call it with what is equal to s. The schedule belongs to do until it returns.
func Each(s *schedule.Schedule, do func(what string, rank, round int, mutant *schedule.Schedule)) {
	for rank, p := range s.Programs {
		with := func(q schedule.Program) *schedule.Schedule {
			out := *s
			out.Programs = append([]schedule.Program(nil), s.Programs...)
			out.Programs[rank] = q
			return &out
		}
		for t := range p {
			for _, then := range []bool{false, true} {
				part := p[t].Moves
				if then {
					part = p[t].Then
				}
				try := func(what string, steps []schedule.Step) {
					q := append(schedule.Program(nil), p...)
					if then {
						q[t].Then = steps
					} else {
						q[t].Moves = steps
					}
					if !reflect.DeepEqual(steps, part) {
						do(what, rank, t, with(q))
					}
				}
				for i := range part {
					mutateStep(s, rank, part, i, try)
				}
			}
			for u := t + 1; u < len(p); u++ {
				q := append(schedule.Program(nil), p...)
				q[t], q[u] = p[u], p[t]
				// The order of two rounds without messages, which nobody else sees, may not count.
				silent := len(p[t].Moves) == 0 && len(p[u].Moves) == 0
				if !silent && !reflect.DeepEqual(p[t], p[u]) {
					do("swapped rounds", rank, t, with(q))
				}
			}
		}
	}
}

// mutateStep tries everything that can happen to step i of a list.
func mutateStep(s *schedule.Schedule, rank int, part []schedule.Step, i int, try func(string, []schedule.Step)) {
	replace := func(what string, steps ...schedule.Step) {
		out := append([]schedule.Step(nil), part[:i]...)
		out = append(out, steps...)
		try(what, append(out, part[i+1:]...))
	}
	st := part[i]
	replace("dropped step")
	replace("doubled step", st, st)
	for peer := range s.Size {
		if st.Peer >= 0 && peer != st.Peer && peer != rank {
			wrong := st
			wrong.Peer = peer
			replace("wrong peer", wrong)
		}
	}
	for f := range s.Chunks {
		if st.Verb != schedule.Send {
			wrong := st
			wrong.Dst.First = f
			replace("wrong chunk received", wrong)
		}
		if st.Verb != schedule.Recv {
			wrong := st
			wrong.Src.First = f
			replace("wrong chunk sent", wrong)
		}
		wrong := st
		if st.Verb == schedule.RecvReduce || st.Verb == schedule.Copy || st.Verb == schedule.Fold {
			wrong.Src.First, wrong.Dst.First = f, f
			replace("wrong chunk", wrong)
		}
	}
	if st.Verb == schedule.RecvReduce {
		replace("receive instead of receive and reduce", schedule.Step{Verb: schedule.Recv, Peer: st.Peer, Dst: st.Dst})
	}
	if st.Verb == schedule.Recv {
		replace("receive and reduce instead of receive",
			schedule.Step{Verb: schedule.RecvReduce, Peer: st.Peer, Src: st.Dst, Dst: st.Dst})
	}
	if st.Verb == schedule.Fold {
		replace("copy instead of reduce", schedule.Step{Verb: schedule.Copy, Peer: -1, Src: st.Src, Dst: st.Dst})
	}
}
