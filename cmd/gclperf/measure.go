package main

import (
	"context"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/measure"
	"gogcl.dev/methods/schedule"
)

// The same as in bench/peers/mpibench.c, so that times can be compared.
const (
	warmUp       = 20 * time.Millisecond // of calls, before the timed ones
	shortestSpan = time.Millisecond      // of a batch
	batches      = 20                    // that -time is divided into
	minBatches   = 5
	maxBatches   = 200
	minSynced    = 7 // calls that -sync times
	allocParts   = 8 // of the timed calls, after each of which allocations are counted
)

// runner measures one collective of one size at one replica.
type runner struct {
	measure.Runner
	bench *bench
	kind  measure.Kind
}

// measure checks a call, times many, and checks a call. -c says how many are checked.
func (r *runner) measure(ctx context.Context, count int) error {
	out := r.bench.describe(r.Operand.Collective, r.kind, r.Operand.Place, r.Comm.Options(), count)
	before := r.times()
	if r.first() {
		runtime.GC() // now rather than in the timed part; it empties caches too, which the first calls fill again
	}
	wrongFirst, err := r.tries(ctx, &out, "before")
	if err != nil {
		return err
	}
	r.Operand.Clear()
	path, err := r.Path(ctx)
	if err != nil {
		return err
	}
	out.Path = path.String()
	seconds, own, err := r.timed(ctx)
	if err != nil {
		return err
	}
	dirty, err := r.dirty(ctx)
	if err != nil {
		return err
	}
	wrongLast, err := r.tries(ctx, &out, "after")
	if err != nil {
		return err
	}
	wrong := []int64{int64(wrongFirst + wrongLast)}
	if err := gcl.AllReduceInPlace(ctx, r.Clerk, wrong, gcl.Add); err != nil {
		return err
	}
	if err := gcl.AllReduceInPlace(ctx, r.Clerk, seconds, gcl.Max); err != nil {
		return err
	}
	if len(dirty) > 0 {
		if err := gcl.AllReduceInPlace(ctx, r.Clerk, dirty, gcl.Max); err != nil {
			return err
		}
		out.Dirty = measure.Micro(measure.Median(dirty))
	}
	after := r.times()
	sums := []float64{own.allocs, 0, own.cpu, own.unknown}
	if r.bench.settings.Beside {
		sums[1] = after.own - before.own
	}
	if err := gcl.AllReduceInPlace(ctx, r.Clerk, sums, gcl.Add); err != nil {
		return err
	}
	if r.Clerk.Rank() != 0 {
		return nil
	}
	slices.Sort(seconds)
	for q, p := range map[float64]*float64{.5: &out.P50, .9: &out.P90, .99: &out.P99} {
		*p = measure.Micro(measure.Quantile(seconds, q))
	}
	speed := float64(out.Bytes) / out.P50 / 1e3
	out.AlgBW, out.BusBW = short(speed), short(speed*r.Operand.Collective.BusFactor(out.N))
	if r.bench.settings.tries > 0 {
		out.Wrong = int(wrong[0])
	}
	out.Allocs, out.Load = short(sums[0]), short(loadOf(before, after, sums[1]))
	if sums[3] == 0 {
		out.CPU = short(1e6 * sums[2])
	}
	if s := r.bench.settings; s.simulates() {
		bound, err := s.Network.Bound(schedule.Collective(r.Operand.Collective), s.Root, ranks(s.N))
		if err != nil {
			return err
		}
		out.OfBound = short(bound.Reached(int64(out.Bytes), time.Duration(1e3*out.P50)))
	}
	return r.bench.note(out)
}

// ranks are 0 to n-1.
func ranks(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// first reports whether this is the first replica of its process: the one that does what is to be done once a process.
func (r *runner) first() bool { return r.bench.settings.Processes || r.Clerk.Rank() == 0 }

// times is what the machine's processors did so far, at the first replica of this process.
func (r *runner) times() (t cpuTimes) {
	if r.first() {
		t = readTimes(os.DirFS("/"))
	}
	return t
}

// short is v with six digits.
func short(v float64) float64 {
	out, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // of what it has just formatted
	return out
}

// tries carries out as many checked calls as the settings want, and counts their wrong elements at this replica.
func (r *runner) tries(ctx context.Context, out *measurement, when string) (wrong int, err error) {
	for range r.bench.settings.tries {
		w, err := r.checked(ctx, out, when)
		if err != nil {
			return 0, err
		}
		wrong += w
	}
	return wrong, nil
}

// checked carries out a call and counts the wrong elements of its result at this replica.
func (r *runner) checked(ctx context.Context, out *measurement, when string) (int, error) {
	r.Prepare()
	if err := r.Operand.Call(ctx, r.Comm); err != nil {
		return 0, err
	}
	wrong, where := r.Check()
	if wrong > 0 {
		r.bench.log.add("%s of %d bytes, method %s, %s, %s the timed calls: %d wrong elements at replica %d, the "+
			"first is %d",
			out.Collective, out.Bytes, out.Method, out.Place, when, wrong, r.Clerk.Rank(), where)
	}
	return wrong, nil
}

// timed returns how many seconds a call took at this replica in each batch, or each call with -sync. All replicas have
// as many batches. own is what a call took of this process.
func (r *runner) timed(ctx context.Context) (seconds []float64, own taken, err error) {
	each, err := r.estimate(ctx)
	if err != nil {
		return nil, own, err
	}
	calls, spans := plan(r.bench.settings, each)
	seconds = make([]float64, 0, spans)
	parts := min(spans, allocParts)
	all := make([]taken, 0, parts)
	before, err := r.reading(ctx)
	if err != nil {
		return nil, own, err
	}
	for p := range parts {
		begin := len(seconds)
		for end := spans * (p + 1) / parts; len(seconds) < end; {
			each, err := r.Span(ctx, calls)
			if err != nil {
				return nil, own, err
			}
			seconds = append(seconds, each)
		}
		after, err := r.reading(ctx)
		if err != nil {
			return nil, own, err
		}
		all = append(all, before.until(after, calls*(len(seconds)-begin)))
		before = after
	}
	return seconds, medianTaken(all), nil
}

// dirty returns how many seconds calls took at this replica, before each of which it has rewritten its input: none
// without -dirty. The rewriting is not in the time. The call has a barrier before it, since replicas write for
// different times. All replicas have as many calls.
func (r *runner) dirty(ctx context.Context) (seconds []float64, err error) {
	if !r.bench.settings.dirty {
		return nil, nil
	}
	whole := []float64{0}
	for turn := range 2 { // the first one makes plans
		start := time.Now()
		r.Rewrite(turn)
		if _, err := r.Span(ctx, 1); err != nil {
			return nil, err
		}
		whole[0] = max(time.Since(start).Seconds(), 1e-9)
	}
	if err := gcl.AllReduceInPlace(ctx, r.Clerk, whole, gcl.Max); err != nil {
		return nil, err
	}
	synced := *r.bench.settings
	synced.sync = true
	_, calls := plan(&synced, whole[0])
	for turn := range calls {
		r.Rewrite(turn)
		each, err := r.Span(ctx, 1)
		if err != nil {
			return nil, err
		}
		seconds = append(seconds, each)
	}
	return seconds, nil
}

// estimate warms up and returns about how many seconds a call takes, the same at all replicas.
func (r *runner) estimate(ctx context.Context) (float64, error) {
	if _, err := r.AgreedSpan(ctx, 1); err != nil { // makes plans and touches memory
		return 0, err
	}
	each, err := r.AgreedSpan(ctx, 1)
	if err != nil {
		return 0, err
	}
	if r.first() {
		runtime.GC() // now rather than in the timed part
	}
	s := r.bench.settings
	switch {
	case s.warm > 2:
		return r.AgreedSpan(ctx, s.warm-2)
	case s.warm >= 0:
		return each, nil
	}
	most := maxWarmUp
	if s.iters > 0 {
		most = min(most, s.iters)
	}
	return r.AgreedSpan(ctx, int(min(max(warmUp.Seconds()/each, 1), float64(most))))
}

// plan says how many spans of how many calls to time when a call takes so many seconds.
func plan(s *settings, each float64) (calls, spans int) {
	if s.sync {
		if s.iters > 0 {
			return 1, s.iters
		}
		return 1, int(min(max(s.time.Seconds()/each, minSynced), maxSynced))
	}
	shortest := shortestSpan.Seconds()
	if s.iters > 0 {
		calls = int(min(max(shortest/each, math.Ceil(float64(s.iters)/batches)), float64(s.iters)))
		return calls, (s.iters + calls - 1) / calls
	}
	calls = int(min(max(max(s.time.Seconds()/batches, shortest)/each, 1), 20_000))
	return calls, int(min(max(s.time.Seconds()/(float64(calls)*each), minBatches), maxBatches))
}
