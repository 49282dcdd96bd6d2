package gcl

import (
	"context"
	"errors"

	"gogcl.dev/gcl/internal/lane"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// perform carries out a job that has been checked. Route and fingerprint go by their addresses: their bytes have just
// been written one by one, and to copy them in words stalls.
func (c *Comm) perform(ctx context.Context, j *job, fingerprint *transport.Call) error {
	var r route.Route
	c.setting.Decide(&r, &j.question)
	if r.Phases {
		return c.passing(&j.ask, fingerprint, c.hybrid.perform(ctx, j, fingerprint))
	}
	switch r.Path {
	case route.Local:
		c.chosen(&r, 0)
		// Nothing to send, but an aborted or closed communicator, or a context that is done, must show.
		if err := c.lane.endpoint.Exchange(ctx, *fingerprint, nil); err != nil {
			return err
		}
		for t := range j.ins {
			c.keepOwn(j, t)
		}
		return nil
	case route.Small, route.Memory:
		err := c.lane.shared.run(ctx, c, j, &r, fingerprint)
		if !errors.Is(err, transport.ErrNotShared) {
			return err
		}
		r = c.setting.ByMessages(&j.question)
	}
	err := c.byRounds(ctx, j, &r, fingerprint)
	if r.Path == route.Rounds && errors.Is(err, transport.ErrNotShared) {
		r = c.setting.ByMessages(&j.question)
		err = c.byRounds(ctx, j, &r, fingerprint)
	}
	return err
}

// byRounds carries out a job by the schedule of its route.
func (c *Comm) byRounds(ctx context.Context, j *job, r *route.Route, fingerprint *transport.Call) error {
	f := *fingerprint // the caller's stays as it is
	f.Method = uint8(r.Method)
	e, err := c.executor(j, r)
	if err != nil {
		return err
	}
	c.chosen(r, e.length())
	return c.passing(&j.ask, &f, c.lane.many.scheduled(ctx, c, j, e, f))
}

// keepOwn gives a replica its own data of an operand: the result in a group of one, and that of an operator that
// combines nothing.
func (c *Comm) keepOwn(j *job, t int) {
	src, dst := j.ins[t], j.outs[t]
	if j.collective.Contract().Output == schedule.Own {
		lo := min(c.Rank()*len(dst), len(src))
		if j.parts != nil {
			lo = j.parts[c.Rank()] * j.dtypes[t].Size()
		}
		src = src[lo:min(lo+len(dst), len(src))]
	}
	clear(dst[copy(dst, src):])
}

// executor carries out a schedule.
type executor interface {
	// execute carries out runs of which only the caller's part is filled in, all of one call.
	execute(ctx context.Context, runs []run) error

	// cut is into how many chunks the data is cut.
	cut() int

	// apart reports whether output and input must be different memory.
	apart() bool

	// length is the number of rounds.
	length() int
}

// executor finds the executor of a job by a schedule, or makes it.
func (c *Comm) executor(j *job, r *route.Route) (executor, error) {
	overMemory := r.Path == route.Rounds
	// On peer memory all ranks must lay out their scratch in the same way, whether in place or not.
	inPlace := overMemory || len(j.ins) == 1 && lane.Address(j.ins[0]) == lane.Address(j.outs[0])
	spec := c.spec(&j.ask, r.Method, j.question.Bytes, inPlace)
	key := planKey{
		method: spec.Method, collective: spec.Collective, root: spec.Root,
		pieces: spec.Pieces, inPlace: spec.InPlace, rankOrder: spec.RankOrder, barriers: r.Barriers,
	}
	g := c.group
	if overMemory {
		s := g.stepped[key]
		if s == nil {
			var err error
			if s, err = newStepped(c.lane, c.planSet(key, spec), g.rank); err != nil {
				return nil, err
			}
			g.stepped[key] = s
		}
		return s, nil
	}
	p := g.plans[key]
	if p == nil {
		var err error
		if p, err = newPlan(spec, g.rank, g.members); err != nil {
			return nil, err
		}
		p.lane, p.barriers = c.lane, key.barriers
		g.plans[key] = p
	}
	return p, nil
}

// spec is the schedule by which a method carries out a call on bytes in the larger buffer.
func (c *Comm) spec(a *ask, m methods.Method, bytes int, inPlace bool) methods.Spec {
	contract, rings := a.collective.Contract(), c.group.rings
	return methods.Spec{
		Method: m, Collective: a.collective, Size: c.Size(), Root: a.root,
		Ring: rings.First, Second: rings.Second,
		InPlace:   inPlace && contract.Output == schedule.Blocks,
		RankOrder: c.options.Reproducible && contract.Combines,
	}.Pipelined(int64(bytes), hostLatencyBytes)
}

// stage returns two pieces of the lane's staging memory.
func (l *connection) stage(a, b int) (first, second []byte) {
	aligned := lane.RoundUp(a, pack.Align)
	l.staging = lane.Grow(l.staging, aligned+b)
	return l.staging[:a:a], l.staging[aligned : aligned+b]
}
