package gcl

import (
	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods/schedule"
)

// ask is what a collective is to do, as it was asked for.
type ask struct {
	job.Ask
	operator Operator
}

// newAsk asks for a collective. The operator may be none: see checkAsk.
func newAsk(collective schedule.Collective, op Operator, root int) ask {
	a := ask{job.Ask{Collective: collective, Root: root}, op}
	if r := op.row(); r != nil {
		a.Reduction = r.Reduction
	}
	return a
}

// count is the elements of an input that a call tells of: where the root deals parts out, those of the root's.
func (k *call) count(ranks int) int {
	if k.Collective.Contract().Deals() {
		return k.dstLen * ranks
	}
	return k.srcLen
}

// counted is what a fingerprint has of an operand: the elements that all ranks know, and the type with its marks.
func (k *call) counted(ranks int) (count uint64, dtype uint8) {
	if k.counts.given {
		return k.counts.total(k.Collective), uint8(k.dtype) | wire.ByCounts
	}
	return uint64(k.count(ranks)), uint8(k.dtype)
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
