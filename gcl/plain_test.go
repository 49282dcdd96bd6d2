//go:build !race

package gcl_test

import "testing"

// underRace says that the race detector is at work, which makes everything some ten times as slow.
const underRace = false

// groupSizes are the sizes of group that the matrix tries.
func groupSizes() []int {
	if testing.Short() {
		return []int{1, 2, 3, 5, 8}
	}
	return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 32}
}

// manyGroups are the sizes of group that the matrix of several tensors tries.
func manyGroups() []int {
	if testing.Short() {
		return []int{1, 2, 3, 8}
	}
	return []int{1, 2, 3, 4, 5, 6, 7, 8}
}

// groupedReplicas are the numbers of replicas that the test of groups divides.
var groupedReplicas = []int{8, 12, 16}
