package measure

import (
	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// period is after how many elements the values of a replica repeat. A prime: whole blocks in a wrong place show, as
// their lengths are not its multiples.
const period = 4093

// pattern is the input of each replica, and its reduction. Blocks of period elements stand for buffers of any length:
// element i of a buffer is element i mod period of its block.
type pattern struct {
	dtype           tensor.DType
	inputs, reduced [][]byte // by replica
}

// newPattern makes the values for n replicas. Every partial result of op is exact in the element type, so that the
// order in which replicas are combined does not matter. A collective that does not reduce has operator gcl.Local.
func newPattern(dtype tensor.DType, op gcl.Operator, n int) *pattern {
	name := oracle.Operator(op.String())
	in := oracle.InputTensors(dtype, name, n, period)
	out := oracle.OutputTensors(oracle.Call{Collective: schedule.AllReduce, Operator: name}, in)
	p := &pattern{dtype: dtype}
	for r := range in {
		p.inputs, p.reduced = append(p.inputs, in[r].Bytes()), append(p.reduced, out[r].Bytes())
	}
	return p
}

// block is the block that a part of a replica's result is like.
func (p *pattern) block(from, rank int) []byte {
	switch from {
	case oracle.Reduced:
		return p.reduced[rank]
	case oracle.Zeros:
		return make([]byte, len(p.inputs[rank]))
	}
	return p.inputs[from]
}
