package gcl

import (
	"cmp"
	"context"
	"errors"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// event describes a call to a Trace. A TraceCall is large: it is written field by field where it lies, since to put it
// together elsewhere and copy it in words stalls.
func (c *Comm) event(e *TraceCall, k *call, f *transport.Call) {
	*e = TraceCall{}
	e.Name, e.Replica, e.Connection = c.label.Name, c.conn.Flight.Replica, c.conn.Flight.Connection
	e.ConnectionID, e.Rank, e.Size = c.conn.number, c.group.Rank, len(c.group.Members)
	e.Group, e.Seq, e.Collective = f.Group, f.Seq, schedule.Collective(f.Collective)
	e.Operator, e.Root = k.operator, int(int32(f.Root))
	e.DType, e.Elements = tensor.DType(f.DType&^wire.DTypeMarks), int(f.Count)
	e.Transport, e.comm = c.group.link.Transport, c
	if k.within != nil {
		k.within.event(e)
		return
	}
	if k.moves != 0 {
		e.Collective, e.To, e.From, e.Root = schedule.Custom, rounds.None, rounds.None, 0
		e.Message, e.Group, e.SentSeq, e.Bytes = true, c.group.ID, k.sent, max(len(k.dst), len(k.src))
		if k.moves != wire.Recv && c.hasRank(k.to) {
			e.To = c.group.Members[k.to]
		}
		if k.moves != wire.Send && c.hasRank(k.from) {
			e.From = c.group.Members[k.from]
		}
		return
	}
	if f.Collective == wire.Barrier {
		e.Collective, e.Barrier = schedule.AllReduce, true
	}
	e.ByCounts = f.DType&wire.ByCounts != 0
	switch {
	case k.executes:
		e.Elements, e.Bytes = k.srcLen, max(len(k.dst), len(k.src))
	case k.batch != nil && (e.ByCounts || k.batch.several()):
		k.batch.describe(e)
	case e.ByCounts:
		e.Elements = max(e.Elements, k.srcLen, k.dstLen)
		e.Bytes = e.Elements * e.DType.Size()
	default:
		e.Bytes = e.Collective.Contract().Elements(e.Elements, e.Size) * e.DType.Size()
	}
}

// tell tells of a call that has its turn, since when: a profile, an execution trace and its Trace.
func (c *Comm) tell(ctx context.Context, k *call, f *transport.Call, began int64) {
	c.follow(ctx, f)
	if c.options.Trace == nil {
		return
	}
	t := &c.conn.tracing
	c.event(&t.call, k, f)
	t.trace, t.call.began, t.open = c.options.Trace, began, false
	c.conn.Listener = t
	if start := t.trace.CollectiveStart; start != nil {
		start(t.call)
	}
}

// end tells that the call is over, and with which error, which it returns.
func (c *Comm) end(err error) error {
	l := c.conn
	l.Flight.End(err != nil, l.endTrace(err))
	return err
}

// failed ends the call in progress with an error. A method of the program's own whose schedule is not right refuses the
// call: nothing has been sent.
func (c *Comm) failed(ctx context.Context, k *call, f *transport.Call, err error) error {
	switch e := err.(type) {
	case *NotFiniteError:
		if e.Replica = c.Replica(); k.batch != nil && k.batch.several() {
			e.what = cmp.Or(k.batch.what, "operand")
		}
		failed := c.failure(ctx, k, f, e)
		c.Abort(failed)
		return c.end(failed)
	case *UnequalError:
		return c.end(c.refusal(k, f, e))
	}
	if unproved := (*carry.UnprovedError)(nil); errors.As(err, &unproved) {
		return c.refuse(k, f, unproved.Err)
	}
	return c.end(c.failure(ctx, k, f, err))
}

// refuse ends the call in progress, of which nothing has been sent.
func (c *Comm) refuse(k *call, f *transport.Call, err error) error {
	c.conn.Flight.Refuse()
	return c.end(c.refusal(k, f, err))
}

// crashed is called, deferred, if tell is. If end has not been reached with a Trace the others must not be left
// waiting.
func (c *Comm) crashed() {
	l := c.conn
	l.following.unfollow()
	if l.tracing.trace == nil {
		return
	}
	l.silence()
	c.Abort(flight.ErrCrash)
	l.Flight.End(true, 0)
}

// turnedAway tells of a call that never had its turn, which ends as it starts, and makes its error.
func (c *Comm) turnedAway(k *call, f *transport.Call, cause error) error {
	c.conn.Flight.TurnedAway(c.labelOf(k), f, waitedSince(cause))
	err := c.refusal(k, f, cause)
	t := c.options.Trace
	if t == nil {
		return err
	}
	var e TraceCall
	c.event(&e, k, f)
	if t.CollectiveStart != nil {
		t.CollectiveStart(e)
	}
	if t.CollectiveEnd != nil {
		t.CollectiveEnd(e, err)
	}
	return err
}

// waitedSince is when a call that never had its turn began to wait for it, or 0.
func waitedSince(err error) int64 {
	if w, ok := err.(*waitError); ok {
		return w.began
	}
	return 0
}
