package cost

import (
	"fmt"
	"math"
	"math/bits"

	"gogcl.dev/methods/schedule"
)

// Lengths says how many bytes spans of a schedule have, in a collective of so many bytes. [LengthsOf] makes one.
type Lengths struct {
	s     *schedule.Schedule
	bytes int64

	// Of a contract of a program's own: where chunks begin, in relative sizes, and the sizes in the longest buffer,
	// which has the bytes. nil: chunks are equal parts of the larger buffer.
	starts  []int64
	longest int64
}

// LengthsOf finds the lengths in a schedule for a larger buffer of so many bytes, not negative. With a
// schedule.CustomContract that is the longest of all ranks' buffers, and a contract that is wrong is an error.
func LengthsOf(s *schedule.Schedule, bytes int64) (Lengths, error) {
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

// Of is how many bytes a span has, which must be one of the schedule's.
func (l *Lengths) Of(span schedule.Span) int64 {
	if l.starts == nil {
		return lengthOf(l.s, span, l.bytes)
	}
	if span.Stride != 0 {
		sum := int64(0)
		for _, run := range span.AppendRuns(nil, l.s.Chunks) {
			sum = saturated(sum, l.Of(run))
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
