package carry

import (
	"context"
	"errors"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/carry/onepass"
	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Perform carries out a job that has been checked. Route and fingerprint go by their addresses: their bytes have just
// been written one by one, and to copy them in words stalls.
func (w *Caller) Perform(ctx context.Context, j *job.Job, fingerprint *transport.Call) error {
	if j.Reduction.InOrder && !w.ordered {
		w = w.inOrder()
	}
	var r route.Route
	w.decide(&r, &j.Question)
	if r.Phases {
		return w.unconfirmed(&j.Ask, w.phases.Fingerprint(), w.Hybrid.perform(ctx, j, fingerprint))
	}
	switch r.Path {
	case route.Local:
		w.chosen(j, &r, 0)
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
		w.setUpOnePass(j, &r, fingerprint)
		return w.onePass.Small(ctx, j)
	case route.Memory:
		w.setUpOnePass(j, &r, fingerprint)
		ins := j.Ins
		if w.Stages && j.Reads(w.Group.Rank) {
			ins = w.staging.Inputs(ins)
		}
		if err := w.onePass.Run(ctx, j, ins); err != transport.ErrNotShared {
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
	w.EndRound(transport.ErrNotShared)
	return w.byMessages(ctx, j, fingerprint)
}

// setUpOnePass makes ready for a job that goes without a schedule, and tells so.
func (w *Caller) setUpOnePass(j *job.Job, r *route.Route, fingerprint *transport.Call) {
	w.onePass.SetUp(&onepass.Setting{Members: w.Group.Members, Rank: w.Group.Rank, Segment: w.Segment, Cache: w.Cache,
		Wide: w.Reproducible}, j, r.Method, fingerprint)
	w.chosen(j, r, 1)
	if w.Listener != nil {
		w.Listener.StartRound(0)
	}
}

// byMessages carries out a job that was to go over peer memory.
func (w *Caller) byMessages(ctx context.Context, j *job.Job, fingerprint *transport.Call) error {
	defer func(above int) { // the job may be a Batch's
		j.Question.Above, j.Question.Unpriced = above, false
	}(j.Question.Above)
	for {
		r := w.Setting.ByMessages(&j.Question)
		err := w.byRounds(ctx, j, &r, fingerprint)
		if err != errSkipped || !passOver(&j.Question, &r) {
			return err
		}
	}
}

// skip carries out a job whose method, by the options or by a rule, does not do it. Nothing has been sent.
func (w *Caller) skip(ctx context.Context, j *job.Job, r *route.Route, fingerprint *transport.Call) error {
	above := j.Question.Above
	if !passOver(&j.Question, r) {
		if fingerprint.Collective != wire.Barrier { // of which this is a phase
			if err := w.skipped(&j.Ask, false); err != nil {
				return err
			}
		}
		return w.instead.Perform(ctx, j, fingerprint)
	}
	err := w.Perform(ctx, j, fingerprint)
	j.Question.Above, j.Question.Unpriced = above, false // the job may be a Batch's
	return err
}

// passOver has a question pass over what chose a route, if that is a rule or a price.
func passOver(q *route.Question, r *route.Route) bool {
	switch r.Because {
	case route.AsRuled:
		q.Above = int(r.Line)
	case route.AsPriced:
		q.Unpriced = true
	default:
		return false
	}
	return true
}

// byRounds carries out a job by the schedule of its route, or the one that it comes with. Members whose schedules of a
// program's own differ find out by the Digest of the call.
func (w *Caller) byRounds(ctx context.Context, j *job.Job, r *route.Route, fingerprint *transport.Call) error {
	f := *fingerprint // the caller's stays as it is
	f.Method = uint8(r.Method)
	e, err := w.executor(j, r)
	if err != nil {
		return err
	}
	if r.Method.Own() || j.Given != nil {
		f.Method, f.Digest = wire.OwnMethod, wire.Mix(f.Digest, e.Summary())
	}
	w.chosen(j, r, e.Length())
	if j.Given == nil {
		return w.unconfirmed(&j.Ask, &f, w.scheduled(ctx, j, e, f))
	}
	if w.Size() == 1 { // an aborted or closed communicator, or a context that is done, must show
		err = w.Endpoint.Exchange(ctx, f, nil)
	}
	switch {
	case err != nil:
		return err
	case j.Given.Custom != nil:
		err = w.custom(ctx, j, e, f)
	case w.Size() == 1:
		w.keepOwn(j, 0)
	default:
		err = w.scheduled(ctx, j, e, f)
	}
	if err == nil { // few schedules have a rank wait for all others
		w.noteUnconfirmed(&f)
	}
	return err
}

// keepOwn gives a replica its own data of an operand: the result in a group of one, and that of an operator that
// combines nothing.
func (w *Caller) keepOwn(j *job.Job, t int) {
	src, dst := j.Ins[t], j.Outs[t]
	if j.Collective.Contract().Output == schedule.Own {
		lo := min(w.Group.Rank*len(dst), len(src))
		if len(j.Parts) > 0 {
			lo, _ = j.Parts[t].Own(w.Group.Rank)
			lo *= j.DTypes[t].Size()
		}
		src = src[lo:min(lo+len(dst), len(src))]
	}
	clear(dst[copy(dst, src):])
}

// executor finds the executor of a job by a schedule, or makes it.
func (w *Caller) executor(j *job.Job, r *route.Route) (rounds.Executor, error) {
	g, onMemory := w.Group, r.Path == route.Rounds
	if j.Given != nil {
		if onMemory {
			return j.Given.OnMemory(&w.Runner, g.Rank)
		}
		return j.Given.ByMessages(&w.Runner, g.Rank, r.Barriers)
	}
	// On peer memory all ranks must lay out their scratch in the same way, whether in place or not.
	inPlace := onMemory || len(j.Ins) == 1 && memory.Address(j.Ins[0]) == memory.Address(j.Outs[0]) &&
		(!j.Blocks() || memory.Overlap(j.Ins[0], j.Outs[0])) // of which one may be empty
	spec := w.Spec(&j.Ask, r.Method, j.Question.Bytes, inPlace)
	if r.Because == route.AsPriced {
		spec.Pieces = int(r.Pieces)
	}
	key := rounds.Key{
		Method: spec.Method, Collective: spec.Collective, Root: spec.Root, Pieces: spec.Pieces,
		InPlace: spec.InPlace, RankOrder: spec.RankOrder, Barriers: r.Barriers, OnMemory: onMemory,
	}
	e, known := g.plans.Get(key)
	if known {
		return e, nil
	}
	from, err := w.programs(key, spec, r.Because)
	if err != nil {
		return nil, err
	}
	if onMemory {
		set := rounds.SetOf(w.Endpoint, g.ID, g.Digest, g.Members, key, from)
		e, err = rounds.NewMemoryPlan(&w.Runner, set, g.Rank)
	} else {
		e, err = rounds.NewPlan(&w.Runner, from, g.Rank, g.Members, key.Barriers)
	}
	switch {
	case (r.Because == route.AsRuled || r.Because == route.AsPriced) && errors.Is(err, errors.ErrUnsupported):
		return nil, w.skips(key)
	case err != nil:
		return nil, err
	}
	*g.plans.Place(key) = e
	return e, nil
}

// Spec is the schedule by which a method carries out a call on bytes in the larger buffer.
func (w *Caller) Spec(a *job.Ask, m methods.Method, bytes int, inPlace bool) methods.Spec {
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

// unconfirmed notes a call that has succeeded and need not have done so elsewhere: one with a root, or by counts, of
// which a member that has no part waits for nobody. It returns the call's error.
func (w *Caller) unconfirmed(a *job.Ask, fingerprint *transport.Call, err error) error {
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
