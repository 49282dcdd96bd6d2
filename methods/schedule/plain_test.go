//go:build !race

package schedule_test

import "flag"

var full = flag.Bool("full", false, "edit three times as many schedules")

// editedCases is how many schedules are edited at random.
func editedCases() int {
	if *full {
		return 60_000
	}
	return 20_000
}

// largeCases is how many schedules of more than 64 ranks are checked by sums and by sets.
func largeCases() int {
	if *full {
		return 300
	}
	return 100
}

// allocations is how many times as much a slice allocates that grows by another one.
const allocations = 1
