package gcl_test

import (
	"context"
	"fmt"
	"log"

	"gogcl.dev/gcl"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// What a megabyte costs among four replicas in one process.
func ExampleComm_Explain() {
	var explanation gcl.Explanation
	err := gcl.Run(context.Background(), 4, func(ctx context.Context, c *gcl.Comm) error {
		e, err := c.Explain(schedule.AllReduce, 1<<20, tensor.F32)
		if c.Rank() == 0 {
			explanation = e
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(explanation)
	// Output:
	// all-reduce of 1048576 bytes (float32 x 262144) over 4 ranks; clique of 4 replicas
	// direct, since on peer memory it is one pass; Syncful, since the replicas share memory
	//
	//   method                  implementation  rounds  barriers  bytes sent  estimate  of the bound
	//   broadcast               Syncless             1         0     3145728     394µs          50 %
	//   clockwise_ring          Syncless             6         0     1572864     203µs          98 %
	//   anticlockwise_ring      Syncless             6         0     1572864     203µs          98 %
	//   bidirectional_ring_pair Syncless             6         0     1572864     203µs          98 %
	//   meet_in_middle_ring     Syncless             4         0     1572864     201µs          99 %
	//   quad_directional_ring   Syncless             6         0     1572864     203µs          98 %
	//   direct                  Syncless             2         0     1572864     199µs          99 %
	//   recursive_doubling      Syncless             2         0     2097152     264µs          75 %
	//   halving_doubling        Syncless             4         0     1572864     201µs          99 %
	//   circulant               Syncless             4         0     1572864     201µs          99 %
	//   binomial_tree           Syncless             4         0     2097152     528µs          37 %
	//   knomial_4_tree          Syncless             2         0     3145728     788µs          25 %
	//   double_binary_tree      Syncless            36         0     2097152     331µs          60 %
	//   torus_2d                Syncless             4         0     1572864     201µs          99 %
	//   swing                   Syncless             4         0     1572864     201µs          99 %
	//   swing_2d                Syncless             4         0     1572864     201µs          99 %
	// * direct                  Syncful              1         2     1572864    66.5µs             -
}

// Memory for data that is sent again and again.
func ExampleAlloc() {
	sums := make([]float32, 2)
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		gradients, err := gcl.Alloc[float32](c, 1<<20)
		if err != nil {
			return err
		}
		for step := range 3 {
			gradients[0] = float32(step)
			if err := gcl.AllReduceInPlace(ctx, c, gradients, gcl.Add); err != nil {
				return err
			}
		}
		sums[c.Rank()] = gradients[0]
		return gcl.Free(c, gradients)
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sums)
	// Output: [4 4]
}
