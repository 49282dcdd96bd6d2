package schedule

import "errors"

// chunkError is what sums of contributors say is wrong with a chunk. Sets say more.
type chunkError struct {
	chunk int
	error
}

func (e *chunkError) Unwrap() error { return e.error }

// wholeStates is up to how many chunks, of all ranks together, a schedule that sums refuse is carried out again with
// sets for all chunks, in a fraction of a second. Of more that is done for one wrong chunk. A ring all-reduce of 1,024
// ranks has a million.
const wholeStates = 1 << 16

// explain carries out once more, with sets, what sums have refused, and returns what is wrong by them.
func (e *examination) explain(from source, refused error) error {
	s := e.schedule
	if states := int64(s.Size) * int64(s.Chunks); states > wholeStates && s.Collective.Contract().Output != Blocks {
		if !errors.As(refused, &e.fault) {
			return refused // sets have nothing to say
		}
	}
	_, err := e.twice(from, false, true)
	if lack := (*budgetError)(nil); err == nil || errors.As(err, &lack) {
		return refused // sets take too much memory. They refuse whatever sums do
	}
	return err
}

// part is what a step does with the chunk that matters: the step itself if all do, nil if it has other chunks. The
// spans of a step have the same chunks, as have those of the step that it meets, since no chunk changes its number.
func (m *machine) part(st *Step) *Step {
	if m.fault == nil {
		return st
	}
	one, has := *st, false
	for _, sp := range [...]*Span{&one.Src, &one.Dst} {
		if sp.has(m.fault.chunk, m.Chunks) {
			sp.First, sp.Count, sp.Stride, sp.Run, has = m.fault.chunk, 1, 0, 0, true
		}
	}
	if !has {
		return nil
	}
	return &one
}
