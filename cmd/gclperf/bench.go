package main

import (
	"context"
	"fmt"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/measure"
)

// measurement is one line of -json: a collective of one size, in one place, by one method.
type measurement struct {
	Collective     string  `json:"collective"`
	Transport      string  `json:"transport"`
	Implementation string  `json:"implementation"`
	Method         string  `json:"method"`
	N              int     `json:"n"`
	Bytes          int     `json:"bytes"`
	Count          int     `json:"count"`
	DType          string  `json:"dtype"`
	Op             string  `json:"op"`   // none where nothing is reduced
	Root           int     `json:"root"` // -1 where there is none
	Place          string  `json:"place"`
	P50            float64 `json:"p50_us"`
	P90            float64 `json:"p90_us"`
	P99            float64 `json:"p99_us"`
	AlgBW          float64 `json:"algbw_gbps"`
	BusBW          float64 `json:"busbw_gbps"`
	Wrong          int     `json:"wrong"` // -1 where results are not checked
	Allocs         float64 `json:"allocs"`
	Load           float64 `json:"load"` // cores that other programs kept busy meanwhile; -1 where that is not known
	measure.Origin
}

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

// newBench makes what all replicas of this process work with.
func (p *program) newBench(out output) *bench {
	s, status := p.settings, measure.NewStatus(p.Stderr)
	return &bench{settings: s, origin: measure.NewOrigin(s.flags(), time.Now()), out: out, log: &complaints{to: status},
		status: status, values: s.NewValues(p.tamper)}
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
	done, all := 0, len(s.Collectives)*len(s.Methods)*len(s.Implementations)*len(s.Sizes)*len(s.places)
	for _, coll := range s.Collectives {
		for _, m := range s.Methods {
			for _, i := range s.Implementations {
				measured, err := c.With(gcl.Options{Method: m, Implementation: i, Reproducible: s.reproducible})
				if err != nil {
					return err
				}
				if err := s.skips(measured, coll); err != nil {
					done += len(s.Sizes) * len(s.places)
					skipped = err
					if clerk.Rank() == 0 {
						fmt.Fprintf(b.status, "gclperf: not measured, since auto would take its place: %v\n", err)
					}
					continue
				}
				measuredAny = true
				last := 0
				for _, size := range s.Sizes {
					count := coll.Count(size, s.DType.Size(), s.N)
					if count == last { // rounded up to the same as the size before
						done += len(s.places)
						continue
					}
					last = count
					for _, pl := range s.places {
						o, err := s.Operand(coll, pl, count, c, buffers)
						if err != nil {
							return err
						}
						if s.batch {
							o.Together(measured)
						}
						if done++; clerk.Rank() == 0 {
							b.status.Begin(fmt.Sprintf("# %v of %s, %v, %v (%d of %d)",
								coll, measure.FormatSize(size), m, i, done, all))
						}
						r := runner{measure.Runner{Values: b.values, Comm: measured, Clerk: clerk, Operand: o}, b}
						if err := r.measure(ctx, count); err != nil {
							return err
						}
					}
				}
			}
		}
	}
	if !measuredAny && skipped != nil {
		return fmt.Errorf("nothing was measured: %w", skipped)
	}
	return nil
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
