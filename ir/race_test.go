//go:build race

package ir_test

// raceDetector says that the test runs under the race detector, which allocates.
const raceDetector = true
