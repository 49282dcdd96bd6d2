//go:build race

package gcl_test

// underRace says that the race detector is at work, which makes everything some ten times as slow.
const underRace = true

// groupSizes are the sizes of group that the matrix tries, few under the race detector.
func groupSizes() []int { return []int{1, 2, 3, 8} }

// manyGroups are the sizes of group that the matrix of several tensors tries.
func manyGroups() []int { return []int{1, 2, 3, 5} }

// groupedReplicas are the numbers of replicas that the test of groups divides.
var groupedReplicas = []int{8}
