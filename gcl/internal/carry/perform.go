package carry

import (
	"context"
	"errors"

	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Perform carries out a job that has been checked. Route and fingerprint go by their addresses: their bytes have just
// been written one by one, and to copy them in words stalls.
func (w *Caller) Perform(ctx context.Context, j *Job, fingerprint *transport.Call) error {
	var r route.Route
	w.decide(&r, &j.Question)
	if r.Phases {
		return w.unconfirmed(&j.Ask, &w.phases.fingerprint, w.Hybrid.perform(ctx, j, fingerprint))
	}
	switch r.Path {
	case route.Local:
		w.chosen(&r, 0)
		// Nothing to send, but an aborted or closed communicator, or a context that is done, must show.
		if err := w.Endpoint.Exchange(ctx, *fingerprint, nil); err != nil {
			return err
		}
		for t := range j.Ins {
			w.keepOwn(j, t)
		}
		return nil
	case route.Engine:
		return w.byEngine(ctx, j, &r, fingerprint)
	case route.Small:
		return w.onePass.run(ctx, w, j, &r, fingerprint)
	case route.Memory:
		if err := w.onePass.run(ctx, w, j, &r, fingerprint); err != transport.ErrNotShared {
			return err
		}
	default:
		if r.Because == route.AsCounts && w.Setting.Method != methods.Auto && w.Setting.Method != methods.Direct {
			if err := w.skipped(&j.Ask, true); err != nil {
				return err
			}
		}
		switch err := w.byRounds(ctx, j, &r, fingerprint); err {
		case transport.ErrNotShared:
		case errSkipped:
			return w.skip(ctx, j, &r, fingerprint)
		default:
			return err
		}
	}
	// All members come here, since all have got the error, and nothing has been sent under the call's number.
	w.endRound(transport.ErrNotShared)
	return w.byMessages(ctx, j, fingerprint)
}

// byMessages carries out a job that was to go over peer memory.
func (w *Caller) byMessages(ctx context.Context, j *Job, fingerprint *transport.Call) error {
	defer func(above int) { j.Question.Above = above }(j.Question.Above) // the job may be a Batch's
	for {
		r := w.Setting.ByMessages(&j.Question)
		err := w.byRounds(ctx, j, &r, fingerprint)
		if err != errSkipped || r.Because != route.AsRuled {
			return err
		}
		j.Question.Above = r.Line
	}
}

// skip carries out a job whose method, by the options or by a rule, does not do it. Nothing has been sent.
func (w *Caller) skip(ctx context.Context, j *Job, r *route.Route, fingerprint *transport.Call) error {
	if r.Because != route.AsRuled {
		if fingerprint.Collective != wire.Barrier { // of which this is a phase
			if err := w.skipped(&j.Ask, false); err != nil {
				return err
			}
		}
		return w.instead.Perform(ctx, j, fingerprint)
	}
	above := j.Question.Above
	j.Question.Above = r.Line
	err := w.Perform(ctx, j, fingerprint)
	j.Question.Above = above // the job may be a Batch's
	return err
}

// byRounds carries out a job by the schedule of its route, or the one that it comes with. Members whose schedules of a
// program's own differ find out by the Digest of the call.
func (w *Caller) byRounds(ctx context.Context, j *Job, r *route.Route, fingerprint *transport.Call) error {
	f := *fingerprint // the caller's stays as it is
	f.Method = uint8(r.Method)
	e, err := w.executor(j, r)
	if err != nil {
		return err
	}
	if r.Method.Own() || j.given != nil {
		f.Method, f.Digest = wire.OwnMethod, wire.Mix(f.Digest, e.summary())
	}
	w.chosen(r, e.length())
	if j.given == nil {
		return w.unconfirmed(&j.Ask, &f, w.packer.scheduled(ctx, w, j, e, f))
	}
	if w.Size() == 1 { // an aborted or closed communicator, or a context that is done, must show
		err = w.Endpoint.Exchange(ctx, f, nil)
	}
	switch {
	case err != nil:
		return err
	case j.given.Custom != nil:
		err = w.packer.custom(ctx, w, j, e, f)
	case w.Size() == 1:
		w.keepOwn(j, 0)
	default:
		err = w.packer.scheduled(ctx, w, j, e, f)
	}
	if err == nil { // few schedules have a rank wait for all others
		w.noteUnconfirmed(&f)
	}
	return err
}

// keepOwn gives a replica its own data of an operand: the result in a group of one, and that of an operator that
// combines nothing.
func (w *Caller) keepOwn(j *Job, t int) {
	src, dst := j.Ins[t], j.Outs[t]
	if j.Collective.Contract().Output == schedule.Own {
		lo := min(w.Group.Rank*len(dst), len(src))
		if len(j.parts) > 0 {
			lo, _ = j.parts[t].Own(w.Group.Rank)
			lo *= j.DTypes[t].Size()
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

	// summary stands for the schedule of a program's own method in the fingerprint of a call.
	summary() uint64
}

// executor finds the executor of a job by a schedule, or makes it.
func (w *Caller) executor(j *Job, r *route.Route) (executor, error) {
	if j.given != nil {
		return j.given.executor(w, r)
	}
	overMemory := r.Path == route.Rounds
	// On peer memory all ranks must lay out their scratch in the same way, whether in place or not.
	inPlace := overMemory || len(j.Ins) == 1 && memory.Address(j.Ins[0]) == memory.Address(j.Outs[0]) &&
		(!j.blocks() || memory.Overlap(j.Ins[0], j.Outs[0])) // of which one may be empty
	spec := w.Spec(&j.Ask, r.Method, j.Question.Bytes, inPlace)
	key := planKey{
		method: spec.Method, collective: spec.Collective, root: spec.Root,
		pieces: spec.Pieces, inPlace: spec.InPlace, rankOrder: spec.RankOrder, barriers: r.Barriers,
	}
	g, ruled := w.Group, r.Because == route.AsRuled
	if overMemory {
		s, known := g.onMemory.Get(key)
		if !known {
			from, err := w.programs(key, spec, ruled)
			if err != nil {
				return nil, err
			}
			s, err = newMemoryPlan(w.Carrier, w.planSet(key, from), g.Rank)
			switch {
			case ruled && errors.Is(err, errors.ErrUnsupported):
				return nil, w.skips(key)
			case err != nil:
				return nil, err
			}
			*g.onMemory.Place(key) = s
		}
		return s, nil
	}
	p, known := g.plans.Get(key)
	if !known {
		from, err := w.programs(key, spec, ruled)
		if err != nil {
			return nil, err
		}
		p, err = newPlan(from, g.Rank, g.Members)
		switch {
		case ruled && errors.Is(err, errors.ErrUnsupported):
			return nil, w.skips(key)
		case err != nil:
			return nil, err
		}
		p.carrier, p.barriers = w.Carrier, key.barriers
		*g.plans.Place(key) = p
	}
	return p, nil
}

// Spec is the schedule by which a method carries out a call on bytes in the larger buffer.
func (w *Caller) Spec(a *Ask, m methods.Method, bytes int, inPlace bool) methods.Spec {
	contract, rings := a.Collective.Contract(), w.Group.Rings
	s := methods.Spec{
		Method: m, Collective: a.Collective, Size: w.Size(), Root: a.Root,
		Ring: rings.First, Second: rings.Second,
		InPlace:   inPlace && contract.Output == schedule.Blocks && !m.Own(), // members must have one schedule
		RankOrder: w.Reproducible && contract.Combines,
	}
	if m.Own() {
		return s
	}
	return s.Pipelined(int64(bytes), w.LatencyBytes)
}

// stage returns two pieces of the carrier's staging memory.
func (l *Carrier) stage(a, b int) (first, second []byte) {
	aligned := memory.RoundUp(a, pack.Align)
	l.staging = memory.Grow(l.staging, aligned+b)
	return l.staging[:a:a], l.staging[aligned : aligned+b]
}

// unconfirmed notes a call that has succeeded and need not have done so elsewhere: one with a root, or by counts, of
// which a member that has no part waits for nobody. It returns the call's error.
func (w *Caller) unconfirmed(a *Ask, fingerprint *transport.Call, err error) error {
	if err == nil && (a.Collective.Contract().Rooted() || fingerprint.DType&wire.ByCounts != 0) {
		w.noteUnconfirmed(fingerprint)
	}
	return err
}

// noteUnconfirmed notes such a call. A phase is none of its own: the call as a whole is noted.
func (w *Caller) noteUnconfirmed(fingerprint *transport.Call) {
	if _, phase := wire.PhaseOf(fingerprint.Seq); phase == 0 {
		w.Flight.NoteUnconfirmed(fingerprint)
		w.Group.Unconfirmed.Store(fingerprint.Seq)
	}
}
