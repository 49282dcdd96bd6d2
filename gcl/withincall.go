package gcl

import (
	"context"
	"errors"
	"fmt"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// withinCall is a collective within the replica, of one row or chunk on each IPU.
type withinCall struct {
	collective schedule.Collective
	operator   Operator
	dtype      tensor.DType
	ipus       int
	elements   int // on all of them
	label      *flight.Label
	check      func() error     // whether the rows or chunks are right
	body       func(*ipu) error // the part of each IPU
}

// event completes the description of the call for a Trace: it has no group.
func (k *withinCall) event(e *TraceCall) {
	e.Rank, e.Size, e.Group, e.Seq, e.Root, e.Transport = 0, 0, 0, 0, 0, ""
	e.IPUs, e.Collective, e.Operator, e.DType, e.Elements = k.ipus, k.collective, k.operator, k.dtype, k.elements
	e.Bytes = k.collective.Contract().Elements(k.elements, k.ipus) * k.dtype.Size()
}

// within carries out a collective within the replica.
func (c *Comm) within(ctx context.Context, k *withinCall) error {
	if err := c.check(); err != nil {
		return err
	}
	k.label = &flight.Label{Name: c.label.Name, Group: wire.OwnGroup(c.Replica(), wire.WithinReplica)}
	return c.do(ctx, &call{within: k})
}

// performWithin carries out a checked collective within the replica.
func (c *Comm) performWithin(ctx context.Context, all *call, f *transport.Call) error {
	k := all.within
	s, err := c.conn.ipusOf(k.ipus)
	if err == nil {
		// An aborted or closed communicator, or a context that is done, must show.
		err = c.conn.Endpoint.Exchange(ctx, transport.Call{}, nil)
	}
	options := c.options
	options.Strict = false // an error among IPUs would end the communicator
	for i := 0; i < k.ipus && err == nil; i++ {
		err = s.all[i].join(c.ipusPerRank(), options)
	}
	if err != nil {
		failed := c.otherFailure(ctx, wire.NameWithin(k.collective), err)
		failed.at = c.placeOf(all, f)
		return failed
	}
	first := s.all[0].comm.conn
	first.Listener = c.conn.Listener // of what IPU 0 does
	err = s.run(ctx, k.body)
	first.Listener = nil
	if err == nil {
		return nil
	}
	failed := c.refusal(all, f, err)
	if c.conn.isClosed() {
		failed.kinds = []error{ErrClosed}
		return failed
	}
	failed.kinds = []error{ErrAborted}
	c.Abort(failed)
	return failed
}

// ipusPerRank is Options.IPUsPerRank with its default.
func (c *Comm) ipusPerRank() int { return max(c.options.IPUsPerRank, 1) }

// checkWithin looks at the arguments of a collective within the replica.
func (c *Comm) checkWithin(w *withinCall) error {
	k, known, m := w.ipus, c.conn.ipusPerReplica, c.ipusPerRank()
	switch {
	case known > 0 && k != known:
		return fmt.Errorf("%d IPUs are given data, but a replica has %d by the topology "+
			"(topology.Config.IPUsPerReplica)", k, known)
	case c.options.Method == methods.Native:
		return nativeError("it needs a transport with collectives of its own, which the IPUs of a replica do not have: " +
			"want a Comm with another method")
	case k == 0:
		return errors.New("no IPU is given data, want 1 or more")
	case k > MaxIPUs:
		return fmt.Errorf("%d IPUs are given data, a row or chunk each, want %d at most (MaxIPUs)", k, MaxIPUs)
	case k%m != 0:
		return fmt.Errorf("%d IPUs do not divide into ranks of %d (Options.IPUsPerRank)", k, m)
	}
	return w.check()
}
