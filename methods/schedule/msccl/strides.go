package msccl

import "gogcl.dev/methods/schedule"

// withoutStrides is a schedule with each strided step replaced by steps for its runs, one after the other. Both sides
// of a message have the same runs, since they have chunks of the same numbers. In an all-to-all they need not, and
// every message goes chunk by chunk. The result need not be one that schedule.Check accepts: links of a fold may stand
// apart. A thread block carries out its steps in order, which is all that they need.
func withoutStrides(s *schedule.Schedule) *schedule.Schedule {
	if !strided(s) {
		return s
	}
	out := *s
	out.Programs = make([]schedule.Program, len(s.Programs))
	byChunk := s.Collective.Contract().Output == schedule.Blocks
	for rank, p := range s.Programs {
		for _, r := range p {
			var plain schedule.Round
			for _, st := range r.Moves {
				first := len(plain.Moves)
				plain.Moves = st.AppendRuns(plain.Moves, s.Chunks)
				if byChunk && st.Verb <= schedule.RecvReduce {
					plain.Moves = append(plain.Moves[:first], singly(plain.Moves[first:])...)
				}
			}
			for _, st := range r.Then {
				plain.Then = st.AppendRuns(plain.Then, s.Chunks)
			}
			out.Programs[rank] = append(out.Programs[rank], plain)
		}
	}
	return &out
}

// strided reports whether a schedule has a strided span.
func strided(s *schedule.Schedule) bool {
	for _, p := range s.Programs {
		for _, r := range p {
			for _, steps := range [...][]schedule.Step{r.Moves, r.Then} {
				for i := range steps {
					if steps[i].Src.Stride != 0 || steps[i].Dst.Stride != 0 {
						return true
					}
				}
			}
		}
	}
	return false
}

// singly is sends or receives of a chunk each in place of some of several.
func singly(steps []schedule.Step) (out []schedule.Step) {
	for _, st := range steps {
		for i := range max(st.Src.Count, st.Dst.Count) {
			one := st
			for _, sp := range [...]*schedule.Span{&one.Src, &one.Dst} {
				if sp.Count > 0 {
					sp.First, sp.Count = sp.First+i, 1
				}
			}
			out = append(out, one)
		}
	}
	return out
}
