package gcl

import (
	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// ask is what a collective is to do, as it was asked for.
type ask struct {
	carry.Ask
	operator Operator
}

// newAsk asks for a collective. The operator may be none: see checkAsk.
func newAsk(collective schedule.Collective, op Operator, root int) ask {
	a := ask{carry.Ask{Collective: collective, Root: root}, op}
	if op < numOperators {
		a.Reduction = operators[op].Reduction
	}
	return a
}

// call is a collective on one operand, without type parameters.
type call struct {
	ask
	dtype    tensor.DType
	dst, src []byte
	srcLen   int // elements
	dstLen   int

	// parts, of a reduce-scatter or an all-gather whose ranks have parts of different lengths, is where each rank's
	// begins in the larger buffer, and where the last ends, in elements; those of a reduce-scatter are as chunks.Split
	// has them. nil: equal parts, the last padded.
	parts []int

	invalid error // if not nil, the call is refused with it
}

// count is the elements of an input that a call tells of: where the root deals parts out, those of the root's.
func (k *call) count(ranks int) int {
	if k.Collective.Contract().Deals() {
		return k.dstLen * ranks
	}
	return k.srcLen
}

// part is what takes room on all ranks, once for each: an input, or where the root deals parts out an output. Blocks
// have room as they are.
func (k *call) part(contract schedule.Contract) int {
	switch {
	case contract.Deals():
		return k.dstLen
	case contract.Input == schedule.Own:
		return k.srcLen
	}
	return 0
}
