package methods

import (
	"reflect"
	"testing"

	"gogcl.dev/methods/schedule"
)

// mutate calls do with every schedule that differs from s in one step, or in the order of two rounds of one rank. It
// does not call it with what is equal to s. The schedule belongs to do until it returns.
func mutate(s *schedule.Schedule, do func(what string, rank, round int, mutant *schedule.Schedule)) {
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
				if !reflect.DeepEqual(p[t], p[u]) {
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
		replace("receive instead of receive and reduce", recv(st.Dst, st.Peer))
	}
	if st.Verb == schedule.Recv {
		replace("receive and reduce instead of receive", recvReduce(st.Dst, st.Dst, st.Peer))
	}
	if st.Verb == schedule.Fold {
		replace("copy instead of reduce", move(st.Dst, st.Src))
	}
}

// TestMutantsAreRejected: a schedule that differs from a right one in one step is refused. Groups are small: a mutant
// of a larger group goes wrong in the ways of a small one.
func TestMutantsAreRejected(t *testing.T) {
	t.Parallel()
	for k := largestMutated(); k >= 1; k-- {
		seen := map[uint64]bool{}
		specs(k, func(name string, s Spec) {
			if s.Pieces > 3 || s.Collective.Contract().Again { // what may count again need not count everywhere
				return
			}
			built, err := Build(s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if print := fingerprint(built); seen[print] {
				return
			} else {
				seen[print] = true
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tried := map[string]int{}
				mutate(built, func(what string, rank, round int, mutant *schedule.Schedule) {
					tried[what]++
					if schedule.Check(mutant) == nil {
						t.Errorf("accepted with a %s at rank %d round %d:\n%v", what, rank, round, mutant)
					}
				})
				if k > 1 && len(tried) == 0 {
					t.Error("no mutant was tried")
				}
				t.Logf("mutants tried: %v", tried)
			})
		})
	}
}
