package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/metrics"
	"gogcl.dev/internal/measure"
	"gogcl.dev/methods"
)

// bench measures what the settings ask for.
type bench struct {
	settings *settings
	origin   measure.Origin
	out      output
	log      *complaints
	status   *measure.Status
	values   sharedValues
	seen     []measurement // by replica 0
	trace    *gcl.Trace    // nil: calls are not counted
}

// sharedValues are those of what is being measured, which the replicas of a process share. All are at the same
// measurement: the first that comes to it makes them.
type sharedValues struct {
	tamper func(replica int, result []byte)

	mu     sync.Mutex // guards what follows
	of     measure.Collective
	kind   measure.Kind
	values *measure.Values
}

// at are the values of a collective and a kind, for which s has the settings.
func (v *sharedValues) at(s *measure.Settings) *measure.Values {
	v.mu.Lock()
	defer v.mu.Unlock()
	of, kind := s.Collectives[0], measure.Kind{DType: s.DType, Op: s.Op}
	if v.values == nil || v.of != of || v.kind != kind {
		v.of, v.kind, v.values = of, kind, s.NewValues(v.tamper)
	}
	return v.values
}

// wrong is the number of wrong values seen.
func (b *bench) wrong() int {
	sum := 0
	for _, m := range b.seen {
		sum += max(m.Wrong, 0)
	}
	return sum
}

// newBench makes what all replicas of this process work with. tamper changes a result before its check; nil, but for
// tests.
func newBench(s *settings, out output, stderr io.Writer, tamper func(replica int, result []byte)) *bench {
	status := measure.NewStatus(stderr)
	b := &bench{settings: s, origin: measure.NewOrigin(s.flags(), time.Now()), out: out, log: &complaints{to: status},
		status: status, values: sharedValues{tamper: tamper}}
	if s.metrics {
		b.trace = metrics.New(nil).Trace()
	}
	return b
}

// replica measures everything at one replica.
func (b *bench) replica(ctx context.Context, c *gcl.Comm) error {
	s := b.settings
	clerk, err := s.Clerk(ctx, c)
	if err != nil {
		return err
	}
	for _, m := range s.Methods { // before anything is measured
		for _, i := range s.Implementations {
			if _, err := c.With(gcl.Options{Method: m, Implementation: i, Reproducible: s.reproducible}); err != nil {
				return err
			}
		}
	}
	buffers, err := s.NewBuffers(c)
	if err != nil {
		return err
	}
	defer buffers.Free()
	if clerk.Rank() == 0 {
		defer b.status.End() // after an error
	}
	var skipped error     // the last
	var kind measure.Kind // of the values in the buffers
	measuredAny := false
	for k := range s.series() {
		measured, err := c.With(gcl.Options{Method: k.method, Implementation: k.by, Reproducible: s.reproducible,
			Trace: b.trace})
		if err != nil {
			return err
		}
		if err := s.skips(measured, k.collective); err != nil {
			skipped = err
			if clerk.Rank() == 0 {
				fmt.Fprintf(b.status, "gclperf: not measured, since auto would take its place: %v\n", err)
			}
			continue
		}
		measuredAny = true
		for of := range s.cases(k) {
			if of.kind != kind { // the values of another type need not be of this one
				kind = of.kind
				buffers.Clear()
			}
			one := s.Of(k.collective, of.kind)
			o, err := one.Operand(k.collective, of.place, of.count, c, buffers)
			if err != nil {
				return err
			}
			if s.batch {
				o.Together(measured)
			}
			if clerk.Rank() == 0 {
				b.status.Begin(fmt.Sprintf("# %v of %s, %v, %v (%d of %d)", k.collective, measure.FormatSize(of.size),
					k.method, k.by, of.number, s.lines()))
			}
			r := runner{measure.Runner{Values: b.values.at(one), Comm: measured, Clerk: clerk, Operand: o,
				Clock: s.Clock}, b, of.kind}
			if err := r.measure(ctx, of.count); err != nil {
				return err
			}
		}
	}
	if !measuredAny && skipped != nil {
		return fmt.Errorf("nothing was measured: %w", skipped)
	}
	return nil
}

// series is a collective by one method and implementation, of all kinds and sizes. first numbers its first line.
type series struct {
	collective measure.Collective
	method     methods.Method
	by         gcl.Implementation
	first      int
}

// series are those that are asked for.
func (s *settings) series() iter.Seq[series] {
	return func(yield func(series) bool) {
		first := 1
		for _, coll := range s.Collectives {
			for _, m := range s.Methods {
				for _, i := range s.Implementations {
					if !yield(series{coll, m, i, first}) {
						return
					}
					first += s.linesOf(coll)
				}
			}
		}
	}
}

// linesOf is how many a series has, with those of sizes that are rounded up to the same.
func (s *settings) linesOf(c measure.Collective) int {
	return len(s.Kinds(c)) * len(s.Sizes) * len(s.places)
}

// lines is how many there are of all series.
func (s *settings) lines() int {
	sum := 0
	for _, c := range s.Collectives {
		sum += len(s.Methods) * len(s.Implementations) * s.linesOf(c)
	}
	return sum
}

// oneCase is a line of a series: a collective of one kind and size in one place.
type oneCase struct {
	kind        measure.Kind
	size, count int // bytes that were asked for, and elements
	place       measure.Place
	number      int // of all lines
}

// cases are the lines of a series. A size that is rounded up to the same as the size before is left out.
func (s *settings) cases(k series) iter.Seq[oneCase] {
	return func(yield func(oneCase) bool) {
		number := k.first - 1
		for _, kind := range s.Kinds(k.collective) {
			last := 0
			for _, size := range s.Sizes {
				count := k.collective.Count(size, kind.DType.Size(), s.N)
				if count == last {
					number += len(s.places)
					continue
				}
				last = count
				for _, place := range s.places {
					number++
					if !yield(oneCase{kind, size, count, place, number}) {
						return
					}
				}
			}
		}
	}
}

// note takes a measurement, at replica 0.
func (b *bench) note(m measurement) error {
	b.status.End()
	b.seen = append(b.seen, m)
	return b.out.add(m)
}

// describe begins a measurement.
func (b *bench) describe(c measure.Collective, k measure.Kind, p measure.Place, o gcl.Options, count int) measurement {
	s := b.settings
	out := measurement{
		Collective: c.String(), Transport: s.Transport, Implementation: o.Implementation.String(),
		Method: o.Method.String(), N: s.N,
		Bytes: c.Larger(count, s.N) * k.DType.Size(), Count: count, DType: k.DType.String(), Op: "none",
		Root: -1, Place: p.String(), Wrong: -1, Dirty: -1, CPU: -1, OfBound: -1,
		Origin: b.origin,
	}
	if c.Reduces() {
		out.Op = k.Op.String()
	}
	if c.Rooted() {
		out.Root = s.Root
	}
	return out
}
