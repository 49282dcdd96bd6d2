package gcl

import (
	"context"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
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

// fingerprintOf is the part of a call's fingerprint that does not depend on what it works on.
func (c *Comm) fingerprintOf(a *ask) transport.Call {
	return transport.Call{Group: c.group.ID, Root: wire.RootNumber(a.Root), Collective: uint8(a.Collective), Operator: uint8(a.operator)}
}

// do carries out a call: it waits for the lane's turn, checks, sends and receives. Every call takes a number in its
// group, a refused one too.
func (c *Comm) do(ctx context.Context, k *call) error {
	if err := c.check(); err != nil {
		return err
	}
	fingerprint := c.fingerprintOf(&k.ask)
	fingerprint.Count, fingerprint.Digest, fingerprint.DType = uint64(k.count(c.Size())), c.digest, uint8(k.dtype)
	if err := c.begin(ctx, &fingerprint); err != nil {
		return err
	}
	defer c.leave()
	if c.options.Trace != nil {
		defer c.crashed()
	}
	c.tellStart(&fingerprint, nil)
	n, refused := 0, k.invalid
	switch {
	case ctx == nil:
		refused = errNilContext
	case refused == nil:
		n, refused = c.checkCall(k)
	}
	if refused != nil {
		return c.refuse(&fingerprint, refused)
	}
	j := &c.lane.alone
	j.One(&k.Ask, k.dtype, k.dst, k.src, k.parts, n)
	err := c.way.Perform(ctx, j, &fingerprint)
	j.Forget()
	if err != nil {
		return c.end(c.failure(ctx, &fingerprint, err))
	}
	return c.end(nil)
}
