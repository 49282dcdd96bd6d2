// Command method takes an all-reduce of its own from the proof to the benchmark: go run ./examples/method
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// butterfly halves what a rank cares for, round by round: at distance d it gives its partner the d chunks that are the
// partner's. Then it gets the results back the same way (Rabenseifner 2004).
var butterfly = methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
	n := r.Size
	if r.Collective != schedule.AllReduce || n&(n-1) != 0 || r.RankOrder {
		return nil, fmt.Errorf("only an all-reduce over a power of two, in no given order: %w", errors.ErrUnsupported)
	}
	b, round := schedule.NewBuilder(r.Collective, n, 0, n), 0
	for d := n / 2; d > 0; d, round = d/2, round+1 {
		for rank := range n {
			b.Fold(round, rank, rank^d, (rank^d)&^(d-1), d)
		}
	}
	for d := 1; d < n; d, round = 2*d, round+1 {
		for rank := range n {
			b.Copy(round, rank, rank^d, rank&^(d-1), d)
		}
	}
	return b.Build()
})

const replicas, elements, calls = 4, 16 << 10, 100

// show draws the method, prices it beside all others, runs it, and says what a call takes.
func show(ctx context.Context, w io.Writer) error {
	m, err := methods.Parse("butterfly") // main has registered it
	if err != nil {
		return err
	}
	// An error of Build says what is missing or doubled, and where.
	s, err := methods.Build(methods.Spec{Method: m, Collective: schedule.AllReduce, Size: replicas})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "proved: %v\n", s.Shape())
	return gcl.Run(ctx, replicas, func(ctx context.Context, c *gcl.Comm) error {
		price, err := c.Explain(schedule.AllReduce, 4*elements, tensor.F32)
		data, began := make([]float32, elements), time.Now()
		for i := 0; i < calls && err == nil; i++ {
			err = gcl.AllReduceInPlace(ctx, c, data, gcl.Add)
		}
		if c.Rank() == 0 && err == nil {
			fmt.Fprintf(w, "%v\nmeasured: %v a call\n", price, time.Since(began)/calls)
		}
		return err
	}, gcl.WithOptions(gcl.Options{Method: m, Implementation: gcl.Syncless}))
}
