package rounds

import (
	"strings"
	"testing"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// ringSet is the set of plans of an all-reduce round a ring of k ranks, without any plan.
func ringSet(k int) *Set {
	ring := make([]int, k)
	for i := range ring {
		ring[i] = i
	}
	spec := methods.Spec{Method: methods.ClockwiseRing, Collective: schedule.AllReduce, Size: k, Ring: ring}
	return NewSet(Programs{Spec: spec}, ring)
}

// TestSteppedNeedsItsSendersOnly: to carry out a schedule on peer memory, a rank makes its own plan and those of the
// ranks that it receives from: in a ring one.
func TestSteppedNeedsItsSendersOnly(t *testing.T) {
	const k, rank = 64, 9
	set := ringSet(k)
	if _, err := NewMemoryPlan(&Runner{}, set, rank); err != nil {
		t.Fatal(err)
	}
	for r := range set.ranks {
		if made, want := set.ranks[r].plan != nil, r == rank || r == rank-1; made != want {
			t.Errorf("the plan of rank %d is made: %v, want %v", r, made, want)
		}
	}
}

// TestSteppedRefusesUnequalPrograms: ranks that step together make as many steps.
func TestSteppedRefusesUnequalPrograms(t *testing.T) {
	set := ringSet(4)
	sender, err := set.rank(0)
	if err != nil {
		t.Fatal(err)
	}
	sender.plan.rounds = sender.plan.rounds[:len(sender.plan.rounds)-1]
	if _, err := NewMemoryPlan(&Runner{}, set, 1); err == nil ||
		!strings.Contains(err.Error(), "rank 0 has 5 rounds and rank 1 has 6") {
		t.Errorf("error %v, want one that names both numbers", err)
	}
}
