package chunks

import "math/bits"

// Split returns the bounds of piece f of k over n elements: lo is floor(n*f/k) and hi is floor(n*(f+1)/k). Any n of 0
// or more and any k of 1 or more will do: the products are formed in 128 bits. There is no piece with f outside 0..k-1
// and none of a negative n: it is returned as empty, 0 to 0.
//
// The cost is two divisions.
func Split(n, k, f int) (lo, hi int) {
	if n < 0 || f < 0 || f >= k {
		return 0, 0
	}
	return int(bound(uint64(n), uint64(k), uint64(f))), int(bound(uint64(n), uint64(k), uint64(f)+1))
}

// bound is floor(n*f/k). It fits a word because f is at most k; k is not 0.
func bound(n, k, f uint64) uint64 {
	high, low := bits.Mul64(n, f)
	quotient, _ := bits.Div64(high, low, k)
	return quotient
}

// PerRank returns how many elements each of the given number of ranks holds of n: ceil(n/ranks), so that the last ranks
// may hold padding. It is 0 where n or ranks is not positive.
func PerRank(n, ranks int) int {
	if n <= 0 || ranks <= 0 {
		return 0
	}
	return (n-1)/ranks + 1
}

// SplitPadded returns the bounds of piece f of k over n elements that belong to ranks: the pieces of the padded length
// ranks*PerRank(n, ranks), clipped at n. Pieces wholly in the padding are empty, n to n. There is no piece with f
// outside 0..k-1, none of a negative n and none for less than one rank: it is returned as empty, 0 to 0.
//
//	3 elements, 2 ranks, 4 pieces     │0│1│2│·│     rank 0 has 0 and 1, rank 1 has 2 and the padding
func SplitPadded(n, ranks, k, f int) (lo, hi int) {
	if n < 0 || ranks < 1 || f < 0 || f >= k {
		return 0, 0
	}
	// Unsigned, the padded length cannot overflow: it is less than n+ranks.
	padded := uint64(PerRank(n, ranks)) * uint64(ranks)
	end := uint64(n)
	return int(min(end, bound(padded, uint64(k), uint64(f)))), int(min(end, bound(padded, uint64(k), uint64(f)+1)))
}
