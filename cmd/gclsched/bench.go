package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

const (
	elementBytes = 4 // of the float32s that bench moves

	// rounds is how often bench goes over from one way to the other. The times printed are medians of so many.
	rounds = 9

	// maxBuffers bounds the memory of all ranks' buffers: a size with a letter too many shall not fill the machine.
	maxBuffers = 4 << 30
)

// benchVerb runs a schedule among goroutines, beside what auto takes for the same call.
func benchVerb(f *flag.FlagSet, from *source) work {
	text := f.String("bytes", "1K,32K,1M", "`sizes` of the larger buffer, with commas: 8, 4K, 1M, 2G")
	each := f.Duration("time", 200*time.Millisecond, "`time` to measure a size for")
	var sizes []int64
	check := func() (err error) {
		if *each <= 0 || *each > time.Hour {
			return fmt.Errorf("-time %v, want more than 0 and at most an hour", *each)
		}
		sizes, err = parseSizes(*text)
		return err
	}
	return work{check, func(ctx context.Context, stdout io.Writer) error {
		file, err := from.read()
		if err != nil {
			return err
		}
		m := &measuring{schedule: file.Schedule, time: *each}
		for _, size := range sizes {
			n, err := m.elements(size)
			if err != nil {
				return mistake{fmt.Errorf("-bytes: %w", err)}
			}
			m.counts = append(m.counts, n)
		}
		return from.of(m.run(ctx, stdout))
	}}
}

// measuring is what bench does with a schedule.
type measuring struct {
	schedule *schedule.Schedule
	counts   []int // of elements in the larger buffer
	time     time.Duration
}

// elements is a size in elements: at least one, as many for each rank where the chunks belong to ranks, and with a
// contract of a program's own a multiple of the longest buffer's sizes.
func (m *measuring) elements(size int64) (int, error) {
	s := m.schedule
	n := max(size/elementBytes, 1)
	if s.Collective.Contract().PerRank() {
		n = (n + int64(s.Size) - 1) / int64(s.Size) * int64(s.Size)
	}
	if s.Custom != nil {
		long := int64(longest(s.Custom))
		n = (n + long - 1) / long * long
	}
	if n > maxBuffers/elementBytes/3/int64(s.Size) {
		return 0, fmt.Errorf("%d bytes on each of %d ranks, in three buffers, are more than %d bytes", size, s.Size,
			int64(maxBuffers))
	}
	return int(n), nil
}

// run measures all sizes and prints a line for each.
func (m *measuring) run(ctx context.Context, stdout io.Writer) error {
	s := m.schedule
	switch {
	case s.Collective == schedule.Barrier:
		return errors.New("a barrier moves nothing: want a schedule that does")
	case s.Size < 2:
		return fmt.Errorf("a schedule of %d ranks sends nothing: want 2 or more", s.Size)
	}
	if err := schedule.Check(s); err != nil {
		return err
	}
	if s.Custom != nil {
		return m.runOwn(ctx, stdout)
	}
	const name = "this_schedule"
	own, err := methods.Named(name)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, title(s))
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "bytes\tschedule\tauto\tauto takes\tauto/schedule\t\n")
	err = gcl.Run(ctx, s.Size, func(ctx context.Context, c *gcl.Comm) error {
		mine, err := c.With(gcl.Options{Method: own})
		if err != nil {
			return err
		}
		if err := m.goes(ctx, mine, own); err != nil {
			return err
		}
		for _, n := range m.counts {
			if err := m.size(ctx, c, mine, n, w); err != nil {
				return err
			}
		}
		return nil
	}, gcl.WithMethod(name, methods.Fixed(s)))
	if err != nil {
		return err
	}
	return w.Flush()
}

// goes makes one call by comm. It is an error if the call goes by another method than own, as calls do that the method
// cannot do, and all if GCL_OPTIONS names another one.
func (m *measuring) goes(ctx context.Context, comm *gcl.Comm, own methods.Method) error {
	o := comm.Options()
	var took methods.Method
	o.Trace = &gcl.Trace{MethodChosen: func(c gcl.TraceCall, _ gcl.TraceMethod) {
		if !c.Barrier {
			took = c.Method
		}
	}}
	traced, err := comm.With(o)
	if err != nil {
		return err
	}
	if err := m.way(traced, m.counts[0]).block(ctx, 1); err != nil {
		return err
	}
	if took != own {
		return fmt.Errorf("%v among %d ranks went by %v, and not by the schedule: GCL_OPTIONS is %q",
			m.schedule.Collective, m.schedule.Size, took, os.Getenv("GCL_OPTIONS"))
	}
	return nil
}

// size measures calls with n elements in the larger buffer, by auto and by mine, at one rank. Rank 0 prints the line.
func (m *measuring) size(ctx context.Context, auto, mine *gcl.Comm, n int, w io.Writer) error {
	bytes := int64(n) * elementBytes
	takes, err := auto.Explain(m.schedule.Collective, bytes, tensor.F32)
	if err != nil {
		return err
	}
	ways := []*way{m.way(mine, n), m.way(auto, n)}
	calls := int64(math.MaxInt64) // as many of each as of the one that takes longer
	for _, way := range ways {    // once to begin with, and once to see how long a call takes
		if err := way.block(ctx, 1); err != nil {
			return err
		}
		began := time.Now()
		if err := way.block(ctx, 1); err != nil {
			return err
		}
		share := m.time / time.Duration(rounds*len(ways))
		calls = min(calls, max(1, int64(share/max(time.Since(began), 1))))
	}
	if at := firstDifference(ways[0].result, ways[1].result); at >= 0 {
		return fmt.Errorf("%d bytes: rank %d has %v in element %d, and by auto %v", bytes, auto.Rank(),
			ways[0].result[at], at, ways[1].result[at])
	}
	agreed, err := gcl.AllReduce(ctx, auto, []int64{calls}, gcl.Min)
	if err != nil {
		return err
	}
	for range rounds {
		for _, way := range ways {
			began := time.Now()
			if err := way.block(ctx, int(agreed[0])); err != nil {
				return err
			}
			way.times = append(way.times, float64(time.Since(began))/float64(agreed[0]))
		}
	}
	if auto.Rank() == 0 {
		a, b := ways[0].median(), ways[1].median()
		fmt.Fprintf(w, "%d\t%v\t%v\t%v, %v\t%.2f\t\n", bytes, a.Round(time.Nanosecond), b.Round(time.Nanosecond),
			takes.Method, takes.Implementation, float64(b)/float64(a))
	}
	return nil
}

// way is one of the two ways to make a call, at one rank.
type way struct {
	comm   *gcl.Comm
	batch  *gcl.Batch
	result []float32 // nil where the rank has none
	times  []float64 // nanoseconds of a call, for each block
}

// way lays out a call at one rank. Inputs are small integers, whose sums are exact in any order.
func (m *measuring) way(c *gcl.Comm, n int) *way {
	s := m.schedule
	contract := s.Collective.Contract()
	in := make([]float32, contract.Input.Elements(n, s.Size))
	for i := range in {
		in[i] = float32((i*7 + c.Rank()*31) % 101)
	}
	out := make([]float32, contract.Output.Elements(n, s.Size))
	var op gcl.Operator
	if contract.Combines {
		op = gcl.Add
	}
	w := &way{comm: c, result: out, batch: c.Batch(s.Collective, op, s.Root)}
	if contract.Output == schedule.AtRoot && c.Rank() != s.Root {
		w.result = nil
	}
	gcl.Append(w.batch, out, in)
	return w
}

// block makes calls, after which the ranks meet.
func (w *way) block(ctx context.Context, calls int) error {
	for range calls {
		if err := w.batch.Run(ctx); err != nil {
			return err
		}
	}
	return w.comm.Barrier(ctx)
}

// median is the median time of a call.
func (w *way) median() time.Duration {
	slices.Sort(w.times)
	return time.Duration(w.times[len(w.times)/2])
}

// firstDifference is where two slices of one length differ, or -1.
func firstDifference(a, b []float32) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
