//go:build race

package main

import "testing"

// Under the race detector training takes ten times as long, and other numbers of replicas run the same code.
var (
	accuracyReplicas = []int{}  // trained to the end
	verifyReplicas   = []int{3} // of which every step is verified
	resumeReplicas   = []int{3} // stopped and resumed
)

// onNumbers skips a test of which numbers come out: TestVerify and TestResume have the same goroutines for the race detector
// to see.
func onNumbers(t *testing.T) {
	t.Skip("the race detector changes no numbers, and takes ten times as long")
}
