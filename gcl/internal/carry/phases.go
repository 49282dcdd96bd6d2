package carry

import (
	"context"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/internal/recent"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// Hybrid carries out collectives in phases: inside the link domain the one way, across domains the other.
type Hybrid struct {
	*Split
	carrier        *Carrier
	Inside, Across *Caller
	proved         recent.Map[phasesKey, bool] // the calls whose phases a program's own method has been proved for
}

// NewHybrid makes the ways of the phases, where there are link domains to go by. Their tuning is that of the whole
// group: all its members must have it alike, and hosts need not be link domains.
func (w *Caller) NewHybrid() *Hybrid {
	phases := func(g *Group, i route.Implementation) *Caller {
		phase := *w
		phase.Group, phase.Hybrid, phase.Reproducible = g, nil, false
		s := &phase.Setting
		s.Implementation, s.Reproducible, s.Ranks, s.Domains, s.Each = i, false, phase.Size(), 0, 0
		s.Phase = true
		s.Memory, s.Small = w.Reach(g.Members, w.Segment)
		s.Syncful, s.SyncfulWhy = s.Together()
		phase.Settle()
		return &phase
	}
	split := w.Group.Split
	w.Carrier.Flight.NamePhases(w.Group.ID, split.groups(w.Group.Members))
	return &Hybrid{
		Split: split, carrier: w.Carrier, proved: recent.Map[phasesKey, bool]{Most: maxPlans},
		Inside: phases(split.inside, route.Syncful), Across: phases(split.across, route.Syncless),
	}
}

// perform carries out a checked call.
func (h *Hybrid) perform(ctx context.Context, j *Job, fingerprint *transport.Call) error {
	if err := h.prove(j); err != nil {
		return err
	}
	p := &h.carrier.phases
	p.Hybrid, p.fingerprint, p.done, p.question = h, *fingerprint, 0, j.Question
	p.whole = whole{Ask: j.Ask, dtype: j.DTypes[0], dst: j.Outs[0], src: j.Ins[0],
		srcLen: len(j.Ins[0]) / j.DTypes[0].Size()}
	err := phasingOf(j.Collective).perform(p, ctx)
	p.whole = whole{} // hold on to nobody's buffers
	p.part.Forget()
	return err
}

// whole is the call that the phases are of.
type whole struct {
	Ask
	dtype    tensor.DType
	dst, src []byte
	srcLen   int // elements
}

// phases is one call on its way through its phases. It lives in the carrier: a table's functions would let it escape.
type phases struct {
	*Hybrid
	fingerprint transport.Call
	whole       whole
	question    route.Question // of the whole
	part        Job            // the phase in progress
	done        uint64
}

// do carries out the next phase, the way of some members: a collective of src into dst.
func (p *phases) do(ctx context.Context, w *Caller, collective schedule.Collective, dst, src []byte, r Reduction,
	root int) error {
	size := p.whole.dtype.Size()
	a := Ask{Collective: collective, Reduction: r, Root: root}
	n := len(src) / size
	if contract := collective.Contract(); contract.Deals() {
		n = len(dst) / size * w.Size()
	}
	f := p.next(w)
	p.carrier.startPhase(p.done)
	p.part.One(&a, p.whole.dtype, dst, src, &Parts{}, nil, collective.Contract().Elements(n, w.Size()))
	if err := w.Perform(ctx, &p.part, &f); err != nil {
		return err
	}
	p.carrier.endRound(nil)
	return nil
}

// next begins the next phase, among the members of w, and returns its fingerprint.
func (p *phases) next(w *Caller) transport.Call {
	p.done++
	f := p.fingerprint
	f.Group = wire.PhaseGroup(w.Group.ID, f.Group)
	f.Digest = wire.Mix(f.Digest, p.fingerprint.Group) // not that of another group's phase with the same members
	f.Seq = wire.PhaseSeq(f.Seq, p.done)
	return f
}

// pass goes without the next phase, which is among other members of the group. Nothing is sent, but the transport is
// told: a member of w which believes that it is in this phase learns there who disagrees, also when this replica has
// left.
func (p *phases) pass(ctx context.Context, w *Caller) error {
	f := p.next(w)
	f.Method = methodNumber(w.Setting.Route(&p.question).Method)
	return p.carrier.Endpoint.Exchange(ctx, f, nil)
}

// first is the reduction of the phase that sees the inputs. The division is left to divide.
func (p *phases) first() Reduction { return p.whole.Reduction.undivided() }

// then is the reduction of a phase that sees partial results.
func (p *phases) then() Reduction { return p.whole.Reduction.partials() }

// none is the reduction of a phase that combines nothing.
var none Reduction

// divide ends a reduction that divides.
func (p *phases) divide(sums []byte) {
	if p.whole.Reduction.Divide {
		kernel.Divide(kernel.Type(p.whole.dtype))(sums, sums, p.Domains*p.Each)
	}
}

// memory is memory of the carrier for one call.
func (p *phases) memory(bytes int) []byte {
	p.carrier.between = memory.Grow(p.carrier.between, bytes)
	return p.carrier.between[:bytes]
}

// block is part i of several of the same length.
func block(parts []byte, i, bytes int) []byte { return parts[i*bytes : (i+1)*bytes] }

// allReduce: reduce-scatter inside, all-reduce of the shards across, all-gather inside.
func (p *phases) allReduce(ctx context.Context) error {
	k := &p.whole
	bytes := chunks.PerRank(k.srcLen, p.Each) * k.dtype.Size()
	all := k.dst
	if len(all) != bytes*p.Each { // the last shards are shorter
		all = p.memory(bytes * p.Each)
	}
	shard := block(all, p.Place, bytes)
	if err := p.do(ctx, p.Inside, schedule.ReduceScatter, shard, k.src, p.first(), 0); err != nil {
		return err
	}
	if err := p.do(ctx, p.Across, schedule.AllReduce, shard, shard, p.then(), 0); err != nil {
		return err
	}
	p.divide(shard)
	if err := p.do(ctx, p.Inside, schedule.AllGather, all, shard, none, 0); err != nil {
		return err
	}
	if len(all) != len(k.dst) {
		copy(k.dst, all)
	}
	return nil
}

// reduceScatter: inside, what each other domain is to have, one after the other; then across.
func (p *phases) reduceScatter(ctx context.Context) error {
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
		if err := p.do(ctx, p.Inside, schedule.ReduceScatter, shard, src, p.first(), 0); err != nil {
			return err
		}
	}
	if err := p.do(ctx, p.Across, schedule.ReduceScatter, k.dst, mine, p.then(), 0); err != nil {
		return err
	}
	p.divide(k.dst)
	return nil
}

// allGather: across; then inside, what has come from each domain, one after the other.
func (p *phases) allGather(ctx context.Context) error {
	k := &p.whole
	bytes := len(k.src)
	mine := p.memory(p.Domains * bytes)
	if err := p.do(ctx, p.Across, schedule.AllGather, mine, k.src, none, 0); err != nil {
		return err
	}
	for d := range p.Domains {
		if err := p.do(ctx, p.Inside, schedule.AllGather,
			block(k.dst, d, bytes*p.Each), block(mine, d, bytes), none, 0); err != nil {
			return err
		}
	}
	return nil
}

// allToAll: inside, what goes to each domain, one after the other, so that all that goes to a member of another domain
// is with the member at its place of this one; then across.
func (p *phases) allToAll(ctx context.Context) error {
	k := &p.whole
	bytes := len(k.src) / p.Domains
	mine := p.memory(len(k.src))
	for d := range p.Domains {
		if err := p.do(ctx, p.Inside, schedule.AllToAll,
			block(mine, d, bytes), block(k.src, d, bytes), none, 0); err != nil {
			return err
		}
	}
	return p.do(ctx, p.Across, schedule.AllToAll, k.dst, mine, none, 0)
}

// broadcast: across from the root to the members at its place, then inside each domain. The call as a whole, which has
// no messages, is told to the transport as well: who is in another call that does not go in phases may wait for a
// member that has left.
func (p *phases) broadcast(ctx context.Context) error {
	k := &p.whole
	p.fingerprint.Method = methodNumber(p.Across.Setting.Route(&p.question).Method)
	if err := p.carrier.Endpoint.Exchange(ctx, p.fingerprint, nil); err != nil {
		return err
	}
	domain, place := k.Root/p.Each, k.Root%p.Each
	if p.Place == place {
		if err := p.do(ctx, p.Across, schedule.Broadcast, k.dst, k.src, none, domain); err != nil {
			return err
		}
	} else if err := p.pass(ctx, p.Across); err != nil {
		return err
	}
	return p.do(ctx, p.Inside, schedule.Broadcast, k.dst, k.dst, none, place)
}
