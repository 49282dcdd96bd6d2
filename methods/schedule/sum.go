package schedule

import "math/bits"

// sum stands for a set of ranks whose contributions a value holds: the sum of a 128-bit number of each, modulo 2^128.
//
// Two sets are taken for equal if their sums are and they are of as many contributions, counted exactly (term.count). A
// sum, and not an exclusive or, shows a contribution that counts twice. Suppose that a result should hold each of n
// contributions once, and holds contribution r d(r)+1 times, where some d(r) is not 0. All counts together are n, so
// each d(r) is between -1 and n. Its greatest factor that is a power of two is at most n. If the numbers x(r) were
// drawn at random, the sum of all d(r)*x(r) would be 0 modulo 2^128 with probability n/2^128 at most: whatever the
// other terms are, d(r)*x(r) takes each of its 2^128/n values or more equally often. For 65,536 ranks that is 2^-112. A
// check compares at most maxState results, which is 2^30, twice: the probability that it accepts a wrong schedule of up
// to 65,536 ranks is 2^-81 at most. Where nothing is combined, contributions are compared one by one, and there is no
// doubt.
//
// The numbers are not drawn: package methods has no randomness. They are those of SplitMix64, which look random to
// whatever does not compute them. A schedule can go wrong unseen only if it was made against these numbers.
type sum struct{ hi, lo uint64 }

// plus is the sum of disjoint sets.
func (a sum) plus(b sum) sum {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return sum{hi, lo}
}

// sumOf stands for the set of one rank.
func sumOf(rank int) sum {
	state := 2 * uint64(rank) * splitMixStep
	return sum{splitMix(state), splitMix(state + splitMixStep)}
}

// sumOfAll stands for the set of all ranks below size.
func sumOfAll(size int) sum {
	var all sum
	for rank := range size {
		all = all.plus(sumOf(rank))
	}
	return all
}

// splitMixStep is what the state of SplitMix64 grows by from one number to the next.
const splitMixStep = 0x9e3779b97f4a7c15

// splitMix is the number that SplitMix64 makes of a state (Steele, Lea and Flood, "Fast splittable pseudorandom number
// generators", 2014).
func splitMix(state uint64) uint64 {
	z := state + splitMixStep
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
