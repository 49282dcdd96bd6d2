package interop

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"gogcl.dev/gcl"
)

// Two replicas have a row of the data each, and take the mean of their gradients of |Xw-y|^2/2.
func Example_gonum() {
	rows, targets := [][]float64{{1, 2}, {3, 4}}, []float64{0, 3}
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		x := mat.NewDense(1, 2, rows[c.Rank()])
		w := mat.NewVecDense(2, []float64{1, 1})
		var residual, gradient mat.VecDense
		residual.MulVec(x, w)
		residual.SubVec(&residual, mat.NewVecDense(1, targets[c.Rank():c.Rank()+1]))
		gradient.MulVec(x.T(), &residual)

		flat := gradient.RawVector().Data // increments are 1: the receiver was empty
		if err := gcl.AllReduceInPlace(ctx, c, flat, gcl.Mean); err != nil {
			return err
		}
		fmt.Println(mat.Formatted(gradient.T()))
		return nil
	})
	fmt.Println(err)
	// Output:
	// [7.5   11]
	// [7.5   11]
	// <nil>
}
