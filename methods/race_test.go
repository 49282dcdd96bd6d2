//go:build race

package methods

// sizes are the group sizes whose schedules are proved; nothing here is concurrent, so the race detector needs no more.
func sizes() []int { return []int{1, 2, 3, 4, 5, 6, 7, 8, 9} }

// largestMutated is the largest group whose schedules are mutated.
func largestMutated() int { return 4 }

// everything reports whether tests take the time that -full allows.
func everything() bool { return false }
