//go:build !race

package methods

import (
	"flag"
	"testing"
)

var full = flag.Bool("full", false, "prove the schedules of all groups of up to 64 ranks, and reject the mutants of "+
	"groups of 6")

// sizes are the group sizes whose schedules are proved. All up to 33, the first above a power of two that is not small,
// are among them. Beyond 33 they are a multiple of 4 and a prime, and the neighbours of 48 and 64.
func sizes() []int {
	var out []int
	for k := 1; k <= 64; k++ {
		between := k > 33 && k != 36 && k != 37 && (k < 47 || k > 49) && k < 62
		if testing.Short() && k > 12 || between && !*full {
			continue
		}
		out = append(out, k)
	}
	return out
}

// largestMutated is the largest group whose schedules are mutated.
func largestMutated() int {
	if *full {
		return 6
	}
	return 5
}

// everything reports whether tests take the time that -full allows.
func everything() bool { return *full }
