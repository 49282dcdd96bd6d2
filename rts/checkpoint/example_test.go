package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"gogcl.dev/rts/checkpoint"
	"gogcl.dev/tensor"
)

// weights is a tensor of the shape (2, 3) that lies in shards.
func weights(shards ...[]float32) checkpoint.Tensor {
	return checkpoint.Tensor{
		Name: "layer/w", DType: tensor.F32, Shape: tensor.Shape{2, 3}, Shards: len(shards),
		Read: func(k int) (*tensor.Tensor, error) { return tensor.FromSlice(shards[k]) },
		Write: func(k int, shard *tensor.Tensor) error {
			data, err := tensor.Of[float32](shard)
			copy(shards[k], data)
			return err
		},
	}
}

// Four replicas keep two elements each, the last one only padding. What they save is loaded by five, and by one.
func Example() {
	parent, err := os.MkdirTemp("", "checkpoint")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir, ctx := filepath.Join(parent, "run"), context.Background()

	four := weights([]float32{1, 2}, []float32{3, 4}, []float32{5, 6}, []float32{0, 0})
	if _, err := checkpoint.Load(ctx, dir, []checkpoint.Tensor{four}); errors.Is(err, checkpoint.ErrNone) {
		fmt.Println("begin at step 0")
	}
	if err := checkpoint.Save(ctx, dir, []checkpoint.Tensor{four}, map[string]string{"step": "100"}); err != nil {
		log.Fatal(err)
	}
	for _, shards := range [][][]float32{{{9, 9}, {9, 9}, {9, 9}, {9, 9}, {9, 9}}, {make([]float32, 6)}} {
		meta, err := checkpoint.Load(ctx, dir, []checkpoint.Tensor{weights(shards...)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("go on at step", meta["step"], shards)
	}
	// Output:
	// begin at step 0
	// go on at step 100 [[1 2] [3 4] [5 6] [0 0] [0 0]]
	// go on at step 100 [[1 2 3 4 5 6]]
}
