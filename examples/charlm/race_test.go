//go:build race

package main

import "testing"

// onNumbers skips a test of which numbers come out: TestWays and TestInterrupt have the same goroutines for the race
// detector to see.
func onNumbers(t *testing.T) {
	t.Skip("the race detector changes no numbers, and takes twenty times as long")
}
