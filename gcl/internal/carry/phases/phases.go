// Package phases carries out collectives of a group in phases: inside the link domain the one way, across domains the
// other. A phase is a collective of its own among some of the members.
//
// It decides on no route and knows no schedule: how a phase goes is its Caller's matter.
package phases

import (
	"context"

	"gogcl.dev/chunks"
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

// Grid is how a rank lies among link domains: its rank is its domain * Each + Place.
type Grid struct {
	Domains, Each int // domains with members; members in each
	Place         int
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
func (p *Call) Perform(ctx context.Context, at Grid, inside, across Caller, j *job.Job,
	fingerprint *transport.Call) error {
	p.Grid, p.inside, p.across = at, inside, across
	p.fingerprint, p.done, p.question = *fingerprint, 0, j.Question
	p.whole = whole{Ask: j.Ask, dtype: j.DTypes[0], dst: j.Outs[0], src: j.Ins[0],
		srcLen: len(j.Ins[0]) / j.DTypes[0].Size()}
	err := phasingOf(j.Collective).perform(p, ctx)
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
	f.Digest = wire.Mix(f.Digest, p.fingerprint.Group) // not that of another group's phase with the same members
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

// block is part i of several of the same length.
func block(parts []byte, i, bytes int) []byte { return parts[i*bytes : (i+1)*bytes] }

// allReduce: reduce-scatter inside, all-reduce of the shards across, all-gather inside.
func (p *Call) allReduce(ctx context.Context) error {
	k := &p.whole
	bytes := chunks.PerRank(k.srcLen, p.Each) * k.dtype.Size()
	all := k.dst
	if len(all) != bytes*p.Each { // the last shards are shorter
		all = p.memory(bytes * p.Each)
	}
	shard := block(all, p.Place, bytes)
	if err := p.do(ctx, p.inside, schedule.ReduceScatter, shard, k.src, p.first(), 0); err != nil {
		return err
	}
	if err := p.do(ctx, p.across, schedule.AllReduce, shard, shard, p.then(), 0); err != nil {
		return err
	}
	p.divide(shard)
	if err := p.do(ctx, p.inside, schedule.AllGather, all, shard, none, 0); err != nil {
		return err
	}
	if len(all) != len(k.dst) {
		copy(k.dst, all)
	}
	return nil
}

// reduceScatter: inside, what each other domain is to have, one after the other; then across.
func (p *Call) reduceScatter(ctx context.Context) error {
	k := &p.whole
	bytes := len(k.dst)
	perDomain := bytes * p.Each
	between := p.memory(p.Domains*bytes + perDomain)
	mine, padded := between[:p.Domains*bytes], between[p.Domains*bytes:]
	for d := range p.Domains {
		shard := block(mine, d, bytes)
		lo := d * perDomain
		if lo >= len(k.src) && d > 0 { // of nothing, all calls are still compared once
			clear(shard)
			continue
		}
		src := k.src[lo:min(lo+perDomain, len(k.src))]
		if len(src) < perDomain {
			clear(padded[copy(padded, src):])
			src = padded
		}
		if err := p.do(ctx, p.inside, schedule.ReduceScatter, shard, src, p.first(), 0); err != nil {
			return err
		}
	}
	if err := p.do(ctx, p.across, schedule.ReduceScatter, k.dst, mine, p.then(), 0); err != nil {
		return err
	}
	p.divide(k.dst)
	return nil
}

// allGather: across; then inside, what has come from each domain, one after the other.
func (p *Call) allGather(ctx context.Context) error {
	k := &p.whole
	bytes := len(k.src)
	mine := p.memory(p.Domains * bytes)
	if err := p.do(ctx, p.across, schedule.AllGather, mine, k.src, none, 0); err != nil {
		return err
	}
	for d := range p.Domains {
		if err := p.do(ctx, p.inside, schedule.AllGather,
			block(k.dst, d, bytes*p.Each), block(mine, d, bytes), none, 0); err != nil {
			return err
		}
	}
	return nil
}

// allToAll: inside, what goes to each domain, one after the other, so that all that goes to a member of another domain
// is with the member at its place of this one; then across.
func (p *Call) allToAll(ctx context.Context) error {
	k := &p.whole
	bytes := len(k.src) / p.Domains
	mine := p.memory(len(k.src))
	for d := range p.Domains {
		if err := p.do(ctx, p.inside, schedule.AllToAll,
			block(mine, d, bytes), block(k.src, d, bytes), none, 0); err != nil {
			return err
		}
	}
	return p.do(ctx, p.across, schedule.AllToAll, k.dst, mine, none, 0)
}

// broadcast: across from the root to the members at its place, then inside each domain. The call as a whole, which has
// no messages, is told to the transport as well: who is in another call that does not go in phases may wait for a
// member that has left.
func (p *Call) broadcast(ctx context.Context) error {
	k := &p.whole
	p.fingerprint.Method = p.across.MethodOf(&p.question)
	if err := p.endpoint.Exchange(ctx, p.fingerprint, nil); err != nil {
		return err
	}
	domain, place := k.Root/p.Each, k.Root%p.Each
	if p.Place == place {
		if err := p.do(ctx, p.across, schedule.Broadcast, k.dst, k.src, none, domain); err != nil {
			return err
		}
	} else if err := p.pass(ctx, p.across); err != nil {
		return err
	}
	return p.do(ctx, p.inside, schedule.Broadcast, k.dst, k.dst, none, place)
}
