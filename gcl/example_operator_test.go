package gcl_test

import (
	"context"
	"fmt"
	"log"

	"gogcl.dev/gcl"
)

// xor is made once, for as long as the program runs.
var xor, errXor = gcl.NewOperator("xor", func(dst, a, b []uint8) {
	for i := range dst {
		dst[i] = a[i] ^ b[i]
	}
})

// The bits in which an odd number of replicas have a one.
func ExampleNewOperator() {
	if errXor != nil {
		log.Fatal(errXor)
	}
	err := gcl.Run(context.Background(), 3, func(ctx context.Context, c *gcl.Comm) error {
		bits := []uint8{1 << c.Rank(), 7}
		if err := gcl.AllReduceInPlace(ctx, c, bits, xor); err != nil || c.Rank() != 0 {
			return err
		}
		fmt.Printf("%v: %03b\n", xor, bits)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// xor: [111 111]
}
