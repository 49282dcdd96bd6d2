package gcl

import (
	"errors"
	"fmt"

	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods/schedule"
)

// checkCall looks at the arguments of a call on one operand, and returns the elements of the larger buffer. Nothing has
// been sent.
func (c *Comm) checkCall(k *call) (n int, err error) {
	if n, err = c.checkOperand(k); err == nil {
		err = c.checkEngine(&k.ask, k.dtype, n, &k.parts)
	}
	return n, err
}

// checkOperand is checkCall whatever carries out the call.
func (c *Comm) checkOperand(k *call) (n int, err error) {
	size, contract := c.Size(), k.Collective.Contract()
	if contract.PerRank() && contract.Input != schedule.Whole && !k.counts.given {
		if err := checkSize(k.part(contract), size, k.dtype); err != nil {
			return 0, err
		}
	}
	if contract.Combines {
		if err := k.operator.Accepts(k.dtype); err != nil {
			return 0, err
		}
	}
	switch {
	case contract.Input == schedule.Blocks && !k.counts.given && k.srcLen%size != 0:
		return 0, fmt.Errorf("%d elements do not divide into %d equal parts, one for each rank", k.srcLen, size)
	case contract.Rooted() && (k.Root < 0 || k.Root >= size):
		return 0, fmt.Errorf("root %d is not a rank of the group, 0 to %d", k.Root, size-1)
	}
	if n, err = c.checkLengths(k, contract); err != nil {
		return 0, err
	}
	if err := c.checkOverlap(k); err != nil {
		return 0, err
	}
	if k.parts.Out != nil {
		err = k.checkInPlace()
	}
	return n, err
}

// checkLengths looks at the lengths of the buffers, and returns the elements of the larger one.
func (c *Comm) checkLengths(k *call, contract schedule.Contract) (n int, err error) {
	if k.counts.given {
		return c.checkCounts(k)
	}
	n = c.larger(k)
	if contract.Rooted() {
		return n, c.checkRooted(k, contract, n)
	}
	if want := contract.Output.Elements(n, c.Size()); k.dstLen != want {
		return 0, fmt.Errorf("the destination has %d elements, want %d for %d of input over %d ranks",
			k.dstLen, want, k.srcLen, c.Size())
	}
	return n, nil
}

// checkRooted looks at the lengths of a call with a root, of n elements in the larger buffer. A buffer that does not
// count on this rank may be missing, and is left out of the call.
func (c *Comm) checkRooted(k *call, contract schedule.Contract, n int) error {
	size, atRoot := c.Size(), c.Rank() == k.Root
	switch want := contract.Output.Elements(n, size); {
	case contract.Deals() && atRoot && k.srcLen%size != 0:
		return fmt.Errorf("%d elements at the root do not divide into %d equal parts, one for each rank",
			k.srcLen, size)
	case contract.Deals() && atRoot && k.srcLen != n:
		return fmt.Errorf("the destination has %d elements, want %d for %d of input over %d ranks",
			k.dstLen, k.srcLen/size, k.srcLen, size)
	case contract.Deals() && k.srcLen != 0 && k.srcLen != n:
		return fmt.Errorf("the input has %d elements, want none or %d: only the root's is read", k.srcLen, n)
	case contract.Output == schedule.AtRoot && !atRoot && k.dstLen != 0 && k.dstLen != want:
		return fmt.Errorf("the destination has %d elements, want none or %d: only the root's is written",
			k.dstLen, want)
	case (contract.Output != schedule.AtRoot || atRoot) && k.dstLen != want:
		return fmt.Errorf("the destination has %d elements, want %d for %d of input over %d ranks",
			k.dstLen, want, k.srcLen, size)
	}
	c.leaveOutMissing(k)
	return nil
}

// leaveOutMissing takes a buffer that may be missing on this rank out of a call with a root.
func (c *Comm) leaveOutMissing(k *call) {
	if !k.Writes(c.Rank()) {
		k.dst = nil
	}
	if k.Collective.Contract().Deals() && c.Rank() != k.Root {
		k.src = nil
	}
}

// checkAsk looks at the part of a call that is the same for all operands.
func (c *Comm) checkAsk(a *ask) error {
	switch contract := a.Collective.Contract(); {
	case a.Collective == schedule.Barrier:
		return errors.New("a barrier has no operands: want Comm.Barrier")
	case a.Collective == schedule.Custom:
		return errCustom
	case !a.Collective.Valid():
		return fmt.Errorf("unknown collective %d", a.Collective)
	case contract.Combines && !operatorTable.Load().names.Valid(a.operator):
		return operatorTable.Load().names.Check(a.operator)
	case !contract.Combines && a.operator != 0:
		return fmt.Errorf("%s combines nothing: its operator is %v, want 0", wire.WithArticle(a.Collective), a.operator)
	case contract.Rooted() && (a.Root < 0 || a.Root >= c.Size()):
		return fmt.Errorf("root %d is not a rank of the group, 0 to %d", a.Root, c.Size()-1)
	case !contract.Rooted() && a.Root != 0:
		return fmt.Errorf("%s has no root: its root is %d, want 0", wire.WithArticle(a.Collective), a.Root)
	}
	return nil
}

// errCustom is what a collective of a program's own gets where only its name is known.
var errCustom = errors.New("a custom collective is what its schedule says: want Execute with that")

// errNilContext is what a call without a context gets.
var errNilContext = errors.New("nil context")

// larger is the number of elements in the larger of a rank's two buffers.
func (c *Comm) larger(k *call) int {
	if k.parts.Bounds != nil {
		return k.parts.Bounds[c.Size()]
	}
	return k.Collective.Contract().Elements(k.count(c.Size()), c.Size())
}

// checkOverlap refuses a destination that shares memory with the input, unless it is the input or, where one is
// smaller, its own place in the larger.
func (c *Comm) checkOverlap(k *call) error {
	if !memory.Overlap(k.dst, k.src) {
		return nil
	}
	dst, src := memory.Address(k.dst), memory.Address(k.src)
	apart, side := dst-src, "after"
	if dst < src {
		apart, side = src-dst, "before"
	}
	place, where := uintptr(0), "be the input itself"
	switch contract := k.Collective.Contract(); {
	case contract.Output == schedule.Own:
		place, where = k.ownPlace(c.Rank(), k.dst), "be the rank's own shard of the input"
	case contract.Input == schedule.Own:
		place, where = k.ownPlace(c.Rank(), k.src), "hold the input as the rank's own shard"
		dst, src = src, dst
	}
	if dst != src+place {
		return fmt.Errorf("the destination begins %d bytes %s the input and overlaps it; it must lie apart or %s",
			apart, side, where)
	}
	return nil
}

// ownPlace is the byte at which a rank's own part, the smaller buffer, lies in the larger one.
func (k *call) ownPlace(rank int, own []byte) uintptr {
	if k.parts.Bounds != nil {
		return uintptr(k.parts.Bounds[rank] * k.dtype.Size())
	}
	return uintptr(rank * len(own))
}
