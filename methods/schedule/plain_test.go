//go:build !race

package schedule_test

// editedCases is how many schedules are edited at random.
const editedCases = 60_000

// allocations is how many times as much a slice allocates that grows by another one.
const allocations = 1
