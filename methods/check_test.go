package methods

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"gogcl.dev/methods/schedule"
)

// rings returns a ring order and a second one that differ from each other and from rank order, so that a generator
// which confuses ranks with places is found out.
func rings(k int) (ring, second []int) {
	ring, second = make([]int, k), make([]int, k)
	for i := range k {
		ring[i] = k - 1 - i
		if i%2 == 0 {
			ring[i] = i
		}
		if k%2 == 0 { // swapping needs both sides of a pair to have the same parity
			ring[i] = i ^ 1
		}
		second[i] = (k - i + k/2) % k
	}
	return ring, second
}

// specs calls do with every specification for a group of k ranks.
func specs(k int, do func(name string, s Spec)) {
	ring, second := rings(k)
	for _, m := range All() {
		for _, c := range append(schedule.Collectives(), schedule.Barrier) {
			roots := 1
			contract := c.Contract()
			if contract.Rooted() {
				roots = k
			}
			for root := range roots {
				if k > 16 && root != 0 && root != 1 && root != k/2 && root != k-1 {
					continue
				}
				for _, rankOrder := range []bool{false, true} {
					for _, inPlace := range []bool{false, true} {
						for _, pieces := range []int{0, 3, 8} {
							s := Spec{Method: m, Collective: c, Size: k, Root: root, Ring: ring, Second: second,
								Pieces: pieces, InPlace: inPlace, RankOrder: rankOrder}
							if rankOrder && (!contract.Combines || contract.Again) ||
								inPlace && contract.Output != schedule.Blocks ||
								pieces > 0 && s.Pipelined(1<<40, 1).Pieces == 0 ||
								k > 16 && pieces == 3 ||
								// the one in place is proved apart as well
								k > 16 && contract.Output == schedule.Blocks && inPlace != (k%2 == 0) ||
								// TestOneChain: the others are the same
								k > 16 && rankOrder && m != SendToAll && m != Direct && m != ClockwiseRing {
								continue
							}
							do(fmt.Sprintf("method=%v/collective=%v/n=%d/root=%d/pieces=%d/inPlace=%v/rankOrder=%v",
								m, c, k, root, pieces, inPlace, rankOrder), s)
						}
					}
				}
			}
		}
	}
}

// TestEveryScheduleIsProved proves the schedules of sizes. A schedule that several specifications give is proved once.
func TestEveryScheduleIsProved(t *testing.T) {
	t.Parallel()
	for _, k := range slices.Backward(sizes()) { // the largest take longest, so they begin
		t.Run(fmt.Sprintf("n=%d", k), func(t *testing.T) {
			t.Parallel()
			proved := map[uint64]schedule.Report{}
			checked := 0
			specs(k, func(name string, s Spec) {
				built, err := Build(s)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				print := fingerprint(built)
				report, known := proved[print]
				if !known {
					if report, err = schedule.Examine(built); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					proved[print] = report
				}
				if s.RankOrder && !report.RankOrder {
					t.Errorf("%s: does not fold in rank order", name)
				}
				if !report.OneOrder && !s.Collective.Contract().Again { // of a barrier there are no bits
					t.Errorf("%s: replicas combine an element in different orders", name)
				}
				checked++
			})
			t.Logf("%d specifications, %d schedules", checked, len(proved))
		})
	}
}

// TestProgramsHaveAsManyRounds: ranks that step together make as many steps, whether they have something to do or not.
func TestProgramsHaveAsManyRounds(t *testing.T) {
	for _, k := range []int{2, 3, 4, 5, 8} {
		specs(k, func(name string, s Spec) {
			built, err := Build(s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for rank, p := range built.Programs {
				if alone, err := s.Program(rank); err != nil || len(p) != len(built.Programs[0]) ||
					len(alone) != len(p) {
					t.Errorf("%s: rank %d has %d rounds, made alone %d, rank 0 has %d (error %v)",
						name, rank, len(p), len(alone), len(built.Programs[0]), err)
				}
			}
		})
	}
}

// TestBarrierRounds: how many rounds a barrier takes, and that no method tells more than it must in them.
func TestBarrierRounds(t *testing.T) {
	for k := 1; k <= 17; k++ {
		ring, second := rings(k)
		for _, m := range All() {
			built, err := Build(Spec{Method: m, Collective: schedule.Barrier, Size: k, Ring: ring, Second: second,
				RankOrder: k%2 == 0})
			if err != nil {
				t.Fatal(err)
			}
			report, err := schedule.Examine(built)
			if err != nil {
				t.Fatalf("%v over %d: %v", m, k, err)
			}
			want := map[Method]int{SendToAll: 1, Direct: 1, MeetInMiddleRing: k / 2,
				RecursiveDoubling: bits.Len(uint(k - 1))}
			rounds, known := want[m]
			if !known {
				rounds = k - 1
			}
			if k > 1 && report.Rounds != rounds {
				t.Errorf("%v over %d: %d rounds, want %d", m, k, report.Rounds, rounds)
			}
			if sent := (k - 1) * built.Chunks; slices.Max(report.Sent) > sent {
				t.Errorf("%v over %d: a rank sends %d chunks, want %d at most", m, k, slices.Max(report.Sent), sent)
			}
		}
	}
}
