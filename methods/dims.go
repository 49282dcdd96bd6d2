package methods

import (
	"errors"
	"fmt"
	"math"
)

// fitDims completes dimensions so that they have room for size ranks and for no more. Those that are 0 are chosen: each
// 2 or more, as alike as can be, the larger ones first. Errors: one below 0 or of 1, and dimensions that the ranks do
// not fill, which is errors.ErrUnsupported.
func fitDims(dims []int, size int) ([]int, error) {
	left, free := size, 0
	for i, d := range dims {
		switch {
		case d < 0 || d == 1:
			return nil, fmt.Errorf("%d places in dimension %d, want 2 or more, or 0 for what fits", d, i)
		case d == 0:
			free++
		case left%d != 0:
			return nil, fmt.Errorf("%d ranks do not fill %v: %w", size, dims, errors.ErrUnsupported)
		default:
			left /= d
		}
	}
	chosen := alike(left, free, left)
	if chosen == nil {
		return nil, fmt.Errorf("%d ranks do not fill %v (0 being 2 places or more): %w", size, dims,
			errors.ErrUnsupported)
	}
	out := make([]int, 0, len(dims))
	for _, d := range dims {
		if d == 0 {
			d, chosen = chosen[0], chosen[1:]
		}
		out = append(out, d)
	}
	return out, nil
}

// alike is n as a product of so many factors, from 2 to most, of the least sum, the larger ones first. nil: there is no
// such product.
func alike(n, factors, most int) []int {
	if factors == 0 {
		if n == 1 {
			return []int{}
		}
		return nil
	}
	best, least := []int(nil), math.MaxInt
	for d := 2; d <= min(n, most); d++ {
		if n%d != 0 {
			continue
		}
		rest := alike(n/d, factors-1, d)
		sum := d
		for _, f := range rest {
			sum += f
		}
		if rest != nil && sum < least {
			best, least = append([]int{d}, rest...), sum
		}
	}
	return best
}
