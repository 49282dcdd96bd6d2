package gcl

import (
	"context"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// call is a collective as it was asked for, without type parameters: on one operand, which the first fields are, or on
// what batch or within say.
type call struct {
	ask
	dtype    tensor.DType
	dst, src []byte
	srcLen   int // elements
	dstLen   int

	counts counts     // of a ...V form
	parts  pack.Parts // where the parts lie by the counts, or within a replica

	executes bool               // the operand goes by a schedule that the call comes with
	schedule *schedule.Schedule // that one
	alike    int                // by the schedule, the elements that members must have alike

	batch  *Batch      // whose operands the call is on
	within *withinCall // which is the call

	moves          uint8         // wire.Send, Recv or SendRecv, which is the call; 0: it is another
	to, from       int           // ranks of the same, or rounds.None
	label          *flight.Label // of its messages; nil: a rank is none of the group
	sent, received uint64        // the numbers of its messages

	invalid error // if not nil, the call is refused with it
}

// do carries out a call of any form: it waits for the connection's turn, numbers and records the call, checks, sends
// and receives. Every call takes a number in its group, a refused one too.
func (c *Comm) do(ctx context.Context, k *call) error {
	if err := c.check(); err != nil {
		return err
	}
	var f transport.Call
	c.describe(k, &f)
	err := c.enter(ctx, &f)
	f.Seq = c.number(k)
	if k.moves != 0 {
		f.Digest = k.sent // of a call that receives too: see flight.Label
	}
	if err != nil {
		return c.turnedAway(k, &f, err)
	}
	defer c.leave()
	began := ticks.Now()
	c.conn.Flight.Begin(c.labelOf(k), &f, began)
	if c.options.Trace != nil || isFollowed() {
		defer c.crashed()
		c.tell(ctx, k, &f, began)
	}
	j, err := c.prepare(ctx, k, &f)
	switch {
	case err != nil:
		return c.refuse(k, &f, err)
	case k.within != nil:
		return c.end(c.performWithin(ctx, k, &f))
	case k.moves != 0:
		return c.performMessages(ctx, k, &f)
	}
	if c.checks {
		err = c.performChecked(ctx, j, &f)
	} else {
		err = c.caller.Perform(ctx, j, &f)
	}
	c.conn.alone.Forget()
	if err != nil {
		return c.failed(ctx, k, &f, err)
	}
	return c.end(nil)
}

// describe says what a call is before it has a number: what members compare, and what the flight recorder keeps. It
// completes a call that comes with its schedule.
func (c *Comm) describe(k *call, f *transport.Call) {
	switch {
	case k.batch != nil:
		*f = k.batch.fingerprint
		return
	case k.within != nil:
		f.Collective, f.Count = uint8(k.within.collective)|wire.WithinReplica, uint64(k.within.ipus)
		return
	case k.moves != 0:
		c.describeMessages(k, f)
		return
	case k.executes:
		if k.invalid == nil {
			k.alike, k.invalid = c.measure(k)
		}
		f.Collective, f.Count, f.DType = wire.Execute, uint64(k.alike), uint8(k.dtype)
	default:
		f.Collective = uint8(k.Collective)
		f.Count, f.DType = k.counted(c.Size())
	}
	f.Group, f.Root = c.group.ID, wire.RootNumber(k.Root)
	f.Operator, f.Digest = k.operator.agreed(c.digest)
}

// number is the next one of a call's group, or of the calls within the replica, or of messages between two replicas.
func (c *Comm) number(k *call) uint64 {
	switch {
	case k.within != nil:
		return c.conn.withins.Add(1)
	case k.moves != 0:
		return c.numberMessages(k)
	}
	return c.group.made.calls.Add(1)
}

// labelOf is what the flight recorder knows of the group of a call.
func (c *Comm) labelOf(k *call) *flight.Label {
	switch {
	case k.within != nil:
		return k.within.label
	case k.label != nil:
		return k.label
	}
	return c.label
}

// prepare looks at the arguments of a call and makes a job of them, but of one within the replica. Nothing has been
// sent. It completes the fingerprint.
func (c *Comm) prepare(ctx context.Context, k *call, f *transport.Call) (*job.Job, error) {
	switch {
	case ctx == nil:
		return nil, errNilContext
	case k.invalid != nil:
		return nil, k.invalid
	case k.batch != nil:
		return k.batch.prepare(f)
	case k.within != nil:
		return nil, c.checkWithin(k.within)
	case k.moves != 0:
		return nil, c.checkMessages(k)
	}
	n, err := 0, error(nil)
	var given *rounds.Given
	switch {
	case k.executes:
		given, n, err = c.checkGiven(k)
	case k.counts.given:
		if n, err = c.checkWithCounts(k); err == nil {
			f.Digest = k.parts.Hash(f.Digest)
		}
	default:
		n, err = c.checkCall(k)
	}
	if err != nil {
		return nil, err
	}
	j := &c.conn.alone
	j.One(&k.Ask, k.dtype, k.dst, k.src, &k.parts, given, n)
	return j, nil
}
