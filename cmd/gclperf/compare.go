package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

const (
	// A method that takes this many times as long as the best at a point, in its own best pass, is not measured there
	// in later passes. In a single pass it may have had bad luck: short calls have two.
	droppedFirst, dropped = 2, 1.5

	// A call that takes this many times as long as the best is not measured any longer, from longCall on: shorter calls
	// are told from others by many only. From longData on, where bytes are what takes time, a method that was as far
	// behind at the size before is not measured at all.
	hopeless = 3
	longCall = time.Millisecond
	longData = 256 << 10

	compareSpans = 5  // batches that -time is divided into
	firstCalls   = 50 // the most from which the time of a call is estimated
)

// point is a collective of one size over one number of replicas, and how long it took by each way.
type point struct {
	N          int
	Collective string
	Size       int // bytes, as asked for
	Ways       []timed
}

// timed is how long a method with an implementation took, in microseconds, one for each pass in which it was measured.
type timed struct {
	Way   string // as rules have it: "direct", "direct/Syncful"; or "auto", and the same "again"
	Takes string // of auto: the way that it takes
	Times []float64
}

// The ways that are no method's. Both are auto: A by A is how far apart they are.
const (
	autoWay = "auto"
	again   = "again"
)

// candidate is a way to measure.
type candidate struct {
	way  string
	comm *gcl.Comm
}

// candidates are all ways that the settings ask for.
func (s *settings) candidates(c *gcl.Comm) ([]candidate, error) {
	var out []candidate
	auto, err := c.With(gcl.Options{})
	if err != nil {
		return nil, err
	}
	if o := auto.Options(); o.Method != methods.Auto || o.Implementation != gcl.AutoImplementation {
		return nil, errOverridden
	}
	sweeps := s.compares.file == ""
	if sweeps {
		out = append(out, candidate{autoWay, auto})
	}
	for _, m := range s.methods {
		for _, i := range s.implementations {
			comm, err := c.With(gcl.Options{Method: m, Implementation: i})
			if err != nil {
				return nil, err
			}
			if o := comm.Options(); o.Method != m || o.Implementation != i {
				return nil, errOverridden
			}
			way := m.String()
			if i != gcl.AutoImplementation {
				way += "/" + i.String()
			}
			out = append(out, candidate{way, comm})
		}
	}
	if sweeps { // as far from the first as can be: what comes and goes on the machine is part of A by A
		out = append(out, candidate{again, auto})
	}
	return out, nil
}

var errOverridden = errors.New("GCL_OPTIONS sets method or collectiveImplementation, which -tune and -sweep compare: " +
	"leave them out")

// shape tells what a candidate does in a collective: those of one shape make the same calls.
type shape struct {
	whole, cut     [32]byte // digests of its schedule, not cut and cut into pieces
	implementation gcl.Implementation
	onePass        bool // it has a schedule, and may go without
}

// shapeOf is the shape of a candidate in a collective. Its schedule is made, as a call would. does is false where the
// method does not do the collective.
func (s *settings) shapeOf(c *gcl.Comm, coll collective) (out shape, does bool, err error) {
	o := c.Options()
	out.implementation, out.onePass = o.Implementation, o.Implementation == gcl.Syncful && o.Method == methods.Direct
	spec := methods.Spec{Method: o.Method, Collective: schedule.Collective(coll), Size: c.Size(), Ring: order(c.Size()),
		Second: order(c.Size())}
	if coll.rooted() {
		spec.Root = s.root
	}
	for _, digest := range []*[32]byte{&out.whole, &out.cut} {
		made, err := methods.Build(spec)
		if errors.Is(err, errors.ErrUnsupported) {
			return out, false, nil
		}
		if err != nil {
			return out, false, err
		}
		*digest = made.Digest()
		spec.Pieces = 4
	}
	return out, true, nil
}

// among are the candidates that do a collective, and of those that make the same calls one. Of auto, as holds the one
// that stands for each way.
func (s *settings) among(all []candidate, coll collective) (ways []candidate, as map[string]string, err error) {
	known, as := map[shape]string{}, map[string]string{}
	for _, w := range all {
		if w.way == autoWay || w.way == again {
			ways = append(ways, w)
			continue
		}
		shape, does, err := s.shapeOf(w.comm, coll)
		if err != nil {
			return nil, nil, err
		}
		first, there := known[shape]
		switch {
		case !does:
		case there:
			as[w.way] = first
		default:
			known[shape], as[w.way] = w.way, w.way
			ways = append(ways, w)
		}
	}
	return ways, as, nil
}

// compareAll is the body of a replica with -tune and -sweep. Calls of candidates are measured; by clerk the replicas
// tell each other about it.
func compareAll[T tensor.Element](ctx context.Context, c, clerk *gcl.Comm, b *bench) error {
	s, start := b.settings, time.Now()
	all, err := s.candidates(c)
	if err != nil {
		return err
	}
	largest := 0
	for _, coll := range s.collectives {
		largest = max(largest, coll.larger(coll.count(s.sizes[len(s.sizes)-1], s.dtype.Size(), s.n), s.n))
	}
	first, freeFirst, err := newBuffer[T](c, largest)
	if err != nil {
		return err
	}
	defer freeFirst()
	second, freeSecond, err := newBuffer[T](c, largest)
	if err != nil {
		return err
	}
	defer freeSecond()
	if clerk.Rank() == 0 {
		defer b.status.end()
	}
	var points []contest
	for _, coll := range s.collectives {
		ways, as, err := s.among(all, coll)
		if err != nil {
			return err
		}
		for _, size := range s.sizes {
			points = append(points, contest{coll: coll, size: size, ways: ways, as: as,
				times: make([][]float64, len(ways))})
		}
	}
	for pass := range s.compares.passes {
		for i := range points {
			p := &points[i]
			over := []int8{0} // as replica 0 sees it
			if clerk.Rank() == 0 && b.since(start) > s.compares.limit {
				over[0] = 1
			}
			if err := gcl.BroadcastInPlace(ctx, clerk, over, 0); err != nil {
				return err
			}
			if over[0] != 0 && pass == 0 {
				return errLimit
			} else if over[0] != 0 {
				return b.compareEnd(c, clerk, points)
			}
			if clerk.Rank() == 0 {
				b.status.begin(fmt.Sprintf("# %d replicas, pass %d of %d, %v of %s", s.n, pass+1, s.compares.passes,
					p.coll, formatSize(p.size)))
			}
			var smaller *contest
			if i > 0 && points[i-1].coll == p.coll {
				smaller = &points[i-1]
			}
			if pass == 0 && i == 0 {
				// The first calls of a job make its connections: what they take is thrown away.
				cold := *p
				cold.times = make([][]float64, len(p.ways))
				if err := measurePass(ctx, clerk, b, &cold, nil, pass, first, second); err != nil {
					return err
				}
			}
			if err := measurePass(ctx, clerk, b, p, smaller, pass, first, second); err != nil {
				return err
			}
			if clerk.Rank() == 0 {
				b.status.end()
			}
		}
	}
	return b.compareEnd(c, clerk, points)
}

var errLimit = errors.New("the time of -limit is over, and not all was measured once: want a longer one, a shorter " +
	"-time, or less to measure")

// contest is a point while it is measured: all replicas have the same.
type contest struct {
	coll  collective
	size  int
	ways  []candidate
	as    map[string]string // by way: the one among ways that makes the same calls
	times [][]float64       // by way and pass, in seconds
}

// best is the least median of a way so far, 0 before the first.
func (p *contest) best() (least float64) {
	for _, times := range p.times {
		if m := median(times); len(times) > 0 && (least == 0 || m < least) {
			least = m
		}
	}
	return least
}

// isHopeless reports whether a way was so far behind that it is not worth to measure it at the next size.
func (p *contest) isHopeless(k int) bool {
	return len(p.times[k]) == 0 || median(p.times[k]) > hopeless*p.best()
}

// measurePass measures the ways of a point that are still in, once. smaller is the point of the size before, or nil.
//
// Each way has a few batches, and the ways take turns batch by batch, so that what comes and goes on the machine meets
// them all. Every other turn goes from the last way to the first.
func measurePass[T tensor.Element](ctx context.Context, clerk *gcl.Comm, b *bench, p, smaller *contest, pass int,
	first, second []T) error {
	var in []entrant[T]
	least := 0.0 // of the estimates
	for k, w := range p.ways {
		isAuto := w.way == autoWay || w.way == again
		if !isAuto && !p.isIn(k, pass, smaller) {
			continue
		}
		count := p.coll.count(p.size, b.settings.dtype.Size(), b.settings.n)
		o, err := newOperand(p.coll, outOfPlace, count, w.comm, first, second)
		if err != nil {
			return err
		}
		o.op, o.root = b.settings.op, b.settings.root
		pattern := b.moved
		if p.coll.reduces() {
			pattern = b.reduced
		}
		e := entrant[T]{runner: runner[T]{bench: b, comm: w.comm, clerk: clerk, operand: o, pattern: pattern}, k: k,
			isAuto: isAuto}
		if pass == 0 {
			e.each, err = e.right(ctx, p)
		} else {
			e.each, err = e.agreedSpan(ctx, 1)
		}
		if err == nil && !e.isHopeless(least) {
			err = e.estimate(ctx, pass > 0)
		}
		if err != nil {
			return err
		}
		if least == 0 || e.each < least {
			least = e.each
		}
		in = append(in, e)
	}
	var all []float64 // by entrant, as many as each has batches
	for i := range in {
		in[i].from = len(all)
		in[i].plan(least)
		all = append(all, make([]float64, in[i].spans)...)
	}
	for turn := range compareSpans {
		for i := range in {
			if (pass+turn)%2 == 1 {
				i = len(in) - 1 - i
			}
			if e := &in[i]; turn < e.spans {
				seconds, err := e.span(ctx, e.calls)
				if err != nil {
					return err
				}
				all[e.from+turn] = seconds
			}
		}
	}
	if len(all) > 0 {
		if err := gcl.AllReduceInPlace(ctx, clerk, all, gcl.Max); err != nil {
			return err
		}
	}
	for _, e := range in {
		seconds := e.each
		if e.spans > 0 {
			seconds = median(all[e.from : e.from+e.spans])
		}
		p.times[e.k] = append(p.times[e.k], seconds)
	}
	return nil
}

// isIn reports whether a way is measured in a pass. smaller is the point of the size before, or nil.
func (p *contest) isIn(k, pass int, smaller *contest) bool {
	if pass == 0 {
		return p.size < longData || smaller == nil || !smaller.isHopeless(k)
	}
	enough := dropped
	switch {
	case pass == 1 && p.best() < longCall.Seconds():
		enough = math.Inf(1)
	case pass == 1:
		enough = droppedFirst
	}
	return len(p.times[k]) > 0 && slices.Min(p.times[k]) <= enough*p.best()
}

// entrant is a way of a point in a pass.
type entrant[T tensor.Element] struct {
	runner[T]
	k            int // among the ways
	isAuto       bool
	each         float64 // about how many seconds a call takes
	spans, calls int     // batches, and how many calls each has
	from         int     // of the first batch among all of the pass
}

// isHopeless reports whether a call takes so much longer than the least that it is not worth to measure it. auto is
// measured whatever it takes. Before the first estimate the least is 0.
func (e *entrant[T]) isHopeless(least float64) bool {
	return !e.isAuto && least > 0 && e.each > longCall.Seconds() && e.each > hopeless*least
}

// estimate finds out about how long a call takes, by few calls. If it is not warm, a first one has touched the memory.
func (e *entrant[T]) estimate(ctx context.Context, warm bool) (err error) {
	if !warm {
		if e.each, err = e.agreedSpan(ctx, 1); err != nil {
			return err
		}
	}
	span := e.bench.settings.time.Seconds() / compareSpans
	if few := int(min(span/e.each, firstCalls)); few > 1 {
		e.each, err = e.agreedSpan(ctx, few)
	}
	return err
}

// plan says how many batches of how many calls there are to be: none of what is hopeless.
func (e *entrant[T]) plan(least float64) {
	all := e.bench.settings.time.Seconds()
	switch {
	case e.isHopeless(least):
		e.spans = 0
	case e.each > 10*all:
		e.spans = 1
	case e.each > all:
		e.spans = 3
	default:
		e.spans = compareSpans
	}
	e.calls = int(min(max(all/compareSpans/e.each, 1), 20_000))
}

// right carries out a call, and returns how many seconds it took, as agreedSpan. Any wrong element is an error.
func (r *runner[T]) right(ctx context.Context, p *contest) (seconds float64, err error) {
	r.operand.prepare(r.pattern, r.clerk)
	if seconds, err = r.agreedSpan(ctx, 1); err != nil {
		return 0, err
	}
	if r.bench.tamper != nil {
		r.bench.tamper(r.clerk.Rank(), tensor.Bytes(r.operand.result))
	}
	wrong, _ := r.operand.check(r.pattern, r.clerk)
	sum := []int64{int64(wrong)}
	if err := gcl.AllReduceInPlace(ctx, r.clerk, sum, gcl.Add); err != nil {
		return 0, err
	}
	if sum[0] != 0 {
		return 0, fmt.Errorf("%v of %d bytes over %d replicas by %v has %d wrong elements: nothing is written", p.coll,
			p.size, r.bench.settings.n, r.comm.Options().Method, sum[0])
	}
	return seconds, nil
}

// median is that of numbers in any order, 0 of none.
func median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(numbers))
	return quantile(sorted, .5)
}

// compareEnd keeps what was measured, at replica 0.
func (b *bench) compareEnd(c, clerk *gcl.Comm, points []contest) error {
	if clerk.Rank() != 0 {
		return nil
	}
	for _, p := range points {
		out := point{N: b.settings.n, Collective: schedule.Collective(p.coll).String(), Size: p.size}
		for k, w := range p.ways {
			t := timed{Way: w.way}
			for _, seconds := range p.times[k] {
				t.Times = append(t.Times, micro(seconds))
			}
			if t.Times == nil {
				continue // hopeless
			}
			if w.way == autoWay {
				takes, err := b.takes(w.comm, p)
				if err != nil {
					return err
				}
				t.Takes = takes
			}
			out.Ways = append(out.Ways, t)
		}
		b.compared = append(b.compared, out)
	}
	return nil
}

// takes is the way that auto takes at a point.
func (b *bench) takes(c *gcl.Comm, p contest) (string, error) {
	s := b.settings
	count := p.coll.count(p.size, s.dtype.Size(), s.n)
	e, err := c.Explain(schedule.Collective(p.coll), int64(p.coll.larger(count, s.n)*s.dtype.Size()), s.dtype)
	if err != nil {
		return "", err
	}
	way := e.Method.String()
	if !s.processes {
		way += "/" + e.Implementation.String()
	}
	return cmp.Or(p.as[way], way), nil
}
