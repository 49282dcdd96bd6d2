//go:build !race

package main

import "testing"

var (
	accuracyReplicas = []int{1, 4, 8}       // trained to the end
	verifyReplicas   = []int{1, 2, 3, 4, 8} // of which every step is verified
	resumeReplicas   = []int{1, 3, 4}       // stopped and resumed
)

// onNumbers skips a test of which numbers come out, where that takes too long.
func onNumbers(*testing.T) {}
