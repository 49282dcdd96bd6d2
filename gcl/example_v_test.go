package gcl_test

import (
	"context"
	"fmt"

	"gogcl.dev/gcl"
)

// Every rank has as many elements as it likes, of which it tells the others the number, and all get all of them.
func ExampleAllGatherV() {
	err := gcl.Run(context.Background(), 3, func(ctx context.Context, c *gcl.Comm) error {
		mine := make([]int32, c.Rank())
		for i := range mine {
			mine[i] = int32(10*c.Rank() + i)
		}
		counts, err := gcl.AllGather(ctx, c, []int{len(mine)})
		if err != nil {
			return err
		}
		all, err := gcl.AllGatherV(ctx, c, mine, counts)
		if c.Rank() == 0 {
			fmt.Println(all)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// [10 20 21]
	// <nil>
}

// Every rank has tokens for experts, one expert on each rank. An all-to-all tells how many come, and an all-to-all by
// counts moves the tokens.
func ExampleAllToAllV() {
	const n = 3
	tokens := [n][][]string{ // by rank and expert
		{{"a0"}, {"a1", "a2"}, nil},
		{nil, {"b0"}, nil},
		{{"c0", "c1"}, nil, {"c2"}},
	}
	var got [n]string
	err := gcl.Run(context.Background(), n, func(ctx context.Context, c *gcl.Comm) error {
		var data []byte // two bytes a token
		sent := make([]int, n)
		for expert, list := range tokens[c.Rank()] {
			for _, token := range list {
				data = append(data, token...)
				sent[expert] += len(token)
			}
		}
		received, err := gcl.AllToAll(ctx, c, sent)
		if err != nil {
			return err
		}
		mine, err := gcl.AllToAllV(ctx, c, data, sent, received)
		got[c.Rank()] = string(mine)
		return err
	})
	fmt.Println(got, err)
	// Output:
	// [a0c0c1 a1a2b0 c2] <nil>
}
