package methods

import (
	"slices"
	"testing"

	"gogcl.dev/methods/schedule"
)

// twoRings are two rings over k ranks, 5 or more, without a common edge: in rank order, and by the rule of
// docs/design/rings.md.
func twoRings(k int) (ring, second []int) {
	ring = inOrder(k)
	if k%2 == 1 {
		for i := range k {
			second = append(second, 2*i%k)
		}
		return ring, second
	}
	second = []int{0}
	for i := k - 2; i >= 4; i -= 2 {
		second = append(second, i)
	}
	for i := 1; i < k; i += 2 {
		second = append(second, i)
	}
	return ring, append(second, 2)
}

// TestDirections: how much a rank sends to the next and to the one before on each ring, in chunks. Of fragments of
// which there are k a ring method sends k-1, of 2k and 4k as many in each direction that it uses.
func TestDirections(t *testing.T) {
	t.Parallel()
	for k := 5; k <= 10; k++ {
		ring, second := twoRings(k)
		half := k / 2
		for m, want := range map[Method][4]int{
			ClockwiseRing:         {k - 1},
			AnticlockwiseRing:     {0, k - 1},
			BidirectionalRingPair: {k - 1, k - 1},
			MeetInMiddleRing:      {half, k - 1 - half},
			QuadDirectionalRing:   {k - 1, k - 1, k - 1, k - 1},
		} {
			for _, c := range []schedule.Collective{schedule.ReduceScatter, schedule.AllGather} {
				s, err := Build(Spec{Method: m, Collective: c, Size: k, Ring: ring, Second: second})
				if err != nil {
					t.Fatal(err)
				}
				for rank, p := range s.Programs {
					at, at2 := slices.Index(ring, rank), slices.Index(second, rank)
					peers := [4]int{ring[(at+1)%k], ring[(at+k-1)%k], second[(at2+1)%k], second[(at2+k-1)%k]}
					var sent [4]int
					for _, r := range p {
						for _, st := range r.Moves {
							if st.Verb != schedule.Send {
								continue
							}
							way := slices.Index(peers[:], st.Peer)
							if way < 0 {
								t.Fatalf("%v %v over %d: rank %d sends to %d, no neighbour: %v",
									m, c, k, rank, st.Peer, peers)
							}
							sent[way] += st.Src.Count
						}
					}
					if sent != want {
						t.Errorf("%v %v over %d: rank %d sends %v chunks to %v, want %v",
							m, c, k, rank, sent, peers, want)
					}
				}
			}
		}
	}
}

// TestStraightFoldsInRankOrder: broadcast and direct do so whether they are asked to or not.
func TestStraightFoldsInRankOrder(t *testing.T) {
	t.Parallel()
	for k := 2; k <= 9; k++ {
		for _, m := range []Method{SendToAll, Direct} {
			for _, c := range []schedule.Collective{schedule.AllReduce, schedule.ReduceScatter} {
				s, err := Build(Spec{Method: m, Collective: c, Size: k})
				if err != nil {
					t.Fatal(err)
				}
				if report, err := schedule.Examine(s); err != nil || !report.RankOrder {
					t.Errorf("%v %v over %d: in rank order: %v, %v", m, c, k, report.RankOrder, err)
				}
			}
		}
	}
}
