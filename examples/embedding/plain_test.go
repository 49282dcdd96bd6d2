//go:build !race

package main

import "testing"

// verifyReplicas are numbers that share the words of the book evenly, and that do not.
var verifyReplicas = []int{1, 2, 3, 5, 8}

const (
	verifyEpochs = 2
	pagesBytes   = 40_000 // of the part of the book that most tests have
)

// onNumbers skips a test of which numbers come out, where that takes too long.
func onNumbers(*testing.T) {}
