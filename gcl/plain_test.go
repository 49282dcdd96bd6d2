//go:build !race

package gcl_test

// groupSizes are the sizes of group that the matrix tries.
var groupSizes = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 32}
