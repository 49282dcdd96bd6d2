//go:build !race

package schedule_test

// editedCases is how many schedules are edited at random.
const editedCases = 60_000
