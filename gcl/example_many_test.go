package gcl_test

import (
	"context"
	"fmt"
	"log"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// The gradients of two layers and a bias, in one go.
func ExampleAllReduceManyInPlace() {
	results := make([][][]float32, 2)
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		r := float32(c.Rank())
		grads := [][]float32{{r, 1, 2}, {10 * r, 20}, {r}}
		results[c.Rank()] = grads
		return gcl.AllReduceManyInPlace(ctx, c, grads, gcl.Mean)
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("rank 0:", results[0])
	fmt.Println("rank 1:", results[1])
	// Output:
	// rank 0: [[0.5 1 2] [5 20] [0.5]]
	// rank 1: [[0.5 1 2] [5 20] [0.5]]
}

// Tensors may be of different types.
func ExampleAllGatherTensors() {
	results := make([][]*tensor.Tensor, 2)
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		weights, err := tensor.FromSlice([]float32{float32(c.Rank()), 0.5})
		if err != nil {
			return err
		}
		done := tensor.Scalar(c.Rank() == 0)
		results[c.Rank()], err = gcl.AllGatherTensors(ctx, c, []*tensor.Tensor{weights, done})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(results[0][0])
	fmt.Println(results[0][1])
	// Output:
	// float32(2, 2)[[0 0.5] [1 0.5]]
	// bool(2,)[true false]
}

// Three elements are on IPU 0 of each replica and one on IPU 1. Each segment is scattered over the four replicas on
// its own.
func ExampleReduceScatterMapped() {
	shards, whole := make([][]int32, 4), make([][]int32, 4)
	err := gcl.Run(context.Background(), 4, func(ctx context.Context, c *gcl.Comm) (err error) {
		m := chunks.Mapping{3, 1}
		if shards[c.Rank()], err = gcl.ReduceScatterMapped(ctx, c, []int32{1, 2, 3, 100}, m, gcl.Add); err != nil {
			return err
		}
		whole[c.Rank()], err = gcl.AllGatherMapped(ctx, c, shards[c.Rank()], m)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(shards)
	fmt.Println(whole[0])
	// Output:
	// [[4 400] [8 0] [12 0] [0 0]]
	// [4 8 12 400]
}
