package ddp_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/ddp"
)

// Two replicas fit y = a x + b, each on two of four points, in steps that use all of them.
func Example() {
	x, y := []float64{0, 1, 2, 3}, []float64{1, 3, 5, 7}
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		params := [][]float64{{float64(c.Rank())}, {0}} // a and b
		if err := ddp.Broadcast(ctx, c, params); err != nil {
			return err
		}
		grads := [][]float64{{0}, {0}}
		r, err := ddp.New(ctx, c, grads, ddp.Options{})
		if err != nil {
			return err
		}
		for range 200 {
			a, b := params[0][0], params[1][0]
			clear(grads[0])
			clear(grads[1])
			for i := c.Rank(); i < len(x); i += c.Size() {
				wrong := a*x[i] + b - y[i]
				grads[0][0] += wrong * x[i]
				grads[1][0] += wrong
			}
			for i := range slices.Backward(grads) { // as a backward pass does, with work in between
				if err := r.Ready(ctx, i); err != nil {
					return err
				}
			}
			if err := r.Finish(ctx); err != nil {
				return err
			}
			for i := range params {
				params[i][0] -= 0.2 * grads[i][0]
			}
		}
		if c.Rank() == 1 {
			fmt.Printf("y = %.3f x + %.3f\n", params[0][0], params[1][0])
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: y = 2.000 x + 1.000
}
