//go:build !race

package slice_test

// raceDetectorOn: with it there are allocations of its own.
const raceDetectorOn = false
