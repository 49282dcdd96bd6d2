package values_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/values"
)

// Each replica counts the words of its line, and the root has the counts of all.
func ExampleReduce() {
	lines := []string{"the dog saw the cat", "the cat ran"}
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		counts := map[string]int{}
		for word := range strings.FieldsSeq(lines[c.Rank()]) {
			counts[word]++
		}
		counts, err := values.Reduce(ctx, c, counts, 0, func(a, b map[string]int) map[string]int {
			for word, n := range b {
				a[word] += n
			}
			return a
		})
		if err == nil && c.Rank() == 0 {
			fmt.Println(counts)
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: map[cat:2 dog:1 ran:1 saw:1 the:3]
}
