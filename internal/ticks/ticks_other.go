//go:build !amd64 || noasm

package ticks

// Now returns the number of ticks since some moment.
func Now() int64 { return sinceStart() }
