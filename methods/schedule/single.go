package schedule

import (
	"errors"
	"strings"
)

// chunkError is an error of one chunk.
type chunkError struct {
	chunk int
	known bool // sets of contributors say no more than sums do
	error
}

func (e *chunkError) Unwrap() error { return e.error }

// cellError is an error in one cell of a drawing: a rank in a round.
type cellError struct {
	rank, round int      // round: or atEnd
	way         []string // of the chunk, in lines; none if the error is of no one chunk
	error
}

func (e *cellError) Unwrap() error { return e.error }

func (e *cellError) Error() string {
	return strings.Join(append([]string{e.error.Error()}, e.way...), "\n")
}

// inPlaceError is an error with Output being Input.
type inPlaceError struct{ error }

func (e *inPlaceError) Unwrap() error { return e.error }

func (e *inPlaceError) Error() string { return "with Output being Input: " + e.error.Error() }

// wholeStates is up to how many chunks, of all ranks together, a schedule that sums refuse is carried out again with
// sets for all chunks, in a fraction of a second. Of more that is done for one wrong chunk. A ring all-reduce of 1,024
// ranks has a million.
const wholeStates = 1 << 16

// explain carries out once more, with sets, what sums have refused, and returns what is wrong by them.
func (e *examination) explain(from source, refused error) error {
	s := e.schedule
	if states := int64(s.Size) * int64(s.Chunks); states > wholeStates && s.Collective.Contract().Output != Blocks {
		wrong := (*chunkError)(nil)
		if !errors.As(refused, &wrong) || wrong.known {
			return refused // sets have nothing to say
		}
		e.fault = wrong
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
