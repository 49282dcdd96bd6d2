//go:build race

package main

import "testing"

// Under the race detector a step takes twenty times as long, and other numbers of replicas run the same code.
var verifyReplicas = []int{3}

const (
	verifyEpochs = 1
	pagesBytes   = 15_000
)

// onNumbers skips a test of which numbers come out: TestVerify and TestInterrupt have the same goroutines for the race
// detector to see.
func onNumbers(t *testing.T) {
	t.Skip("the race detector changes no numbers, and takes twenty times as long")
}
