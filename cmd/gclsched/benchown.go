package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods/schedule"
)

// runOwn measures a schedule of a contract of a program's own, which auto has nothing beside, and prints a line for
// each size, which is that of the longest buffer.
func (m *measuring) runOwn(ctx context.Context, stdout io.Writer) error {
	s := m.schedule
	fmt.Fprintln(stdout, title(s))
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "bytes\tschedule\t\n")
	err := gcl.Run(ctx, s.Size, func(ctx context.Context, c *gcl.Comm) error {
		for _, n := range m.counts {
			if err := m.sizeOwn(ctx, c, n, w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.Flush()
}

// sizeOwn measures calls at one rank, with n elements in the longest buffer. Rank 0 prints the line.
func (m *measuring) sizeOwn(ctx context.Context, c *gcl.Comm, n int, w io.Writer) error {
	s := m.schedule
	unit := n / longest(s.Custom)
	src := make([]float32, unit*sizesOf(s.Custom, s.Custom.Inputs[c.Rank()]))
	dst := make([]float32, unit*sizesOf(s.Custom, s.Custom.Outputs[c.Rank()]))
	block := func(calls int) error {
		for range calls {
			if err := gcl.Execute(ctx, c, s, dst, src, gcl.Add); err != nil {
				return err
			}
		}
		return c.Barrier(ctx)
	}
	if err := block(1); err != nil { // once to begin with, and once to see how long a call takes
		return err
	}
	began := time.Now()
	if err := block(1); err != nil {
		return err
	}
	calls := max(int64(m.time/rounds/max(time.Since(began), 1)), 1)
	agreed, err := gcl.AllReduce(ctx, c, []int64{calls}, gcl.Min)
	if err != nil {
		return err
	}
	var times []time.Duration
	for range rounds {
		began := time.Now()
		if err := block(int(agreed[0])); err != nil {
			return err
		}
		times = append(times, time.Since(began)/time.Duration(agreed[0]))
	}
	if c.Rank() == 0 {
		slices.Sort(times)
		fmt.Fprintf(w, "%d\t%v\t\n", n*elementBytes, times[len(times)/2])
	}
	return nil
}

// longest is the sizes of chunks in the longest buffer of all ranks.
func longest(c *schedule.CustomContract) int {
	n := 1
	for _, list := range slices.Concat(c.Inputs, c.Outputs) {
		n = max(n, sizesOf(c, list))
	}
	return n
}

// sizesOf is the sizes of some chunks.
func sizesOf(c *schedule.CustomContract, list []int) int {
	n := 0
	for _, f := range list {
		n += c.Size(f)
	}
	return n
}
