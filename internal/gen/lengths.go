package main

import "math/rand/v2"

// randomLen draws a number of elements: few, as a rule.
func randomLen(r *rand.Rand) int {
	switch x := r.IntN(100); {
	case x < 8:
		return 0
	case x < 20:
		return 1 + r.IntN(3)
	case x < 70:
		return 1 + r.IntN(40)
	case x < 92:
		return 1 + r.IntN(700)
	case x < 99:
		return 1 + r.IntN(5000)
	}
	return 1 + r.IntN(40000)
}

// randomCounts draws the rows of each rank: some n in all.
func randomCounts(r *rand.Rand, g, n int) []int {
	out := make([]int, g)
	switch r.IntN(8) {
	case 0: // all zero
		return out
	case 1: // one has all
		out[r.IntN(g)] = n
		return out
	case 2: // equal
		for i := range out {
			out[i] = n / g
		}
		return out
	}
	for i := range out {
		if r.IntN(4) > 0 {
			out[i] = r.IntN(2*n/g + 2)
		}
	}
	return out
}
