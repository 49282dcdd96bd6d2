//go:build race

package main

// A few steps are enough for the race detector, which makes them slow: the model then knows that some characters are
// frequent.
const (
	learnSteps = 20
	learnLoss  = 3.5
)
