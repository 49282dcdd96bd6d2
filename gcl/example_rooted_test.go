package gcl_test

import (
	"context"
	"fmt"
	"log"

	"gogcl.dev/gcl"
)

// One replica wants the greatest loss of all, to print it.
func ExampleReduce() {
	err := gcl.Run(context.Background(), 4, func(ctx context.Context, c *gcl.Comm) error {
		loss := []float64{0.5 + float64(c.Rank())}
		const root = 2
		greatest, err := gcl.Reduce(ctx, c, loss, gcl.Max, root)
		if c.Rank() == root {
			fmt.Println(greatest)
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// [3.5]
}

// What the replicas have measured comes to one of them, by rank.
func ExampleGather() {
	err := gcl.Run(context.Background(), 3, func(ctx context.Context, c *gcl.Comm) error {
		measured := []int32{int32(10 * c.Rank()), int32(10*c.Rank() + 1)}
		all, err := gcl.Gather(ctx, c, measured, 0)
		if c.Rank() == 0 {
			fmt.Println(all)
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// [0 1 10 11 20 21]
}

// One replica has read the data, and each gets its part.
func ExampleScatter() {
	parts := make([][]float32, 3)
	err := gcl.Run(context.Background(), 3, func(ctx context.Context, c *gcl.Comm) error {
		var data []float32
		if c.Rank() == 0 {
			data = []float32{1, 2, 3, 4, 5, 6}
		}
		part, err := gcl.Scatter(ctx, c, data, 2, 0)
		parts[c.Rank()] = part
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(parts)
	// Output:
	// [[1 2] [3 4] [5 6]]
}
