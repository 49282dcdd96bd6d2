package phases

import (
	"context"

	"gogcl.dev/chunks"
	"gogcl.dev/methods/schedule"
)

// The collectives by all members: each member of a domain crosses to those at its place, with a part of the data.

// shards is memory in which the members' shards of dst lie side by side: dst, unless the last ones are shorter. bytes
// is the length of one.
func (p *Call) shards(dst []byte) (all []byte, bytes int) {
	size := p.whole.dtype.Size()
	bytes = chunks.PerRank(len(dst)/size, p.Each) * size
	if len(dst) == bytes*p.Each {
		return dst, bytes
	}
	return p.memory(bytes * p.Each), bytes
}

// allReduce: reduce-scatter inside, all-reduce of the shards across, all-gather inside.
func (p *Call) allReduce(ctx context.Context) error {
	k := &p.whole
	all, bytes := p.shards(k.dst)
	shard := block(all, p.Place, bytes)
	if err := p.do(ctx, p.inside, schedule.ReduceScatter, shard, k.src, p.first(), 0); err != nil {
		return err
	}
	if err := p.do(ctx, p.across, schedule.AllReduce, shard, shard, p.then(), 0); err != nil {
		return err
	}
	p.divide(shard)
	return p.collect(ctx, all, shard)
}

// collect gathers the shards of all, the last phase of some collectives.
func (p *Call) collect(ctx context.Context, all, shard []byte) error {
	err := p.do(ctx, p.inside, schedule.AllGather, all, shard, none, 0)
	if dst := p.whole.dst; err == nil && len(all) != len(dst) {
		copy(dst, all)
	}
	return err
}

// reduceScatter: inside, what each other domain is to have, one after the other; then across.
func (p *Call) reduceScatter(ctx context.Context) error {
	k := &p.whole
	bytes := len(k.dst)
	between := p.memory((p.Domains + p.Each) * bytes)
	mine, room := between[:p.Domains*bytes], between[p.Domains*bytes:]
	for d := range p.Domains {
		shard := block(mine, d, bytes)
		if d > 0 && p.Rank(d, 0)*bytes >= len(k.src) { // of nothing, all calls are still compared once
			clear(shard)
			continue
		}
		src := p.blocksOf(k.src, d, room)
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
	between := p.memory((p.Domains + p.staged()) * bytes)
	mine, room := between[:p.Domains*bytes], between[p.Domains*bytes:]
	if err := p.do(ctx, p.across, schedule.AllGather, mine, k.src, none, 0); err != nil {
		return err
	}
	for d := range p.Domains {
		all := p.roomFor(k.dst, d, room)
		if err := p.do(ctx, p.inside, schedule.AllGather, all, block(mine, d, bytes), none, 0); err != nil {
			return err
		}
		p.settle(k.dst, d, all)
	}
	return nil
}

// allToAll: inside, what goes to each domain, one after the other, so that all that goes to a member of another domain
// is with the member at its place of this one; then across.
func (p *Call) allToAll(ctx context.Context) error {
	k := &p.whole
	n := len(k.src)
	bytes := n / p.Domains
	mine, dst := p.memory(n), k.dst
	if p.Ranks != nil {
		between := p.memory(2 * n)
		mine, dst = between[:n], between[n:]
	}
	for d := range p.Domains {
		src := p.blocksOf(k.src, d, dst[:bytes])
		if err := p.do(ctx, p.inside, schedule.AllToAll, block(mine, d, bytes), src, none, 0); err != nil {
			return err
		}
	}
	if err := p.do(ctx, p.across, schedule.AllToAll, dst, mine, none, 0); err != nil {
		return err
	}
	for d := range p.Domains {
		p.settle(k.dst, d, block(dst, d, bytes))
	}
	return nil
}

// broadcast: scatter in the root's domain, broadcast of each shard across, all-gather inside.
func (p *Call) broadcast(ctx context.Context) error {
	k := &p.whole
	if err := p.tell(ctx); err != nil {
		return err
	}
	domain, place := p.At(k.Root)
	all, bytes := p.shards(k.dst)
	shard := block(all, p.Place, bytes)
	var src []byte
	if p.Domain == domain && p.Place == place {
		if src = k.src; len(src) != len(all) {
			src = all
			clear(src[copy(src, k.src):])
		}
	}
	var err error
	if p.Domain == domain {
		err = p.do(ctx, p.inside, schedule.Scatter, shard, src, none, place)
	} else {
		err = p.pass(ctx, p.inside)
	}
	if err != nil {
		return err
	}
	if err := p.do(ctx, p.across, schedule.Broadcast, shard, shard, none, domain); err != nil {
		return err
	}
	return p.collect(ctx, all, shard)
}
