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
	"gogcl.dev/internal/measure"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
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
	Takes string `json:",omitempty"` // of auto: the way that it takes
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
	auto, err := c.With(gcl.Options{Implementation: s.auto})
	if err != nil {
		return nil, err
	}
	if o := auto.Options(); o.Method != methods.Auto || o.Implementation != s.auto {
		return nil, errOverridden
	}
	sweeps := s.sweeps()
	if sweeps {
		out = append(out, candidate{autoWay, auto})
	}
	for _, m := range s.Methods {
		for _, i := range s.Implementations {
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

var errOverridden = errors.New("GCL_OPTIONS sets method or collectiveImplementation, which gcltune compares: " +
	"leave them out")

// shape tells what a candidate does in a collective: those of one shape make the same calls.
type shape struct {
	whole, cut     [32]byte // digests of its schedule, not cut and cut into pieces
	implementation gcl.Implementation
	onePass        bool // it has a schedule, and may go without
}

// shapeOf is the shape of a method with an implementation in a collective over n ranks. Its schedule is made, as a call
// would. does is false where the method does not do the collective.
func shapeOf(s *measure.Settings, m methods.Method, i gcl.Implementation, coll measure.Collective, n int) (out shape,
	does bool, err error) {
	out.implementation, out.onePass = i, i == gcl.Syncful && m == methods.Direct
	spec := s.Spec(m, coll, n)
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
func (s *settings) among(all []candidate, coll measure.Collective) (ways []candidate, as map[string]string, err error) {
	known, as := map[shape]string{}, map[string]string{}
	for _, w := range all {
		if w.way == autoWay || w.way == again {
			ways = append(ways, w)
			continue
		}
		o := w.comm.Options()
		shape, does, err := shapeOf(s.Settings, o.Method, o.Implementation, coll, w.comm.Size())
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

// comparison measures in one process.
type comparison struct {
	*settings
	status *measure.Status
	values *measure.Values
	since  func(time.Time) time.Duration // time.Since, but for tests
	points []point                       // by replica 0
}

func (p *program) newComparison(s *settings) *comparison {
	return &comparison{settings: s, status: measure.NewStatus(p.Stderr), values: s.NewValues(p.tamper), since: p.since}
}

// replica measures at one replica. Calls of candidates are measured; by a clerk the replicas tell each other about it.
func (b *comparison) replica(ctx context.Context, c *gcl.Comm) error {
	start := time.Now()
	clerk, err := b.Clerk(ctx, c)
	if err != nil {
		return err
	}
	all, err := b.candidates(c)
	if err != nil {
		return err
	}
	buffers, err := b.NewBuffers(c)
	if err != nil {
		return err
	}
	defer buffers.Free()
	if clerk.Rank() == 0 {
		defer b.status.End()
	}
	var points []contest
	for _, coll := range b.Collectives {
		ways, as, err := b.among(all, coll)
		if err != nil {
			return err
		}
		for _, size := range b.Sizes {
			points = append(points, contest{coll: coll, size: size, ways: ways, as: as,
				times: make([][]float64, len(ways))})
		}
	}
	for pass := range b.passes {
		for i := range points {
			p := &points[i]
			over := []int8{0} // as replica 0 sees it
			if clerk.Rank() == 0 && b.since(start) > b.limit {
				over[0] = 1
			}
			if err := gcl.BroadcastInPlace(ctx, clerk, over, 0); err != nil {
				return err
			}
			if over[0] != 0 && pass == 0 {
				return errLimit
			} else if over[0] != 0 {
				return b.keep(clerk, points)
			}
			if clerk.Rank() == 0 {
				b.status.Begin(fmt.Sprintf("# %d replicas, pass %d of %d, %v of %s", b.N, pass+1, b.passes, p.coll,
					measure.FormatSize(p.size)))
			}
			var smaller *contest
			if i > 0 && points[i-1].coll == p.coll {
				smaller = &points[i-1]
			}
			if pass == 0 && i == 0 {
				// The first calls of a job make its connections: what they take is thrown away.
				cold := *p
				cold.times = make([][]float64, len(p.ways))
				if err := b.pass(ctx, clerk, &cold, nil, pass, buffers); err != nil {
					return err
				}
			}
			if err := b.pass(ctx, clerk, p, smaller, pass, buffers); err != nil {
				return err
			}
			if clerk.Rank() == 0 {
				b.status.End()
			}
		}
	}
	return b.keep(clerk, points)
}

var errLimit = errors.New("the time of -limit is over, and not all was measured once: want a longer one, a shorter " +
	"-time, or less to measure")

// contest is a point while it is measured: all replicas have the same.
type contest struct {
	coll  measure.Collective
	size  int
	ways  []candidate
	as    map[string]string // by way: the one among ways that makes the same calls
	times [][]float64       // by way and pass, in seconds
}

// best is the least median of a way so far, 0 before the first.
func (p *contest) best() (least float64) {
	for _, times := range p.times {
		if m := measure.Median(times); len(times) > 0 && (least == 0 || m < least) {
			least = m
		}
	}
	return least
}

// isHopeless reports whether a way was so far behind that it is not worth to measure it at the next size.
func (p *contest) isHopeless(k int) bool {
	return len(p.times[k]) == 0 || measure.Median(p.times[k]) > hopeless*p.best()
}

// pass measures the ways of a point that are still in, once. smaller is the point of the size before, or nil.
//
// Each way has a few batches, and the ways take turns batch by batch, so that what comes and goes on the machine meets
// them all. Every other turn goes from the last way to the first.
func (b *comparison) pass(ctx context.Context, clerk *gcl.Comm, p, smaller *contest, pass int,
	buffers *measure.Buffers) error {
	var in []entrant
	least := 0.0 // of the estimates
	for k, w := range p.ways {
		isAuto := w.way == autoWay || w.way == again
		if !isAuto && !p.isIn(k, pass, smaller) {
			continue
		}
		count := p.coll.Count(p.size, b.DType.Size(), b.N)
		o, err := b.Operand(p.coll, measure.OutOfPlace, count, w.comm, buffers)
		if err != nil {
			return err
		}
		e := entrant{Runner: measure.Runner{Values: b.values, Comm: w.comm, Clerk: clerk, Operand: o}, k: k,
			isAuto: isAuto, time: b.time}
		if pass == 0 {
			e.each, err = e.right(ctx, p)
		} else {
			e.each, err = e.AgreedSpan(ctx, 1)
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
				seconds, err := e.Span(ctx, e.calls)
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
			seconds = measure.Median(all[e.from : e.from+e.spans])
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
type entrant struct {
	measure.Runner
	k            int // among the ways
	isAuto       bool
	time         time.Duration // of its batches together
	each         float64       // about how many seconds a call takes
	spans, calls int           // batches, and how many calls each has
	from         int           // of the first batch among all of the pass
}

// isHopeless reports whether a call takes so much longer than the least that it is not worth to measure it. auto is
// measured whatever it takes. Before the first estimate the least is 0.
func (e *entrant) isHopeless(least float64) bool {
	return !e.isAuto && least > 0 && e.each > longCall.Seconds() && e.each > hopeless*least
}

// estimate finds out about how long a call takes, by few calls. If it is not warm, a first one has touched the memory.
func (e *entrant) estimate(ctx context.Context, warm bool) (err error) {
	if !warm {
		if e.each, err = e.AgreedSpan(ctx, 1); err != nil {
			return err
		}
	}
	span := e.time.Seconds() / compareSpans
	if few := int(min(span/e.each, firstCalls)); few > 1 {
		e.each, err = e.AgreedSpan(ctx, few)
	}
	return err
}

// plan says how many batches of how many calls there are to be: none of what is hopeless.
func (e *entrant) plan(least float64) {
	all := e.time.Seconds()
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

// right carries out a call, and returns how many seconds it took, as AgreedSpan. Any wrong element is an error.
func (e *entrant) right(ctx context.Context, p *contest) (seconds float64, err error) {
	e.Prepare()
	if seconds, err = e.AgreedSpan(ctx, 1); err != nil {
		return 0, err
	}
	wrong, _ := e.Check()
	sum := []int64{int64(wrong)}
	if err := gcl.AllReduceInPlace(ctx, e.Clerk, sum, gcl.Add); err != nil {
		return 0, err
	}
	if sum[0] != 0 {
		return 0, fmt.Errorf("%v of %d bytes over %d replicas by %v has %d wrong elements: nothing is written", p.coll,
			p.size, e.Clerk.Size(), e.Comm.Options().Method, sum[0])
	}
	return seconds, nil
}

// keep keeps what was measured, at replica 0.
func (b *comparison) keep(clerk *gcl.Comm, points []contest) error {
	if clerk.Rank() != 0 {
		return nil
	}
	for _, p := range points {
		out := point{N: b.N, Collective: schedule.Collective(p.coll).String(), Size: p.size}
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
		b.points = append(b.points, out)
	}
	return nil
}

// takes is the way that auto takes at a point.
func (b *comparison) takes(c *gcl.Comm, p contest) (string, error) {
	count := p.coll.Count(p.size, b.DType.Size(), b.N)
	e, err := c.Explain(schedule.Collective(p.coll), int64(p.coll.Larger(count, b.N)*b.DType.Size()), b.DType)
	if err != nil {
		return "", err
	}
	way := e.Method.String()
	if !b.Processes || b.auto != gcl.AutoImplementation {
		way += "/" + e.Implementation.String()
	}
	return cmp.Or(p.as[way], way), nil
}
