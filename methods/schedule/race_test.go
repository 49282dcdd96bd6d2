//go:build race

package schedule_test

// editedCases is how many schedules are edited at random; nothing here is concurrent, so the race detector needs few.
const editedCases = 6_000

// allocations is how many times as much the race detector has a slice allocate that grows by another one.
const allocations = 3
