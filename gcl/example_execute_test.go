package gcl_test

import (
	"context"
	"fmt"
	"log"

	"gogcl.dev/gcl"
	"gogcl.dev/methods/schedule"
)

// A sum over the ranks up to one's own, which is no collective of the library: rank r learns where its rows begin among
// those of all. In round t a rank's sum goes to the rank 2^t up.
func ExampleExecute() {
	const ranks = 4
	b := schedule.NewBuilderFor(schedule.Scan(ranks, 1))
	for t, d := 0, 1; d < ranks; t, d = t+1, 2*d {
		for rank := range ranks - d {
			b.Fold(t, rank, rank+d, 0, 1)
		}
	}
	scan, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	rows := []int64{10, 3, 0, 7} // of each rank
	ends := make([]int64, ranks)
	err = gcl.Run(context.Background(), ranks, func(ctx context.Context, c *gcl.Comm) error {
		r := c.Rank()
		return gcl.Execute(ctx, c, scan, ends[r:r+1], rows[r:r+1], gcl.Add)
	})
	if err != nil {
		log.Fatal(err)
	}
	for r, end := range ends {
		fmt.Printf("rank %d has rows %d to %d\n", r, end-rows[r], end-1)
	}
	// Output:
	// rank 0 has rows 0 to 9
	// rank 1 has rows 10 to 12
	// rank 2 has rows 13 to 12
	// rank 3 has rows 13 to 19
}

// Three replicas have a piece of a row of cells each, and give their neighbours the cells at its ends, two of each
// side.
func ExampleExecute_halo() {
	next := [][]int{{1}, {0, 2}, {1}} // whose cells a rank needs, and gets, in this order
	own, err := schedule.Exchange(next, next)
	if err != nil {
		log.Fatal(err)
	}
	b := schedule.NewBuilderFor(own)
	for rank, chunks := range own.Inputs {
		for i, chunk := range chunks {
			b.Copy(0, rank, next[rank][i], chunk, 1)
		}
	}
	exchange, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	received := make([][]float32, 3)
	err = gcl.Run(context.Background(), 3, func(ctx context.Context, c *gcl.Comm) error {
		at := float32(10 * c.Rank())
		cells := []float32{at, at + 1, at + 2, at + 3}
		var src []float32
		for _, peer := range next[c.Rank()] {
			if peer < c.Rank() {
				src = append(src, cells[:2]...)
			} else {
				src = append(src, cells[2:]...)
			}
		}
		received[c.Rank()] = make([]float32, 2*len(next[c.Rank()]))
		return gcl.Execute(ctx, c, exchange, received[c.Rank()], src, 0)
	})
	if err != nil {
		log.Fatal(err)
	}
	for r, cells := range received {
		fmt.Println("rank", r, "has", cells)
	}
	// Output:
	// rank 0 has [10 11]
	// rank 1 has [2 3 20 21]
	// rank 2 has [12 13]
}
