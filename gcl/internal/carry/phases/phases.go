// Package phases carries out collectives of a group in phases: inside the link domain the one way, across domains the
// other. A phase is a collective of its own among some of the members.
//
// It decides on no route and knows no schedule: how a phase goes is its Caller's matter.
package phases

import (
	"context"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// Caller carries out the phases among some of the members.
type Caller interface {
	Size() int
	GroupID() uint64

	// Perform carries out a phase.
	Perform(ctx context.Context, j *job.Job, fingerprint *transport.Call) error

	// MethodOf stands, in a fingerprint, for the method by which a call goes.
	MethodOf(q *route.Question) uint8
}

// Call is one call on its way through its phases. It lives in a connection's carrier: a table's functions would let it
// escape.
type Call struct {
	Grid
	inside, across Caller
	endpoint       transport.Endpoint
	observer       *flight.Observer
	between        []byte // what a phase leaves for the next

	fingerprint transport.Call
	way         Way
	whole       whole
	question    route.Question // of the whole
	part        job.Job        // the phase in progress
	phase       transport.Call // its fingerprint
	done        uint64
}

// On makes a Call for the calls of one connection.
func On(endpoint transport.Endpoint, observer *flight.Observer) Call {
	return Call{endpoint: endpoint, observer: observer}
}

// whole is the call that the phases are of.
type whole struct {
	job.Ask
	dtype    tensor.DType
	dst, src []byte
	srcLen   int // elements
}

// Perform carries out a checked call on one operand, of a collective that goes in phases. Its fingerprint is as
// Fingerprint says.
func (p *Call) Perform(ctx context.Context, at Grid, way Way, inside, across Caller, j *job.Job,
	fingerprint *transport.Call) error {
	p.Grid, p.way, p.inside, p.across = at, way, inside, across
	p.fingerprint, p.done, p.question = *fingerprint, 0, j.Question
	p.whole = whole{Ask: j.Ask, dtype: j.DTypes[0], dst: j.Outs[0], src: j.Ins[0],
		srcLen: len(j.Ins[0]) / j.DTypes[0].Size()}
	err := phasingOf(j.Collective, way).perform(p, ctx)
	p.whole = whole{} // hold on to nobody's buffers
	p.part.Forget()
	return err
}

// Fingerprint is that of the latest call, as the transport was told.
func (p *Call) Fingerprint() *transport.Call { return &p.fingerprint }

// do carries out the next phase, the way of some members: a collective of src into dst.
func (p *Call) do(ctx context.Context, w Caller, collective schedule.Collective, dst, src []byte, r job.Reduction,
	root int) error {
	size := p.whole.dtype.Size()
	a := job.Ask{Collective: collective, Reduction: r, Root: root}
	n := len(src) / size
	if contract := collective.Contract(); contract.Deals() {
		n = len(dst) / size * w.Size()
	}
	p.phase = p.next(w)
	p.observer.StartPhase(p.done)
	p.part.One(&a, p.whole.dtype, dst, src, &pack.Parts{}, nil, collective.Contract().Elements(n, w.Size()))
	if err := w.Perform(ctx, &p.part, &p.phase); err != nil {
		return err
	}
	p.observer.EndRound(nil)
	return nil
}

// next begins the next phase, among the members of w, and returns its fingerprint.
func (p *Call) next(w Caller) transport.Call {
	p.done++
	f := p.fingerprint
	f.Group = wire.PhaseGroup(w.GroupID(), f.Group)
	// not that of another group's phase with the same members, nor of a call that goes the other way
	f.Digest = wire.Mix(wire.Mix(f.Digest, p.fingerprint.Group), uint64(p.way))
	f.Seq = wire.PhaseSeq(f.Seq, p.done)
	return f
}

// pass goes without the next phase, which is among other members of the group. Nothing is sent, but the transport is
// told: a member of w which believes that it is in this phase learns there who disagrees, also when this replica has
// left.
func (p *Call) pass(ctx context.Context, w Caller) error {
	f := p.next(w)
	f.Method = w.MethodOf(&p.question)
	return p.endpoint.Exchange(ctx, f, nil)
}

// tell tells the transport of the call as a whole, which has no messages: who is in another call that does not go in
// phases may wait for a member that has left.
func (p *Call) tell(ctx context.Context) error {
	p.fingerprint.Method = p.across.MethodOf(&p.question)
	return p.endpoint.Exchange(ctx, p.fingerprint, nil)
}

// first is the reduction of the phase that sees the inputs. The division is left to divide.
func (p *Call) first() job.Reduction { return p.whole.Reduction.Undivided() }

// then is the reduction of a phase that sees partial results.
func (p *Call) then() job.Reduction { return p.whole.Reduction.Partials() }

// none is the reduction of a phase that combines nothing.
var none job.Reduction

// divide ends a reduction that divides.
func (p *Call) divide(sums []byte) {
	if p.whole.Reduction.Divide {
		kernel.Divide(kernel.Type(p.whole.dtype))(sums, sums, p.Domains*p.Each)
	}
}

// memory is memory for one call.
func (p *Call) memory(bytes int) []byte {
	p.between = memory.Grow(p.between, bytes)
	return p.between[:bytes]
}
