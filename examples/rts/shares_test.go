package main

import (
	"math"
	"slices"
	"testing"

	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/internal/member"
)

// TestShares has every image of a batch in one row, with a weight that makes the mean over the replicas that of the
// images, and nothing else.
func TestShares(t *testing.T) {
	train, _, err := perceptron.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 3, 4, 7} {
		const most = 20
		s, err := newShares(n, member.All(n), most)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{most, 7, 1, 19} { // a smaller one after a larger one must not find its images
			order := orderOf(1, 0, train.Len())[:size]
			s.fill(train, order)
			var found []int
			var sum float64
			for row, w := range s.weigher {
				px, digit := s.pixels[row*perceptron.Pixels:][:perceptron.Pixels], s.digits[row]
				if w == 0 {
					if digit != 0 || slices.ContainsFunc(px, func(v float32) bool { return v != 0 }) {
						t.Errorf("n=%d, %d images: row %d has an image and no weight", n, size, row)
					}
					continue
				}
				sum += float64(w)
				for _, i := range order {
					if want, label := train.At(i); slices.Equal(px, want) && digit == int32(label) {
						found = append(found, i)
					}
				}
			}
			if !slices.Equal(found, order) {
				t.Errorf("n=%d: images %v, want %v", n, found, order)
			}
			if math.Abs(sum/float64(n)-1) > 1e-6 {
				t.Errorf("n=%d, %d images: weights add up to %v, want %d", n, size, sum, n)
			}
		}
	}
}
