// Command method adds a method of its own, an all-reduce by halving and doubling, and takes it from the proof to the
// benchmark. main_test.go tests it.
//
//	go run ./examples/method
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// butterfly is the method. At distance d a rank has d chunks fewer to care for, those of its partner, and gives them
// away; then it gets the results back the same way (Rabenseifner, Optimization of Collective Reduction Operations,
// 2004).
var butterfly = methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
	n := r.Size
	if r.Collective != schedule.AllReduce || n&(n-1) != 0 || r.RankOrder {
		return nil, fmt.Errorf("only an all-reduce over a power of two, in no given order: %w", errors.ErrUnsupported)
	}
	b, round := schedule.NewBuilder(r.Collective, n, 0, n), 0
	for d := n / 2; d > 0; d, round = d/2, round+1 {
		for rank := range n {
			partner := rank ^ d
			b.Fold(round, rank, partner, partner&^(d-1), d) // the d chunks that the partner cares for
		}
	}
	for d := 1; d < n; d, round = 2*d, round+1 {
		for rank := range n {
			b.Copy(round, rank, rank^d, rank&^(d-1), d)
		}
	}
	return b.Build()
})

func main() { command.Main("method", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("method", flag.ContinueOnError)
	code, ok := command.Flags(flags, args, stdout, stderr, "Proves, draws, prices, runs and measures a method.")
	if !ok {
		return code
	}
	err := methods.Register("butterfly", butterfly)
	if err == nil {
		err = show(ctx, stdout)
	}
	if err != nil {
		return command.Ended(ctx, "method", err, stderr)
	}
	return command.OK
}

const replicas, elements, calls = 4, 16 << 10, 101

// show shows what the library knows of the method, which has been registered.
func show(ctx context.Context, w io.Writer) error {
	m, err := methods.Parse("butterfly")
	if err != nil {
		return err
	}
	// Build proves the schedule. One that does not prove is an error, with what is missing or doubled and where.
	s, err := methods.Build(methods.Spec{Method: m, Collective: schedule.AllReduce, Size: replicas})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "proved:\n%s\n", s.Shape())
	return gcl.Run(ctx, replicas, func(ctx context.Context, c *gcl.Comm) error {
		for _, m := range []methods.Method{m, methods.ClockwiseRing, methods.Direct} {
			mine, err := c.With(gcl.Options{Method: m, Implementation: gcl.Syncless})
			if err != nil {
				return err
			}
			price, err := mine.Explain(schedule.AllReduce, 4*elements, tensor.F32)
			if err != nil {
				return err
			}
			data, times := make([]float32, elements), make([]time.Duration, calls)
			for i := range times {
				began := time.Now()
				if err := gcl.AllReduceInPlace(ctx, mine, data, gcl.Add); err != nil {
					return err
				}
				times[i] = time.Since(began)
			}
			if slices.Sort(times); c.Rank() == 0 {
				fmt.Fprintf(w, "%v\nmeasured: %v\n\n", price, times[calls/2])
			}
		}
		return nil
	})
}
