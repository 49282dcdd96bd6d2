package pack

import (
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/internal/kernel"
)

// Staging is memory for inputs and outputs in another form than the caller's. It grows and is kept; what it has given
// is good until the next call of a method.
type Staging struct {
	all    []byte
	inputs [][]byte
}

// Bytes is how much memory there is.
func (s *Staging) Bytes() int { return len(s.all) }

// Pair returns two pieces of a and b bytes.
func (s *Staging) Pair(a, b int) (first, second []byte) {
	aligned := memory.RoundUp(a, Align)
	s.all = memory.Grow(s.all, aligned+b)
	return s.all[:a:a], s.all[aligned : aligned+b]
}

// Inputs copies inputs, each to the beginning of a cache line. In one pass over the copies the fragments, each of whole
// cache lines, lie in order.
func (s *Staging) Inputs(ins [][]byte) [][]byte {
	total := 0
	for _, in := range ins {
		total += memory.RoundUp(len(in), Align)
	}
	staged, _ := s.Pair(total, 0)
	s.inputs = s.inputs[:0]
	for _, in := range ins {
		kernel.Copy(staged[:len(in)], in, false)
		s.inputs, staged = append(s.inputs, staged[:len(in):len(in)]), staged[memory.RoundUp(len(in), Align):]
	}
	return s.inputs
}

// Packed returns memory for a packing, as input and, if that is to be apart, as output, and for more bytes.
func (s *Staging) Packed(size int, apart bool, more int) (in, out, rest []byte) {
	if !apart {
		in, rest = s.Pair(size, more)
		return in, in, rest
	}
	in, rest = s.Pair(size, size+more)
	return in, rest[:size], rest[size:]
}
