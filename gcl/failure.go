package gcl

import (
	"context"
	"errors"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/transport"
)

// refusal is for a call that was refused before anything was sent.
func (c *Comm) refusal(k *call, f *transport.Call, err error) *callError {
	return &callError{what: wire.Name(*f) + wire.Quote(c.label.Name), replica: c.Replica(), err: err,
		at: c.placeOf(k, f)}
}

// placeOf is what an error about a call has Dump know.
func (c *Comm) placeOf(k *call, f *transport.Call) flight.Place {
	at := c.place(f.Seq)
	at.Group = c.labelOf(k).Group
	return at
}

// failure is for what came of a call that was not refused.
func (c *Comm) failure(ctx context.Context, k *call, call *transport.Call, err error) *callError {
	e := newCallError(ctx, wire.Name(*call)+wire.Quote(c.label.Name), c.Replica(), err)
	e.at, e.waits = c.placeOf(k, call), c.timedOut(ctx, c.labelOf(k), call, err)
	e.names = names(c.conn.flights.NamesIn(err, isNamed))
	if lost, _ := rootIn[*transport.LostError](err); lost != nil {
		e.waited = c.conn.Flight.Waited(c.labelOf(k).Group, call.Seq)
	}
	return e
}

// isNamed reports whether an error holds the names of the calls in it.
func isNamed(err error) bool {
	switch err.(type) {
	case *callError, *replicaError:
		return true
	}
	return false
}

// otherFailure is for what has no number, as a Dup.
func (c *Comm) otherFailure(ctx context.Context, what string, err error) *callError {
	e := newCallError(ctx, what+wire.Quote(c.label.Name), c.Replica(), err)
	e.at, e.names = c.place(0), names(c.conn.flights.NamesIn(err, isNamed))
	return e
}

// place is what an error about call number seq of c, or about none if that is 0, has Dump know.
func (c *Comm) place(seq uint64) flight.Place {
	return flight.Place{Recorders: c.conn.flights, Recorder: c.conn.Flight, Group: c.group.ID, Seq: seq}
}

// timedOut is what to add to the error of a call whose context is done, or "": which members have not come to it, and
// what each of them was doing.
func (c *Comm) timedOut(ctx context.Context, label *flight.Label, call *transport.Call, err error) string {
	own, done := context.Cause(ctx), ctx.Err() != nil
	ended := func(err error) bool { // in a call, by a context that says nothing of another failure
		return done && errors.Is(err, own) && len(findPlaces(own)) == 0 || errors.Is(err, context.DeadlineExceeded) ||
			errors.Is(err, context.Canceled)
	}
	abort := (*transport.AbortError)(nil)
	switch {
	case !errors.As(err, &abort):
		if !done || !ended(err) {
			return ""
		}
	default: // of a member whose context was done before
		if _, round := abort.Cause.(*transport.RoundError); !round || !ended(abort.Cause) {
			return ""
		}
	}
	w := c.conn.flights.Look()
	if c.conn.Endpoint.Err() != nil { // else nobody tells anything
		w = w.Heard(c.conn.flights)
	}
	text, missing := w.WaitingFor(c.conn.Flight, label, call.Seq, call.Digest)
	if abort != nil && !missing { // perhaps it is this replica that has come too late
		return ""
	}
	return text
}
