//go:build !race

package ir_test

const raceDetectorOn = false
