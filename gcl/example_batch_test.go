package gcl_test

import (
	"context"
	"errors"
	"fmt"

	"gogcl.dev/gcl"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// A program that makes the same call in every step puts its operands together once. They may have different types.
func ExampleComm_Batch() {
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		weights, counts := []float32{0, 0}, []int64{0}
		b := c.Batch(schedule.AllReduce, gcl.Max, 0)
		gcl.Append(b, weights, weights)
		gcl.Append(b, counts, counts)
		for step := range 2 {
			weights[c.Rank()], counts[0] = float32(step+1), int64(10*step+c.Rank())
			if err := b.Run(ctx); err != nil {
				return err
			}
			if c.Rank() == 0 {
				fmt.Println(weights, counts)
			}
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// [1 1] [1]
	// [2 2] [11]
	// <nil>
}

// A program that learns the type of its data only when it runs need not turn bytes into slices.
func ExampleComm_Do() {
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		src, err1 := tensor.FromSlice([]int16{int16(c.Rank()), 7})
		dst, err2 := tensor.New(src.DType(), 2, 2)
		if err := errors.Join(err1, err2, c.Do(ctx, schedule.AllGather, dst, src, 0, 0)); err != nil {
			return err
		}
		if c.Rank() == 1 {
			fmt.Println(dst)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// int16(2, 2)[[0 7] [1 7]]
	// <nil>
}
