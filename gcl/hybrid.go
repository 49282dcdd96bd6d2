package gcl

import (
	"context"
	"fmt"
	"strings"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/lane"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

// split is how the members of a group lie over link domains, if each domain holds equally many. A domain is a range of
// replica ids and ranks ascend by replica id, so the members of a domain are neighbours in rank order: the rank is
// domain*each + place.
type split struct {
	domains, each int    // domains with members; members in each
	domain, place int    // this replica's
	inside        *group // the members in this replica's domain
	across        *group // the members at its place of all domains
}

// hybrid carries out collectives of a Comm in phases: inside the link domain on the one Comm, across domains on the
// other. There is none where one of them would be alone: see Comm.settle.
type hybrid struct {
	*split
	lane           *connection
	inside, across *Comm
}

// splitOf divides a group by link domains. Where domains do not hold equally many members there is no split, and uneven
// says why.
func (l *connection) splitOf(g *group, ring topology.RingName) (s *split, uneven string, err error) {
	first := []int{0} // rank of the first member in each domain that has any
	for rank := 1; rank < len(g.members); rank++ {
		if l.topology.Domain(g.members[rank]) != l.topology.Domain(g.members[rank-1]) {
			first = append(first, rank)
		}
	}
	s = &split{domains: len(first), each: len(g.members) / len(first)}
	for d, lo := range first {
		if lo != d*s.each || len(g.members) != s.domains*s.each {
			return nil, l.unevenDomains(g.members, first), nil
		}
	}
	s.domain, s.place = g.rank/s.each, g.rank%s.each
	var across []int
	for d := range s.domains {
		across = append(across, g.members[d*s.each+s.place])
	}
	if s.inside, err = l.phaseGroup(g, ring, g.members[s.domain*s.each:(s.domain+1)*s.each], s.place); err != nil {
		return nil, "", err
	}
	if s.across, err = l.phaseGroup(g, ring, across, s.domain); err != nil {
		return nil, "", err
	}
	return s, "", nil
}

// phaseGroup makes a group for phases of the collectives of another. It has no calls of its own to count.
func (l *connection) phaseGroup(of *group, ring topology.RingName, members []int, rank int) (*group, error) {
	rings, err := l.topology.Rings(ring, members)
	if err != nil {
		return nil, err
	}
	g := newGroup(members, rank, rings)
	g.id = wire.GroupID(members)
	return g, nil
}

// unevenDomains says which members each domain holds, given the rank of the first in each.
func (l *connection) unevenDomains(members, first []int) string {
	var parts []string
	for d, lo := range first {
		hi := len(members)
		if d+1 < len(first) {
			hi = first[d+1]
		}
		parts = append(parts, fmt.Sprintf("%s in link domain %d", replicaList(members[lo:hi]), l.topology.Domain(members[lo])))
	}
	return "every link domain must hold equally many members of the group, which has " + strings.Join(parts, ", ")
}

// replicaList is "replica 3" or "replicas 0, 1, 2".
func replicaList(replicas []int) string {
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(replicas), " ", ", "), "[]")
	if len(replicas) == 1 {
		return "replica " + text
	}
	return "replicas " + text
}

// newHybrid makes the Comms of the phases.
func (c *Comm) newHybrid() *hybrid {
	phases := func(g *group, i Implementation) *Comm {
		o := c.options
		o.Implementation, o.Reproducible, o.Trace = i, false, nil
		phase := &Comm{lane: c.lane, group: g, options: o, strided: c.strided}
		phase.resolve()
		return phase
	}
	return &hybrid{split: c.group.split, lane: c.lane, inside: phases(c.group.split.inside, Syncful), across: phases(c.group.split.across, Syncless)}
}

// perform carries out a checked call.
func (h *hybrid) perform(ctx context.Context, j *job, fingerprint *transport.Call) error {
	p := &h.lane.phases
	p.hybrid, p.fingerprint, p.done, p.question = h, *fingerprint, 0, j.question
	p.whole = call{ask: j.ask, dtype: j.dtypes[0], dst: j.outs[0], src: j.ins[0], srcLen: len(j.ins[0]) / j.dtypes[0].Size()}
	err := phasingOf(j.collective).perform(p, ctx)
	p.whole = call{} // hold on to nobody's buffers
	p.part.forget()
	return err
}

// phasing is how a collective goes in phases, and what they cost.
type phasing struct {
	perform func(p *phases, ctx context.Context) error
	priced  func(p pricer, h *hybrid) []pricedPhase
}

// phasingOf is the table of phases. A collective without a row does not go in phases. The table is no variable, since
// the phases are calls that look into it.
func phasingOf(c schedule.Collective) phasing {
	rows := [...]phasing{
		schedule.AllReduce:     {(*phases).allReduce, pricer.allReducePhases},
		schedule.ReduceScatter: {(*phases).reduceScatter, pricer.reduceScatterPhases},
		schedule.AllGather:     {(*phases).allGather, pricer.allGatherPhases},
		schedule.AllToAll:      {(*phases).allToAll, pricer.allToAllPhases},
		schedule.Broadcast:     {(*phases).broadcast, pricer.broadcastPhases},
		schedule.Barrier:       {(*phases).allReduce, pricer.allReducePhases}, // of nothing
	}
	if int(c) < len(rows) {
		return rows[c]
	}
	return phasing{}
}

// phasedCollectives is setting.phased.
func phasedCollectives() (bits uint32) {
	for _, c := range schedule.Collectives() {
		if phasingOf(c).perform != nil {
			bits |= 1 << c
		}
	}
	if phasingOf(schedule.Barrier).perform != nil {
		bits |= 1 << schedule.Barrier
	}
	return bits
}

// phases is one call on its way through its phases. It lives in the lane: a table's functions would let it escape.
type phases struct {
	*hybrid
	fingerprint transport.Call
	whole       call
	question    route.Question // of the whole
	part        job            // the phase in progress
	done        uint64
}

// do carries out the next phase: a collective of src into dst among the members of c.
func (p *phases) do(ctx context.Context, c *Comm, collective schedule.Collective, dst, src []byte, op Operator, root int) error {
	size := p.whole.dtype.Size()
	k := call{
		ask: ask{collective: collective, operator: op, root: root}, dtype: p.whole.dtype,
		dst: dst, src: src, dstLen: len(dst) / size, srcLen: len(src) / size,
	}
	f := p.next(c)
	p.lane.startPhase(p.done)
	p.part.one(&k, c.larger(&k))
	if err := c.perform(ctx, &p.part, &f); err != nil {
		return err
	}
	p.lane.endRound()
	return nil
}

// next begins the next phase, among the members of c, and returns its fingerprint.
func (p *phases) next(c *Comm) transport.Call {
	p.done++
	f := p.fingerprint
	f.Group = c.group.id
	f.Digest = wire.Mix(f.Digest, p.fingerprint.Group) // not that of another group's phase with the same members
	f.Seq |= p.done << wire.PhaseShift
	return f
}

// pass goes without the next phase, which is among other members of the group. Nothing is sent, but the transport is
// told: a member of c which believes that it is in this phase learns there who disagrees, also when this replica has
// left.
func (p *phases) pass(ctx context.Context, c *Comm) error {
	return p.tell(ctx, c, p.next(c))
}

// tell gives the transport a fingerprint and sends nothing.
func (p *phases) tell(ctx context.Context, c *Comm, f transport.Call) error {
	f.Method = uint8(c.setting.Route(&p.question).Method)
	return p.lane.endpoint.Exchange(ctx, f, nil)
}

// first is the operator of the phase that sees the inputs. The division is left to divide.
func (p *phases) first() Operator { return p.whole.operator.undivided() }

// then is the operator of a phase that sees partial results.
func (p *phases) then() Operator { return operators[p.whole.operator].partials }

// divide ends an operator that divides.
func (p *phases) divide(sums []byte) {
	if operators[p.whole.operator].divide {
		kernel.Divide(kernel.Type(p.whole.dtype))(sums, sums, p.domains*p.each)
	}
}

// room is memory of the lane, good for one call.
func (p *phases) room(bytes int) []byte {
	p.lane.between = lane.Grow(p.lane.between, bytes)
	return p.lane.between[:bytes]
}

// block is part i of several of the same length.
func block(parts []byte, i, bytes int) []byte { return parts[i*bytes : (i+1)*bytes] }

// allReduce: reduce-scatter inside, all-reduce of the shards across, all-gather inside.
func (p *phases) allReduce(ctx context.Context) error {
	k := &p.whole
	bytes := chunks.PerRank(k.srcLen, p.each) * k.dtype.Size()
	all := k.dst
	if len(all) != bytes*p.each { // the last shards are shorter
		all = p.room(bytes * p.each)
	}
	shard := block(all, p.place, bytes)
	if err := p.do(ctx, p.inside, schedule.ReduceScatter, shard, k.src, p.first(), 0); err != nil {
		return err
	}
	if err := p.do(ctx, p.across, schedule.AllReduce, shard, shard, p.then(), 0); err != nil {
		return err
	}
	p.divide(shard)
	if err := p.do(ctx, p.inside, schedule.AllGather, all, shard, Add, 0); err != nil {
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
	perDomain := bytes * p.each
	room := p.room(p.domains*bytes + perDomain)
	mine, padded := room[:p.domains*bytes], room[p.domains*bytes:]
	for d := range p.domains {
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
func (p *phases) allGather(ctx context.Context) error {
	k := &p.whole
	bytes := len(k.src)
	mine := p.room(p.domains * bytes)
	if err := p.do(ctx, p.across, schedule.AllGather, mine, k.src, Add, 0); err != nil {
		return err
	}
	for d := range p.domains {
		if err := p.do(ctx, p.inside, schedule.AllGather, block(k.dst, d, bytes*p.each), block(mine, d, bytes), Add, 0); err != nil {
			return err
		}
	}
	return nil
}

// allToAll: inside, what goes to each domain, one after the other, so that all that goes to a member of another domain
// is with the member at its place of this one; then across.
func (p *phases) allToAll(ctx context.Context) error {
	k := &p.whole
	bytes := len(k.src) / p.domains
	mine := p.room(len(k.src))
	for d := range p.domains {
		if err := p.do(ctx, p.inside, schedule.AllToAll, block(mine, d, bytes), block(k.src, d, bytes), Add, 0); err != nil {
			return err
		}
	}
	return p.do(ctx, p.across, schedule.AllToAll, k.dst, mine, Add, 0)
}

// broadcast: across from the root to the members at its place, then inside each domain. The call as a whole, which has
// no messages, is told to the transport as well: who is in another call that does not go in phases may wait for a
// member that has left.
func (p *phases) broadcast(ctx context.Context) error {
	k := &p.whole
	if err := p.tell(ctx, p.across, p.fingerprint); err != nil {
		return err
	}
	domain, place := k.root/p.each, k.root%p.each
	if p.place == place {
		if err := p.do(ctx, p.across, schedule.Broadcast, k.dst, k.src, Add, domain); err != nil {
			return err
		}
	} else if err := p.pass(ctx, p.across); err != nil {
		return err
	}
	return p.do(ctx, p.inside, schedule.Broadcast, k.dst, k.dst, Add, place)
}
