package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"time"

	"gogcl.dev/gcl"
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
	values   *measure.Values
	seen     []measurement // by replica 0
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
	return &bench{settings: s, origin: measure.NewOrigin(s.flags(), time.Now()), out: out, log: &complaints{to: status},
		status: status, values: s.NewValues(tamper)}
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
	var skipped error // the last
	measuredAny := false
	for k := range s.series() {
		measured, err := c.With(gcl.Options{Method: k.method, Implementation: k.by, Reproducible: s.reproducible})
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
			o, err := s.Operand(k.collective, of.place, of.count, c, buffers)
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
			r := runner{measure.Runner{Values: b.values, Comm: measured, Clerk: clerk, Operand: o}, b}
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

// series is a collective by one method and implementation, of all sizes. first is the number of its first line.
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
					first += len(s.Sizes) * len(s.places)
				}
			}
		}
	}
}

// lines is how many there are of all series, with those of sizes that are rounded up to the same.
func (s *settings) lines() int {
	return len(s.Collectives) * len(s.Methods) * len(s.Implementations) * len(s.Sizes) * len(s.places)
}

// oneCase is a line of a series: a collective of one size in one place.
type oneCase struct {
	size, count int // bytes that were asked for, and elements
	place       measure.Place
	number      int // of all lines
}

// cases are the lines of a series. A size that is rounded up to the same as the size before is left out.
func (s *settings) cases(k series) iter.Seq[oneCase] {
	return func(yield func(oneCase) bool) {
		last := 0
		for i, size := range s.Sizes {
			count := k.collective.Count(size, s.DType.Size(), s.N)
			if count == last {
				continue
			}
			last = count
			for j, place := range s.places {
				if !yield(oneCase{size, count, place, k.first + i*len(s.places) + j}) {
					return
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
func (b *bench) describe(c measure.Collective, p measure.Place, o gcl.Options, count int) measurement {
	s := b.settings
	out := measurement{
		Collective: c.String(), Transport: s.Transport, Implementation: o.Implementation.String(),
		Method: o.Method.String(), N: s.N,
		Bytes: c.Larger(count, s.N) * s.DType.Size(), Count: count, DType: s.DType.String(), Op: "none",
		Root: -1, Place: p.String(), Wrong: -1, Origin: b.origin,
	}
	if c.Reduces() {
		out.Op = s.Op.String()
	}
	if c.Rooted() {
		out.Root = s.Root
	}
	return out
}
