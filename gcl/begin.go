package gcl

import (
	"context"
	"errors"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// event describes a call of c. k is one on several tensors, or nil. Of one operand with counts, eventOfOne knows how
// much it is.
func (c *Comm) event(call *transport.Call, k *manyCall) TraceCall {
	e := TraceCall{
		Name: c.label.Name, Replica: c.Replica(), Connection: c.conn.Flight.Connection,
		ConnectionID: c.conn.number, Rank: c.Rank(), Size: c.Size(),
		Group: call.Group, Seq: call.Seq, Collective: schedule.Collective(call.Collective),
		Operator: Operator(call.Operator), Root: int(int32(call.Root)),
		DType: tensor.DType(call.DType &^ wire.DTypeMarks), Elements: int(call.Count),
	}
	if call.Collective == wire.Barrier {
		e.Collective, e.Barrier = schedule.AllReduce, true
	}
	e.ByCounts = call.DType&wire.ByCounts != 0
	e.Bytes = e.Elements * e.DType.Size()
	if !e.ByCounts {
		e.Bytes = e.Collective.Contract().Elements(e.Elements, e.Size) * e.DType.Size()
	}
	if k != nil {
		e.Tensors, e.Bytes = k.size()
	}
	return e
}

// eventOfOne describes a call on one operand.
func (c *Comm) eventOfOne(call *transport.Call, k *call) TraceCall {
	e := c.event(call, nil)
	if e.ByCounts {
		e.Elements = max(e.Elements, k.srcLen, k.dstLen)
		e.Bytes = e.Elements * e.DType.Size()
	}
	return e
}

// record has the flight recorder know that a call begins.
func (c *Comm) record(call *transport.Call) {
	c.conn.Flight.Begin(c.label, call, ticks.Now())
}

// takeNumber waits for the turn of a call, and numbers it. After an error the turn is not the caller's, and
// tellTurnedAway must follow. Else record must follow, tell, end, and leave; with a Trace also crashed, in case that
// the call panics.
func (c *Comm) takeNumber(ctx context.Context, call *transport.Call) error {
	err := c.enter(ctx, call)
	call.Seq = c.group.seq.Add(1)
	return err
}

// tellStart tells the Trace that a call has its turn. k is one on several tensors, or nil.
func (c *Comm) tellStart(call *transport.Call, k *manyCall) {
	if c.options.Trace != nil {
		c.tell(c.event(call, k))
	}
}

// tell is tellStart for a call that has been described.
func (c *Comm) tell(e TraceCall) {
	t := &c.conn.tracing
	*t = tracing{trace: c.options.Trace, call: e}
	c.conn.Listener = t
	if f := t.trace.CollectiveStart; f != nil {
		f(t.call)
	}
}

// end tells that the call is over, and with which error, which it returns.
func (c *Comm) end(err error) error {
	l := c.conn
	if l.tracing.trace != nil {
		l.endTrace(err)
	}
	l.Flight.End(err != nil)
	return err
}

// failed ends the call in progress with an error. A method of the program's own whose schedule is not right refuses the
// call: nothing has been sent.
func (c *Comm) failed(ctx context.Context, call *transport.Call, err error) error {
	if unproved := (*carry.UnprovedError)(nil); errors.As(err, &unproved) {
		return c.refuse(call, unproved.Err)
	}
	return c.end(c.failure(ctx, call, err))
}

// refuse ends the call in progress, of which nothing has been sent.
func (c *Comm) refuse(call *transport.Call, err error) error {
	c.conn.Flight.Refuse()
	return c.end(c.refusal(call, err))
}

// crashed is called, deferred, after begin with a Trace. If end has not been reached the others must not be left
// waiting.
func (c *Comm) crashed() {
	l := c.conn
	if l.tracing.trace == nil {
		return
	}
	l.silence()
	c.Abort(carry.ErrCrash)
	l.Flight.End(true)
}

// turnedAway tells of a call that never had its turn, and makes its error. k is one on several tensors, or nil.
func (c *Comm) turnedAway(call *transport.Call, k *manyCall, cause error) error {
	var e TraceCall
	if c.options.Trace != nil {
		e = c.event(call, k)
	}
	return c.tellTurnedAway(call, e, cause)
}

// tellTurnedAway is turnedAway for a call that has been described, if there is a Trace.
func (c *Comm) tellTurnedAway(call *transport.Call, e TraceCall, cause error) error {
	c.conn.Flight.TurnedAway(c.label, call, waitedSince(cause))
	err := c.refusal(call, cause)
	if c.options.Trace != nil {
		c.options.Trace.tellAtOnce(e, err)
	}
	return err
}

// tellAtOnce tells of a call that ends as it starts.
func (t *Trace) tellAtOnce(e TraceCall, err error) {
	if t.CollectiveStart != nil {
		t.CollectiveStart(e)
	}
	if t.CollectiveEnd != nil {
		t.CollectiveEnd(e, err)
	}
}

// waitedSince is when a call that never had its turn began to wait for it, or 0.
func waitedSince(err error) int64 {
	if w, ok := err.(*waitError); ok {
		return w.began
	}
	return 0
}
