package interop

import (
	"context"
	"fmt"

	"gorgonia.org/tensor"

	"gogcl.dev/gcl"
)

// Two replicas have gradients in tensors of Gorgonia, one of a weight and one of a bias. Data gives their memory, as it
// does for the Value of a node of a graph.
func Example_gorgonia() {
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		r := float32(c.Rank())
		gradients := []tensor.Tensor{
			tensor.New(tensor.WithShape(2, 2), tensor.WithBacking([]float32{r, 1, 2, 3 * r})),
			tensor.New(tensor.WithShape(2), tensor.WithBacking([]float32{4 * r, 5})),
		}
		flat := make([][]float32, len(gradients))
		for i, g := range gradients {
			flat[i] = g.Data().([]float32)
		}
		if err := gcl.AllReduceManyInPlace(ctx, c, flat, gcl.Mean); err != nil {
			return err
		}
		fmt.Println(gradients[0].Data(), gradients[1].Data())
		return nil
	})
	fmt.Println(err)
	// Output:
	// [0.5 1 2 1.5] [2 5]
	// [0.5 1 2 1.5] [2 5]
	// <nil>
}
