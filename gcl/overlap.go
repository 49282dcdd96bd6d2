package gcl

import (
	"cmp"
	"fmt"
	"slices"

	"gogcl.dev/gcl/internal/memory"
)

// interval is the memory of an operand's input or destination. One in place counts as a destination.
type interval struct {
	start, end uintptr
	operand    int
	dst        bool
}

// crossing is memory to look at operands that could get in each other's way. That of a connection is for whoever has
// the turn.
type crossing struct{ intervals []interval }

// check refuses a destination that shares memory with another one, or with another operand's input. Inputs may share
// theirs. What is allowed within one operand, checkOverlap has seen to. what is the name of an operand.
func (m *crossing) check(what string, outs, ins [][]byte) error {
	m.intervals = m.intervals[:0]
	for t := range outs {
		dst, src := memoryAt(outs[t], t, true), memoryAt(ins[t], t, false)
		m.intervals = append(m.intervals, dst)
		if src.start != dst.start || src.end > dst.end {
			m.intervals = append(m.intervals, src)
		}
	}
	slices.SortFunc(m.intervals, func(a, b interval) int { return cmp.Compare(a.start, b.start) })
	var dsts, srcs furthest
	for _, i := range m.intervals {
		if i.start == i.end {
			continue
		}
		if other, crosses := dsts.beyond(i); crosses {
			if i.dst {
				return fmt.Errorf("the destinations of %s %d and %s %d overlap",
					what, min(i.operand, other), what, max(i.operand, other))
			}
			return fmt.Errorf("the destination of %s %d overlaps the input of %s %d", what, other, what, i.operand)
		}
		if !i.dst {
			srcs.note(i)
			continue
		}
		if other, crosses := srcs.beyond(i); crosses {
			return fmt.Errorf("the destination of %s %d overlaps the input of %s %d", what, i.operand, what, other)
		}
		dsts.note(i)
	}
	return nil
}

func memoryAt(b []byte, operand int, dst bool) interval {
	return interval{memory.Address(b), memory.Address(b) + uintptr(len(b)), operand, dst}
}

// furthest is the two intervals that reach furthest of those seen, one of each operand at most.
type furthest struct{ first, second interval }

func (f *furthest) note(i interval) {
	switch {
	case i.end > f.first.end:
		f.first, f.second = i, f.first
	case i.end > f.second.end:
		f.second = i
	}
}

// beyond finds another operand's interval that reaches beyond the start of i.
func (f *furthest) beyond(i interval) (operand int, found bool) {
	for _, seen := range [...]interval{f.first, f.second} {
		if seen.end > i.start && seen.operand != i.operand {
			return seen.operand, true
		}
	}
	return 0, false
}
