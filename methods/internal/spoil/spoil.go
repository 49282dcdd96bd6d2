// Package spoil puts one fault at a time into a right schedule, for tests of what finds them: a proof must refuse every
// one, or report that more is done for nothing.
package spoil

import (
	"reflect"
	"slices"

	"gogcl.dev/methods/schedule"
)

// Finds returns what a proof says of a spoilt schedule: an error of schedule.Examine, or waste that the whole one does
// not have; nil if it finds nothing.
func Finds(mutant *schedule.Schedule, whole schedule.Waste) error {
	r, err := schedule.Examine(mutant)
	switch {
	case err != nil:
		return err
	case r.Waste.Repeated > whole.Repeated || r.Waste.Unused > whole.Unused:
		return r.CheckWaste()
	}
	return nil
}

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
			if !moves(s, wrong, st) {
				replace("wrong chunk", wrong)
			}
		}
	}
	for _, stride := range [...]int{st.Src.Stride, st.Dst.Stride} {
		if stride == 0 {
			continue
		}
		for _, other := range [...][2]int{{0, 0}, {stride + 1, 1}, {stride - 1, 1}, {stride, 2}, {1, 1}} {
			wrong := st
			for _, sp := range [...]*schedule.Span{&wrong.Src, &wrong.Dst} {
				if sp.Stride > 0 {
					sp.Stride, sp.Run = other[0], other[1]
				}
			}
			if wrong != st && !moves(s, wrong, st) {
				replace("wrong stride", wrong)
			}
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

// moves reports whether two steps do the same: with the same peer to the same chunks, or by itself in another order.
func moves(s *schedule.Schedule, a, b schedule.Step) bool {
	one, other := pairs(s, a), pairs(s, b)
	if a.Peer < 0 {
		slices.SortFunc(one, comparePairs)
		slices.SortFunc(other, comparePairs)
	}
	return slices.Equal(one, other)
}

// pairs are the chunks of a step, of its source and its destination.
func pairs(s *schedule.Schedule, st schedule.Step) (out [][2]int) {
	src, dst := chunks(s, st.Src), chunks(s, st.Dst)
	for i := range max(len(src), len(dst)) {
		pair := [2]int{-1, -1}
		if i < len(src) {
			pair[0] = src[i]
		}
		if i < len(dst) {
			pair[1] = dst[i]
		}
		out = append(out, pair)
	}
	return out
}

func comparePairs(a, b [2]int) int { return slices.Compare(a[:], b[:]) }

func chunks(s *schedule.Schedule, sp schedule.Span) (out []int) {
	for _, run := range sp.AppendRuns(nil, s.Chunks) {
		for f := range run.Count {
			out = append(out, run.First+f)
		}
	}
	return out
}
