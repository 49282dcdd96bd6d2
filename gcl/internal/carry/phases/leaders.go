package phases

import (
	"context"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/methods/schedule"
)

// The collectives by leaders: one member of each domain crosses, with all of its domain's data. It is the one at place
// 0, and of a broadcast the one at the root's.

// lead carries out a phase across, if this replica is the leader of its domain. The others go on to the next.
func (p *Call) lead(ctx context.Context, collective schedule.Collective, dst, src []byte, r job.Reduction) error {
	if p.Place > 0 {
		p.done++
		return nil
	}
	if err := p.do(ctx, p.across, collective, dst, src, r, 0); err != nil {
		return err
	}
	if collective.Contract().Combines {
		p.divide(dst)
	}
	return nil
}

// leadAllReduce: reduce inside, all-reduce across, broadcast inside.
func (p *Call) leadAllReduce(ctx context.Context) error {
	k := &p.whole
	var sums []byte
	if p.Place == 0 {
		sums = k.dst
	}
	if err := p.do(ctx, p.inside, schedule.Reduce, sums, k.src, p.first(), 0); err != nil {
		return err
	}
	if err := p.lead(ctx, schedule.AllReduce, sums, sums, p.then()); err != nil {
		return err
	}
	return p.do(ctx, p.inside, schedule.Broadcast, k.dst, k.dst, none, 0)
}

// leadReduceScatter: reduce inside, reduce-scatter across of what each domain is to have, scatter inside.
func (p *Call) leadReduceScatter(ctx context.Context) error {
	k := &p.whole
	perDomain := len(k.dst) * p.Each
	n := p.Domains * perDomain
	var sums, all, part []byte
	if p.Place == 0 {
		between := p.memory(n + perDomain + p.staged()*p.Domains*len(k.dst))
		all, part, sums = between[:n], between[n:n+perDomain], between[n+perDomain:]
		if p.Ranks == nil {
			sums = all
		}
		clear(sums[len(k.src):])
		sums = sums[:len(k.src)]
	}
	if err := p.do(ctx, p.inside, schedule.Reduce, sums, k.src, p.first(), 0); err != nil {
		return err
	}
	if p.Place == 0 && p.Ranks != nil {
		for d := range p.Domains {
			p.blocksOf(sums, d, block(all, d, perDomain))
		}
	}
	if err := p.lead(ctx, schedule.ReduceScatter, part, all, p.then()); err != nil {
		return err
	}
	return p.do(ctx, p.inside, schedule.Scatter, k.dst, part, none, 0)
}

// leadAllGather: gather inside, all-gather across, broadcast inside.
func (p *Call) leadAllGather(ctx context.Context) error {
	k := &p.whole
	perDomain := len(k.src) * p.Each
	var all, part []byte
	if p.Place == 0 {
		if all = k.dst; p.Ranks != nil {
			all = p.memory(len(k.dst))
		}
		part = block(all, p.Domain, perDomain)
	}
	if err := p.do(ctx, p.inside, schedule.Gather, part, k.src, none, 0); err != nil {
		return err
	}
	if err := p.lead(ctx, schedule.AllGather, all, part, none); err != nil {
		return err
	}
	if p.Place == 0 {
		for d := range p.Domains {
			p.settle(k.dst, d, block(all, d, perDomain))
		}
	}
	return p.do(ctx, p.inside, schedule.Broadcast, k.dst, k.dst, none, 0)
}

// leadBroadcast: across from the root to the members at its place, then inside each domain.
func (p *Call) leadBroadcast(ctx context.Context) error {
	k := &p.whole
	if err := p.tell(ctx); err != nil {
		return err
	}
	domain, place := p.At(k.Root)
	if p.Place == place {
		if err := p.do(ctx, p.across, schedule.Broadcast, k.dst, k.src, none, domain); err != nil {
			return err
		}
	} else if err := p.pass(ctx, p.across); err != nil {
		return err
	}
	return p.do(ctx, p.inside, schedule.Broadcast, k.dst, k.dst, none, place)
}
