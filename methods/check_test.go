package methods

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
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

// constants are the methods that are constants and make schedules. TestGallery has the others.
func constants() []Method { return slices.DeleteFunc(All(), Method.Own) }

// specs calls do with every specification for a group of k ranks.
func specs(k int, do func(name string, s Spec)) {
	ring, second := rings(k)
	for _, m := range constants() {
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
				if want := repeats(s); report.Waste.Unused != 0 || report.Waste.Repeated != want {
					t.Errorf("%s: waste: %v; want %d chunks sent again", name, report.Waste, want)
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

// repeats is how many chunks a schedule sends to a rank that has them. Of the constants one does: by recursive_doubling
// an extra rank gets the result of an all-gather in one message, its own chunk in the middle of it. Two would cost
// more. TestGallery has the like of halving_doubling.
func repeats(s Spec) int {
	if s.Method == RecursiveDoubling && s.Collective == schedule.AllGather {
		return s.fold().extra
	}
	return 0
}

// TestNoMethodBeatsTheBounds holds the least that a Report names against what the methods do. Each number is that of a
// method, but for barriers, which are made for few rounds.
func TestNoMethodBeatsTheBounds(t *testing.T) {
	for _, k := range []int{1, 2, 3, 4, 5, 8, 9} {
		reached := map[string]bool{}
		specs(k, func(name string, s Spec) {
			built, err := Build(s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r, err := schedule.Examine(built)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			sent, received := slices.Max(r.Sent), slices.Max(r.Received)
			if r.Rounds < r.Least.Rounds || sent < r.Least.Sent || received < r.Least.Received {
				t.Errorf("%s: %d rounds, %d chunks sent and %d received by a rank: less than the least, %+v",
					name, r.Rounds, sent, received, r.Least)
			}
			note := func(what string, is bool) {
				what = fmt.Sprint(what, " ", s.Collective)
				reached[what] = reached[what] || is || s.Collective == schedule.Barrier
			}
			note("rounds of", r.Rounds == r.Least.Rounds)
			note("chunks sent in", sent == r.Least.Sent)
			note("chunks received in", received == r.Least.Received)
		})
		for what, is := range reached {
			if !is && k > 1 {
				t.Errorf("the least %s over %d ranks is that of no method", what, k)
			}
		}
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
		for _, m := range constants() {
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

// TestLargeGroupsAreProved proves all-reduces of more ranks than the other tests, without the schedule in memory.
func TestLargeGroupsAreProved(t *testing.T) {
	sizes := map[Method]int{ClockwiseRing: 192, BidirectionalRingPair: 130, RecursiveDoubling: 4096, Direct: 96}
	if everything() {
		sizes = map[Method]int{ClockwiseRing: 1024, BidirectionalRingPair: 512, RecursiveDoubling: 1 << 16, Direct: 256}
	}
	for m, n := range sizes {
		ring, _ := rings(n)
		r, err := Examine(Spec{Method: m, Collective: schedule.AllReduce, Size: n, Ring: ring})
		if err != nil {
			t.Errorf("%v over %d: %v", m, n, err)
			continue
		}
		if !r.OneOrder || !r.Waste.None() || len(r.Sent) != n {
			t.Errorf("%v over %d: not in one order, or not without waste:\n%v", m, n, r)
		}
		if sent := slices.Max(r.Sent); m != RecursiveDoubling && sent != r.Least.Sent {
			t.Errorf("%v over %d: a rank sends %d chunks, want the least, %d", m, n, sent, r.Least.Sent)
		}
		if m == RecursiveDoubling && r.Rounds != r.Least.Rounds {
			t.Errorf("%v over %d: %d rounds, want the least, %d", m, n, r.Rounds, r.Least.Rounds)
		}
	}
}

// TestExamineIsThatOfBuild examines schedules by rank and in memory.
func TestExamineIsThatOfBuild(t *testing.T) {
	specs(5, func(name string, s Spec) {
		built, err := Build(s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := schedule.Examine(built)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := Examine(s); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, error %v, want %+v", name, got, err, want)
		}
	})
	if _, err := Examine(Spec{Method: Auto}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("of auto: error %v, want one that is ErrUnsupported", err)
	}
}
