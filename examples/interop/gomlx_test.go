package interop

import (
	"context"
	"errors"
	"fmt"

	_ "github.com/gomlx/gomlx/backends/simplego"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"

	"gogcl.dev/gcl"
)

// Two replicas compute the gradients of sum((x*w+b)^2) with gomlx's backend in Go, and sum them up.
func Example_gomlx() {
	backend, err := backends.NewWithConfig("go")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Finalize()
	gradients := func(x, w, b *graph.Node) (dw, db *graph.Node) {
		y := graph.Add(graph.Mul(x, w), b)
		both := graph.Gradient(graph.ReduceAllSum(graph.Mul(y, y)), w, b)
		return both[0], both[1]
	}
	err = gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		x := []float32{float32(c.Rank()), 2}
		exec, err := graph.NewExec(backend, gradients)
		if err != nil {
			return err
		}
		defer exec.Finalize()
		dw, db, err := exec.Exec2(x, []float32{1, 2}, []float32{0, 1})
		if err != nil {
			return err
		}
		// The memory of a tensor is to be had in a callback only, so the callbacks are nested.
		var inner, reduced error
		outer := tensors.MutableFlatData(dw, func(w []float32) {
			inner = tensors.MutableFlatData(db, func(b []float32) {
				reduced = gcl.AllReduceManyInPlace(ctx, c, [][]float32{w, b}, gcl.Add)
			})
		})
		if err := errors.Join(outer, inner, reduced); err != nil {
			return err
		}
		fmt.Println(dw.Value(), db.Value())
		return nil
	})
	fmt.Println(err)
	// Output:
	// [2 40] [2 20]
	// [2 40] [2 20]
	// <nil>
}
