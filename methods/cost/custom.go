package cost

import (
	"fmt"
	"math"
	"math/bits"

	"gogcl.dev/methods/schedule"
)

// Lengths says how many bytes spans of a schedule have. [LengthsOf] finds them.
type Lengths struct {
	s     *schedule.Schedule
	bytes int64

	// Of a contract of a program's own: where chunks begin, in relative sizes, and the sizes in the longest buffer,
	// which has the bytes. nil: chunks are equal parts of the larger buffer.
	starts  []int64
	longest int64
}

// LengthsOf finds the lengths in a schedule for a larger buffer of so many bytes. With a schedule.CustomContract that
// is the longest of all ranks' buffers. Errors: no schedule, one of no chunks, negative bytes, a contract that
// is wrong.
func LengthsOf(s *schedule.Schedule, bytes int64) (*Lengths, error) {
	switch {
	case s == nil:
		return nil, fmt.Errorf("cost: nil schedule")
	case s.Chunks < 1 || bytes < 0:
		return nil, fmt.Errorf("cost: %d bytes in %d chunks", bytes, s.Chunks)
	}
	l, err := lengthsOf(s, bytes)
	if err != nil {
		return nil, err
	}
	return &l, nil
}

// lengthsOf finds them. A contract that is wrong is an error.
func lengthsOf(s *schedule.Schedule, bytes int64) (Lengths, error) {
	l := Lengths{s: s, bytes: bytes}
	own := s.Custom
	if own == nil {
		return l, nil
	}
	if err := own.Check(); err != nil {
		return l, fmt.Errorf("cost: %w", err)
	}
	if n := own.Chunks(); n != s.Chunks || len(own.Inputs) != s.Size {
		return l, fmt.Errorf("cost: a contract of %d chunks and %d ranks, and the schedule has %d and %d", n,
			len(own.Inputs), s.Chunks, s.Size)
	}
	l.starts = make([]int64, s.Chunks+1)
	for f := range s.Chunks {
		l.starts[f+1] = l.starts[f] + int64(own.Size(f))
	}
	for _, buffers := range [...][][]int{own.Inputs, own.Outputs} {
		for _, list := range buffers {
			sum := int64(0)
			for _, f := range list {
				sum += int64(own.Size(f))
			}
			l.longest = max(l.longest, sum)
		}
	}
	return l, nil
}

// Of is how many bytes a span has. One that no schedule can have has none, and so has any of nil.
func (l *Lengths) Of(span schedule.Span) int64 {
	if l == nil || l.s == nil || checkSpan(l.s, "span", &span) != nil {
		return 0
	}
	return l.of(span)
}

// of is Of for a span that has been checked.
func (l *Lengths) of(span schedule.Span) int64 {
	if l.starts == nil {
		return lengthOf(l.s, span, l.bytes)
	}
	if span.Stride != 0 {
		sum := int64(0)
		for _, run := range span.AppendRuns(nil, l.s.Chunks) {
			sum = saturated(sum, l.of(run))
		}
		return sum
	}
	size := l.starts[span.First+span.Count] - l.starts[span.First]
	hi, lo := bits.Mul64(uint64(l.bytes), uint64(size))
	if hi >= uint64(l.longest) {
		return math.MaxInt64
	}
	n, _ := bits.Div64(hi, lo, uint64(l.longest))
	return int64(min(n, math.MaxInt64))
}
