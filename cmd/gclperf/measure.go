package main

import (
	"context"
	"math"
	"runtime"
	"slices"
	"strconv"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// The same as in bench/peers/mpibench.c, so that times can be compared.
const (
	warmUp       = 20 * time.Millisecond // of calls, before the timed ones
	maxWarmUp    = 2000                  // calls
	shortestSpan = time.Millisecond      // of a batch
	batches      = 20                    // that -time is divided into
	minBatches   = 5
	maxBatches   = 200
	minSynced    = 7 // calls that -sync times
	maxSynced    = 200_000
	allocParts   = 8 // of the timed calls, after each of which allocations are counted
)

// runner measures one collective of one size at one replica.
type runner[T tensor.Element] struct {
	bench   *bench
	comm    *gcl.Comm // whose options are measured
	clerk   *gcl.Comm // for what replicas have to tell each other about the measurement
	operand operand[T]
	pattern *pattern
}

// measure checks a call, times many, and checks a call.
func (r *runner[T]) measure(ctx context.Context, count int) error {
	out := r.bench.describe(r.operand.collective, r.operand.place, r.comm.Options(), count)
	if r.clerk.Rank() == 0 {
		runtime.GC() // now rather than in the timed part; it empties caches too, which the first calls fill again
	}
	wrongFirst, err := r.checked(ctx, &out, "before")
	if err != nil {
		return err
	}
	seconds, allocs, err := r.timed(ctx)
	if err != nil {
		return err
	}
	wrongLast, err := r.checked(ctx, &out, "after")
	if err != nil {
		return err
	}
	wrong := []int64{int64(wrongFirst + wrongLast)}
	if err := gcl.AllReduceInPlace(ctx, r.clerk, wrong, gcl.Add); err != nil {
		return err
	}
	if err := gcl.AllReduceInPlace(ctx, r.clerk, seconds, gcl.Max); err != nil {
		return err
	}
	if r.clerk.Rank() != 0 {
		return nil
	}
	slices.Sort(seconds)
	out.P50, out.P90, out.P99 = micro(quantile(seconds, .5)), micro(quantile(seconds, .9)),
		micro(quantile(seconds, .99))
	speed := float64(out.Bytes) / out.P50 / 1e3
	out.AlgBW, out.BusBW = short(speed), short(speed*r.operand.collective.busFactor(out.N))
	out.Wrong, out.Allocs = int(wrong[0]), short(allocs)
	return r.bench.note(out)
}

// micro is a time in microseconds, to a tenth of a nanosecond and never 0.
func micro(seconds float64) float64 { return max(math.Round(seconds*1e10), 1) / 1e4 }

// short is v with six digits.
func short(v float64) float64 {
	out, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // of what it has just formatted
	return out
}

// checked carries out a call and counts the wrong elements of its result at this replica.
func (r *runner[T]) checked(ctx context.Context, out *measurement, when string) (int, error) {
	r.operand.prepare(r.pattern, r.clerk)
	if err := r.operand.call(ctx, r.comm); err != nil {
		return 0, err
	}
	if r.bench.tamper != nil {
		r.bench.tamper(r.clerk.Rank(), tensor.Bytes(r.operand.result))
	}
	wrong, where := r.operand.check(r.pattern, r.clerk)
	if wrong > 0 {
		r.bench.log.add("%s of %d bytes, method %s, %s, %s the timed calls: %d wrong elements at replica %d, the "+
			"first is %d",
			out.Collective, out.Bytes, out.Method, out.Place, when, wrong, r.clerk.Rank(), where)
	}
	return wrong, nil
}

// timed returns how many seconds a call took at this replica in each batch, or each call with -sync, and how many
// allocations a call made, at all replicas together. All replicas have as many batches.
//
// The allocations are the median over parts of the time: what is made once and kept, such as room for one more message
// in flight, is none of a call's.
func (r *runner[T]) timed(ctx context.Context) (seconds []float64, allocs float64, err error) {
	if r.operand.place == inPlace && r.operand.collective.reduces() {
		clear(r.operand.input)
	}
	each, err := r.estimate(ctx)
	if err != nil {
		return nil, 0, err
	}
	calls, spans := plan(r.bench.settings, each)
	seconds = make([]float64, 0, spans)
	parts := min(spans, allocParts)
	counts := make([]float64, 0, parts)
	before, err := r.mallocs(ctx)
	if err != nil {
		return nil, 0, err
	}
	for p := range parts {
		begin := len(seconds)
		for end := spans * (p + 1) / parts; len(seconds) < end; {
			each, err := r.span(ctx, calls)
			if err != nil {
				return nil, 0, err
			}
			seconds = append(seconds, each)
		}
		after, err := r.mallocs(ctx)
		if err != nil {
			return nil, 0, err
		}
		counts = append(counts, float64(after-before)/float64(calls*(len(seconds)-begin)))
		before = after
	}
	slices.Sort(counts)
	return seconds, quantile(counts, .5), nil
}

// span times some calls that all replicas begin together: the seconds for one.
func (r *runner[T]) span(ctx context.Context, calls int) (float64, error) {
	if err := r.clerk.Barrier(ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	for range calls {
		if err := r.operand.call(ctx, r.comm); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds() / float64(calls), nil
}

// mallocs is the number of allocations of the process so far, at replica 0. None is made while it counts.
func (r *runner[T]) mallocs(ctx context.Context) (uint64, error) {
	if err := r.clerk.Barrier(ctx); err != nil {
		return 0, err
	}
	var m runtime.MemStats
	if r.clerk.Rank() == 0 {
		runtime.ReadMemStats(&m)
	}
	return m.Mallocs, r.clerk.Barrier(ctx)
}

// estimate warms up and returns about how many seconds a call takes, the same at all replicas.
func (r *runner[T]) estimate(ctx context.Context) (float64, error) {
	if _, err := r.agreedSpan(ctx, 1); err != nil { // makes plans and touches memory
		return 0, err
	}
	each, err := r.agreedSpan(ctx, 1)
	if err != nil {
		return 0, err
	}
	if r.clerk.Rank() == 0 {
		runtime.GC() // now rather than in the timed part
	}
	most := maxWarmUp
	if iters := r.bench.settings.iters; iters > 0 {
		most = min(most, iters)
	}
	return r.agreedSpan(ctx, int(min(max(warmUp.Seconds()/each, 1), float64(most))))
}

// agreedSpan is span by the slowest replica's clock, and more than 0.
func (r *runner[T]) agreedSpan(ctx context.Context, calls int) (float64, error) {
	each, err := r.span(ctx, calls)
	if err != nil {
		return 0, err
	}
	slowest := []float64{max(each, 1e-9)}
	err = gcl.AllReduceInPlace(ctx, r.clerk, slowest, gcl.Max)
	return slowest[0], err
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
