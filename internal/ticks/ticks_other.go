//go:build !amd64 || noasm

package ticks

// invariant reports that no counter can be read.
func invariant() bool { return false }

// Now returns the number of ticks since some moment.
func Now() int64 { return sinceStart() }
