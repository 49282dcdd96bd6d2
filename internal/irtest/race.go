//go:build race

package irtest

// Race says that the test runs under the race detector, which allocates.
const Race = true
