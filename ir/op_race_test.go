//go:build race

package ir_test

// raceDetectorOn says that the test runs under the race detector, which allocates.
const raceDetectorOn = true
