package topology

import "slices"

// secondOfClique returns a ring that shares no edge with first, if the members allow one.
func (t Topology) secondOfClique(first, members []int) ([]int, bool) {
	// The first ring visits a domain in runs; a group that spans domains is several runs.
	var second []int
	for rest := first; len(rest) > 0; {
		domain, n := t.Domain(members[rest[0]]), 1
		for n < len(rest) && t.Domain(members[rest[n]]) == domain {
			n++
		}
		run := rest[:n]
		rest = rest[n:]
		switch {
		case n == len(first) && n >= 5:
			for _, i := range secondCycle(n) {
				second = append(second, run[i])
			}
		case n < len(first) && n >= 4:
			for _, i := range secondPath(n) {
				second = append(second, run[i])
			}
		default:
			return slices.Clone(first), false
		}
	}
	return fromZero(second), true
}

// secondCycle returns a Hamiltonian cycle of 0..n-1, n at least 5, that has no edge of the cycle 0, 1, 2, ..., n-1: its
// steps round that cycle are of length 2 or 3, never 1.
//
// Odd n: every step is 2.
//
//	5: 0 2 4 1 3          7: 0 2 4 6 1 3 5
//
// Even n: steps of 2 would close too early, so the even ones run down to 4, from there to 1, the odd ones run up to
// n-1, from there to 2, and back to 0. The joints 4-1 and (n-1)-2 are steps of 3.
//
//	6: 0 4 1 3 5 2        8: 0 6 4 1 3 5 7 2
func secondCycle(n int) []int {
	cycle := make([]int, 0, n)
	if n%2 == 1 {
		for i := range n {
			cycle = append(cycle, 2*i%n)
		}
		return cycle
	}
	cycle = append(cycle, 0)
	for i := n - 2; i >= 4; i -= 2 {
		cycle = append(cycle, i)
	}
	for i := 1; i < n; i += 2 {
		cycle = append(cycle, i)
	}
	return append(cycle, 2)
}

// secondPath returns a Hamiltonian path of 0..n-1, n at least 4, that has no edge of the path 0, 1, 2, ..., n-1, and
// does not begin where that begins: the odd ones up, then the even ones up. A step is 2, or at the joint at least 3.
//
//	4: 1 3 0 2            7: 1 3 5 0 2 4 6
func secondPath(n int) []int {
	path := make([]int, 0, n)
	for start := 1; start >= 0; start-- {
		for i := start; i < n; i += 2 {
			path = append(path, i)
		}
	}
	return path
}
