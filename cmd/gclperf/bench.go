package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
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
	origin
}

// bench measures what the settings ask for.
type bench struct {
	settings *settings
	origin   origin
	out      output
	log      *complaints
	status   *status
	tamper   func(replica int, result []byte)
	since    func(time.Time) time.Duration // time.Since, but for tests
	seen     []measurement                 // by replica 0
	compared []point                       // by replica 0, with -tune and -sweep

	reduced, moved *pattern // of collectives that reduce, and of the others
}

// wrong is the number of wrong values seen.
func (b *bench) wrong() int {
	sum := 0
	for _, m := range b.seen {
		sum += max(m.Wrong, 0)
	}
	return sum
}

// newBench makes the values that all replicas of this process work on.
func (p *program) newBench(s *settings, out output) *bench {
	status := newStatus(p.stderr)
	b := &bench{settings: s, origin: newOrigin(s, time.Now()), out: out,
		log: &complaints{to: status}, status: status, tamper: p.tamper, since: p.since,
		moved: newPattern(s.dtype, gcl.Local, s.n)}
	if slices.ContainsFunc(s.collectives, collective.reduces) { // else the operator need not take the type
		b.reduced = newPattern(s.dtype, s.op, s.n)
	}
	return b
}

// replica measures everything at one replica.
func (b *bench) replica(ctx context.Context, c *gcl.Comm) error {
	clerk := c
	if b.settings.processes { // a lane of its own: nothing but the measured calls goes over the sockets of theirs
		var err error
		if clerk, err = c.Dup(ctx); err != nil {
			return err
		}
	}
	if b.settings.compares != nil {
		return typed[b.settings.dtype].compare(ctx, c, clerk, b)
	}
	return typed[b.settings.dtype].measure(ctx, c, clerk, b)
}

// note takes a measurement, at replica 0.
func (b *bench) note(m measurement) error {
	b.status.end()
	b.seen = append(b.seen, m)
	return b.out.add(m)
}

// byType is what a program must do for each element type.
type byType struct {
	measure func(ctx context.Context, c, clerk *gcl.Comm, b *bench) error
	compare func(ctx context.Context, c, clerk *gcl.Comm, b *bench) error
	probe   func(context.Context, gcl.Operator) (refused, err error)
}

// typed has an entry for each element type.
var typed = map[tensor.DType]byType{
	tensor.Bool: functions[bool](),
	tensor.I8:   functions[int8](), tensor.I16: functions[int16](), tensor.I32: functions[int32](),
	tensor.I64: functions[int64](),
	tensor.U8:  functions[uint8](), tensor.U16: functions[uint16](), tensor.U32: functions[uint32](),
	tensor.U64: functions[uint64](),
	tensor.F16: functions[tensor.Float16](), tensor.BF16: functions[tensor.BFloat16](),
	tensor.F32: functions[float32](), tensor.F64: functions[float64](),
}

func functions[T tensor.Element]() byType {
	return byType{measure: measureAll[T], compare: compareAll[T], probe: probeType[T]}
}

// probeType carries out the smallest all-reduce. refused is the error of the call, and err that of anything else.
func probeType[T tensor.Element](ctx context.Context, op gcl.Operator) (refused, err error) {
	err = gcl.Run(ctx, 1, func(ctx context.Context, c *gcl.Comm) error {
		refused = gcl.AllReduceTo(ctx, c, make([]T, 1), make([]T, 1), op)
		return nil
	})
	if refused != nil && ctx.Err() == nil {
		return refused, nil
	}
	return nil, err
}

// measureAll is the body of a replica. Calls on c are measured; by clerk the replicas tell each other about it.
func measureAll[T tensor.Element](ctx context.Context, c, clerk *gcl.Comm, b *bench) error {
	s := b.settings
	for _, m := range s.methods { // before anything is measured
		for _, i := range s.implementations {
			if _, err := c.With(gcl.Options{Method: m, Implementation: i, Reproducible: s.reproducible}); err != nil {
				return err
			}
		}
	}
	largest := 0
	for _, coll := range s.collectives {
		for _, size := range s.sizes {
			largest = max(largest, coll.larger(coll.count(size, s.dtype.Size(), s.n), s.n))
		}
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
		defer b.status.end() // after an error
	}
	var skipped error // the last
	measuredAny := false
	done, all := 0, len(s.collectives)*len(s.methods)*len(s.implementations)*len(s.sizes)*len(s.places)
	for _, coll := range s.collectives {
		p := b.moved
		if coll.reduces() {
			p = b.reduced
		}
		for _, m := range s.methods {
			for _, i := range s.implementations {
				measured, err := c.With(gcl.Options{Method: m, Implementation: i, Reproducible: s.reproducible})
				if err != nil {
					return err
				}
				if err := s.skips(measured, coll); err != nil {
					done += len(s.sizes) * len(s.places)
					skipped = err
					if clerk.Rank() == 0 {
						fmt.Fprintf(b.status, "gclperf: not measured, since auto would take its place: %v\n", err)
					}
					continue
				}
				measuredAny = true
				last := 0
				for _, size := range s.sizes {
					count := coll.count(size, s.dtype.Size(), s.n)
					if count == last { // rounded up to the same as the size before
						done += len(s.places)
						continue
					}
					last = count
					for _, pl := range s.places {
						o, err := newOperand(coll, pl, count, c, first, second)
						if err != nil {
							return err
						}
						if o.op, o.root = s.op, s.root; s.batch {
							o.together(measured)
						}
						if done++; clerk.Rank() == 0 {
							b.status.begin(fmt.Sprintf("# %v of %s, %v, %v (%d of %d)",
								coll, formatSize(size), m, i, done, all))
						}
						r := runner[T]{bench: b, comm: measured, clerk: clerk, operand: o, pattern: p}
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

// describe begins a measurement.
func (b *bench) describe(c collective, p place, o gcl.Options, count int) measurement {
	s := b.settings
	out := measurement{
		Collective: c.String(), Transport: s.transport, Implementation: o.Implementation.String(),
		Method: o.Method.String(), N: s.n,
		Bytes: c.larger(count, s.n) * s.dtype.Size(), Count: count, DType: s.dtype.String(), Op: "none",
		Root: -1, Place: p.String(), Wrong: -1, origin: b.origin,
	}
	if c.reduces() {
		out.Op = s.op.String()
	}
	if c.rooted() {
		out.Root = s.root
	}
	return out
}
