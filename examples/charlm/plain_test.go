//go:build !race

package main

// What TestLearns trains for, and what the model loses then: less than the entropy given the character before.
const (
	learnSteps = 500
	learnLoss  = 2.39
	learnSize  = ""
)

var learnText = loadText
