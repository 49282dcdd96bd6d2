//go:build race

package main

// A few steps are enough for the race detector, which makes them slow.
const (
	learnSteps = 5
	learnLoss  = 5
	learnSize  = small
)

var learnText = fewPages
