//go:build !race

package methods

import (
	"flag"
	"slices"
	"testing"
)

var full = flag.Bool("full", false, "prove the schedules of all groups of up to 64 ranks, read their drawings, "+
	"reject the mutants of groups of 6, and compare the traffic of every rank")

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

// drawnSizes are the group sizes whose drawings are read: up to 17, and 64.
func drawnSizes() []int {
	return slices.DeleteFunc(sizes(), func(k int) bool { return k > 17 && k != 64 && !*full })
}

// trafficSizes are the group sizes whose traffic is compared with schedules.
func trafficSizes() []int {
	if testing.Short() {
		return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 63, 64, 100}
	}
	return slices.DeleteFunc(inOrder(257)[1:], func(k int) bool {
		return k > 33 && k != 48 && k != 63 && k != 64 && k != 65 && k != 100 && k < 256 && !*full
	})
}
