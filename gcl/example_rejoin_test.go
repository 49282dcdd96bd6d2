package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"gogcl.dev/gcl"
)

// Replica 1 dies. The others go on, in their order, and each has a new number.
func ExampleRejoin() {
	results := make([]string, 4)
	err := gcl.Run(context.Background(), 4, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 1 {
			return errors.New("its data is gone")
		}
		if err := c.Barrier(ctx); err == nil {
			return errors.New("a barrier without replica 1")
		}
		next, change, err := gcl.Rejoin(ctx, c)
		if err != nil {
			return err
		}
		sum, err := gcl.AllReduce(ctx, next, []int{1}, gcl.Add)
		results[c.Replica()] = fmt.Sprintf("replica %d is now %d of %d, without %d; the sum is %d", c.Replica(),
			next.Replica(), next.Size(), change.Left[0].Replica, sum)
		return err
	}, gcl.WithElastic(gcl.Elastic{Min: 2}))
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range results {
		fmt.Println(text)
	}
	// Output:
	// replica 0 is now 0 of 3, without 1; the sum is [3]
	//
	// replica 2 is now 1 of 3, without 1; the sum is [3]
	// replica 3 is now 2 of 3, without 1; the sum is [3]
}

// A loop that goes on when replica 3 dies in its third step. A step whose outcome a replica does not know is done if
// Rejoin says so, and else made again.
func ExampleComm_Commit() {
	results := make([]string, 4)
	err := gcl.Run(context.Background(), 4, func(ctx context.Context, c *gcl.Comm) error {
		replica, state := c.Replica(), []float32{0}
		for step := uint64(0); step < 5; {
			var next []float32 // state stays until the step is done
			done, err := c.Commit(ctx, func() (err error) {
				if replica == 3 && step == 2 {
					panic("replica 3 dies")
				}
				next, err = gcl.AllReduce(ctx, c, []float32{state[0] + 1}, gcl.Mean)
				return err
			})
			if err != nil && c.Err() != nil { // else some function has failed, and all make the step again
				var change gcl.Change
				if c, change, err = gcl.Rejoin(ctx, c); err != nil {
					return err
				}
				done = change.Committed > step
			}
			if done {
				state, step = next, step+1
			}
		}
		results[replica] = fmt.Sprintf("replica %d of %d at last: %v", replica, c.Size(), state)
		return c.Barrier(ctx)
	}, gcl.WithElastic(gcl.Elastic{Min: 2}))
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range results {
		fmt.Println(text)
	}
	// Output:
	// replica 0 of 3 at last: [5]
	// replica 1 of 3 at last: [5]
	// replica 2 of 3 at last: [5]
}
