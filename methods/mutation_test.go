package methods

import (
	"testing"

	"gogcl.dev/methods/internal/spoil"
	"gogcl.dev/methods/schedule"
)

// TestMutantsAreRejected: a schedule that differs from a right one in one step is refused, or wastes more. Groups are
// small: a mutant of a larger group goes wrong in the ways of a small one.
func TestMutantsAreRejected(t *testing.T) {
	t.Parallel()
	for k := largestMutated(); k >= 1; k-- {
		seen := map[uint64]bool{}
		specs(k, func(name string, s Spec) {
			if s.Pieces > 3 || s.Collective.Contract().Again { // what may count again need not count everywhere
				return
			}
			built, err := Build(s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if print := fingerprint(built); seen[print] {
				return
			} else {
				seen[print] = true
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				whole, err := schedule.Examine(built)
				if err != nil {
					t.Fatal(err)
				}
				tried := map[string]int{}
				spoil.Each(built, func(what string, rank, round int, mutant *schedule.Schedule) {
					tried[what]++
					if spoil.Finds(mutant, whole.Waste) == nil {
						t.Errorf("accepted with a %s at rank %d round %d:\n%v", what, rank, round, mutant)
					}
				})
				if k > 1 && len(tried) == 0 {
					t.Error("no mutant was tried")
				}
				t.Logf("mutants tried: %v", tried)
			})
		})
	}
}
