package gcl

import (
	"context"
	"errors"
	"fmt"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// withinCall is a collective within the replica.
type withinCall struct {
	collective schedule.Collective
	operator   Operator
	dtype      tensor.DType
	ipus       int
	elements   int // on all of them
	at         flight.Place
}

// event describes the call to a Trace.
func (k *withinCall) event(c *Comm) TraceCall {
	e := TraceCall{
		Name: c.label.Name, Replica: c.Replica(), Connection: c.conn.Flight.Connection,
		ConnectionID: c.conn.number, IPUs: k.ipus,
		Collective: k.collective, Operator: k.operator, DType: k.dtype, Elements: k.elements,
	}
	e.Bytes = k.collective.Contract().Elements(k.elements, k.ipus) * k.dtype.Size()
	return e
}

// within carries out a collective within the replica, of one row or chunk on each IPU. When the connection is the
// caller's, and nothing speaks against it, among the rest check, body is called for each IPU.
func (c *Comm) within(ctx context.Context, k withinCall, check func() error, body func(*ipu) error) error {
	if err := c.check(); err != nil {
		return err
	}
	recorded := transport.Call{Collective: uint8(k.collective) | wire.WithinReplica, Count: uint64(k.ipus)}
	l := &flight.Label{Name: c.label.Name,
		Group: wire.OwnGroup(c.Replica(), wire.WithinReplica)}
	k.at = flight.Place{Recorders: c.conn.flights, Recorder: c.conn.Flight, Group: l.Group}
	err := c.enter(ctx, &recorded)
	recorded.Seq = c.conn.withins.Add(1)
	k.at.Seq = recorded.Seq
	if err != nil {
		c.conn.Flight.TurnedAway(l, &recorded, waitedSince(err))
		err = c.failureWithin(&k, err)
		if c.options.Trace != nil {
			c.options.Trace.tellAtOnce(k.event(c), err)
		}
		return err
	}
	defer c.leave()
	c.conn.Flight.Begin(l, &recorded, ticks.Now())
	if c.options.Trace != nil {
		defer c.crashed()
		c.tell(k.event(c))
	}
	refused := c.checkWithin(ctx, k.ipus)
	if refused == nil {
		refused = check()
	}
	if refused != nil {
		c.conn.Flight.Refuse()
		return c.end(c.failureWithin(&k, refused))
	}
	return c.end(c.performWithin(ctx, &k, body))
}

// failureWithin is the error of a collective within the replica.
func (c *Comm) failureWithin(k *withinCall, err error, kinds ...error) *callError {
	return &callError{what: wire.NameWithin(k.collective) + wire.Quote(c.label.Name), replica: c.Replica(), err: err,
		kinds: kinds, at: k.at}
}

// performWithin carries out a checked collective within the replica.
func (c *Comm) performWithin(ctx context.Context, k *withinCall, body func(*ipu) error) error {
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
		failed.at = k.at
		return failed
	}
	first := s.all[0].comm.conn
	first.Listener = c.conn.Listener // of what IPU 0 does
	err = s.run(ctx, body)
	first.Listener = nil
	switch {
	case err == nil:
		return nil
	case c.conn.isClosed():
		return c.failureWithin(k, err, ErrClosed)
	}
	failed := c.failureWithin(k, err, ErrAborted)
	c.Abort(failed)
	return failed
}

// ipusPerRank is Options.IPUsPerRank with its default.
func (c *Comm) ipusPerRank() int { return max(c.options.IPUsPerRank, 1) }

// checkWithin looks at the number of IPUs.
func (c *Comm) checkWithin(ctx context.Context, k int) error {
	known, m := c.conn.ipusPerReplica, c.ipusPerRank()
	switch {
	case ctx == nil:
		return errors.New("nil context")
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
	return nil
}
