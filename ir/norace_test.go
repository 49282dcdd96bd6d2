//go:build !race

package ir_test

const raceDetector = false
