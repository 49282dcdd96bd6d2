package gcl

import (
	"context"

	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/transport"
)

// fingerprintOf is the part of a call's fingerprint that does not depend on what it works on.
func (c *Comm) fingerprintOf(a *ask) transport.Call {
	return transport.Call{Group: c.group.ID, Root: wire.RootNumber(a.Root), Collective: uint8(a.Collective),
		Operator: uint8(a.operator)}
}

// do carries out a call: it waits for the connection's turn, numbers and records the call, checks, sends and receives.
// Every call takes a number in its group, a refused one too.
func (c *Comm) do(ctx context.Context, k *call) error {
	if err := c.check(); err != nil {
		return err
	}
	fingerprint := c.fingerprintOf(&k.ask)
	fingerprint.Count, fingerprint.DType = k.told(c.Size())
	fingerprint.Digest = c.digest
	if err := c.takeNumber(ctx, &fingerprint); err != nil {
		return c.tellTurnedAway(&fingerprint, c.eventOfOne(&fingerprint, k), err)
	}
	c.record(&fingerprint)
	defer c.leave()
	if c.options.Trace != nil {
		defer c.crashed()
		c.tell(c.eventOfOne(&fingerprint, k))
	}
	n, refused := 0, k.invalid
	switch {
	case ctx == nil:
		refused = errNilContext
	case refused == nil && k.counts.given:
		if n, refused = c.checkWithCounts(k); refused == nil {
			fingerprint.Digest = k.parts.Hash(c.digest)
		}
	case refused == nil:
		n, refused = c.checkCall(k)
	}
	if refused != nil {
		return c.refuse(&fingerprint, refused)
	}
	j := &c.conn.alone
	j.One(&k.Ask, k.dtype, k.dst, k.src, &k.parts, n)
	err := c.way.Perform(ctx, j, &fingerprint)
	j.Forget()
	if err != nil {
		return c.failed(ctx, &fingerprint, err)
	}
	return c.end(nil)
}
