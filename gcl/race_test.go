//go:build race

package gcl_test

// groupSizes are the sizes of group that the matrix tries, few under the race detector.
var groupSizes = []int{1, 2, 3, 8}
