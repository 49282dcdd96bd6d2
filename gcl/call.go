package gcl

import (
	"context"

	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

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
	return transport.Call{Group: c.group.id, Root: wire.RootNumber(a.root), Collective: uint8(a.collective), Operator: uint8(a.operator)}
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
	j.one(k, n)
	err := c.perform(ctx, j, &fingerprint)
	j.forget()
	if err != nil {
		return c.end(c.failure(ctx, &fingerprint, err))
	}
	return c.end(nil)
}
