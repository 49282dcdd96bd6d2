//go:build race

package schedule_test

// editedCases is how many schedules are edited at random; nothing here is concurrent, so the race detector needs few.
func editedCases() int { return 6_000 }

// largeCases is how many schedules of more than 64 ranks are checked by sums and by sets.
func largeCases() int { return 60 }

// allocations is how many times as much the race detector has a slice allocate that grows by another one.
const allocations = 3
