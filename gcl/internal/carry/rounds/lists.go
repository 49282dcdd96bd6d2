package rounds

import (
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
)

// Lists is where chunks lie in a rank's buffers by a contract of a program's own. Places are in sizes of chunks, which
// a run's unit makes elements.
type Lists struct {
	contract *schedule.CustomContract
	total    int     // of all chunks
	input    int     // of those in the rank's input
	output   int     // of those in the rank's output
	in, out  []int32 // by chunk; where the rank's buffer does not hold it, 0
	results  []result
}

// result is a part of an Output with as many contributors.
type result struct{ end, ranks int }

// newLists finds the places of a rank; nil for no contract. The contract has been checked.
func newLists(c *schedule.CustomContract, rank int) *Lists {
	if c == nil {
		return nil
	}
	l := &Lists{contract: c}
	chunks := c.Chunks()
	for f := range chunks {
		l.total += c.Size(f)
	}
	at := func(list []int) (at []int32, sum int) {
		places, next := make([]int32, chunks), 0
		for _, f := range list {
			places[f] = int32(next)
			next += c.Size(f)
		}
		return places, next
	}
	l.in, l.input = at(c.Inputs[rank])
	l.out, l.output = at(c.Outputs[rank])
	if !c.Combines {
		return l
	}
	holders := make([]int, chunks)
	for _, list := range c.Inputs {
		for _, f := range list {
			holders[f]++
		}
	}
	for place, f := range c.Outputs[rank] {
		ranks, end := holders[f], int(l.out[f])+c.Size(f)
		if c.Wants != nil {
			ranks = len(c.Wants[rank][place])
		}
		if n := len(l.results); n > 0 && l.results[n-1].ranks == ranks {
			l.results[n-1].end = end
		} else {
			l.results = append(l.results, result{end, ranks})
		}
	}
	return l
}

// split fills in the bounds of chunks with n elements in all, and returns those of a chunk of size 1.
func (l *Lists) split(bounds []int, n int) (unit int) {
	if l.total > 0 {
		unit = n / l.total
	}
	for f := range len(bounds) - 1 {
		bounds[f+1] = bounds[f] + unit*l.contract.Size(f)
	}
	return unit
}

// bytes is the part of a buffer with some elements from a chunk on, which have places in it.
func (l *Lists) bytes(r *Run, buffer []byte, places []int32, first, elements int) []byte {
	at := int(places[first]) * r.place.unit
	return buffer[at*r.ElemSize : (at+elements)*r.ElemSize]
}

// Divide divides each chunk of an output by the number of ranks that have contributed to it. There are so many elements
// in all chunks.
func (l *Lists) Divide(out []byte, t kernel.Type, elements int) {
	unit, at := elements/max(l.total, 1)*t.Size(), 0
	for _, part := range l.results {
		if part.ranks > 1 {
			kernel.Divide(t)(out[at:part.end*unit], out[at:part.end*unit], part.ranks)
		}
		at = part.end * unit
	}
}
