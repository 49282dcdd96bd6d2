//go:build race

package main

import "testing"

// waysFlags are the ways that are compared: other buckets are gathered by the same code.
var waysFlags = []string{"-overlap"}

// onNumbers skips a test of which numbers come out: TestWays and TestInterrupt have the same goroutines for the race
// detector to see.
func onNumbers(t *testing.T) {
	t.Skip("the race detector changes no numbers, and takes twenty times as long")
}
