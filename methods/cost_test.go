package methods

import (
	"math/bits"
	"testing"

	"gogcl.dev/methods/schedule"
)

// want is a cost as the documentation states it: rounds, and what all ranks together send, in pieces of n/k.
type want struct {
	rounds int
	pieces int
}

// formula is the cost of a method over k ranks, as SEMANTICS states it.
func formula(m Method, c schedule.Collective, k, m_ int) want {
	if m == RecursiveDoubling {
		return doublingFormula(c, k)
	}
	half := map[Method]int{SendToAll: 1, Direct: 1, ClockwiseRing: k - 1, AnticlockwiseRing: k - 1,
		BidirectionalRingPair: k - 1, MeetInMiddleRing: k / 2, QuadDirectionalRing: k - 1}[m]
	switch c {
	case schedule.AllReduce:
		if m == SendToAll {
			return want{1, k * k * (k - 1)}
		}
		return want{2 * half, k * 2 * (k - 1)}
	case schedule.AllToAll: // a piece is a block
		switch m {
		case SendToAll, Direct:
			return want{1, k * (k - 1)}
		case MeetInMiddleRing:
			far, near := k/2, k-1-k/2
			return want{k / 2, k * (far*(far+1)/2 + near*(near+1)/2)}
		}
		return want{k - 1, k * (k * (k - 1) / 2)}
	case schedule.Broadcast:
		switch m {
		case SendToAll:
			return want{1, k * (k - 1)}
		case Direct: // k-1 pieces dealt out; then k-1 pieces to k-2 ranks each, and the root's own to k-1
			return want{2, (k - 1) + (k-1)*(k-2) + (k - 1)}
		}
		return want{half + m_ - 1, k * (k - 1)}
	case schedule.Reduce:
		switch m {
		case SendToAll:
			return want{1, k * (k - 1)}
		case Direct: // as a reduce-scatter; then the owners' pieces
			return want{2, k*(k-1) + (k - 1)}
		}
		return want{half + m_ - 1, k * (k - 1)}
	case schedule.Gather, schedule.Scatter: // a part for each place that it travels
		switch m {
		case SendToAll, Direct:
			return want{1, k - 1}
		case MeetInMiddleRing:
			far, near := k/2, k-1-k/2
			return want{k / 2, far*(far+1)/2 + near*(near+1)/2}
		}
		return want{k - 1, k * (k - 1) / 2}
	}
	return want{half, k * (k - 1)}
}

// doublingFormula is that of recursive_doubling, where k-p ranks are left out of the rounds in the middle.
func doublingFormula(c schedule.Collective, k int) want {
	p, log := 1, 0
	for 2*p <= k {
		p, log = 2*p, log+1
	}
	extra, up := k-p, log
	if extra > 0 {
		up = log + 1
	}
	rounds := log
	if extra > 0 {
		rounds += 2
	}
	switch c {
	case schedule.AllReduce:
		return want{rounds, p*log*k + 2*extra*k}
	case schedule.AllToAll: // one round that only packs
		blocks := 0
		for i := range k {
			for d := i; d > 0; d /= 2 {
				blocks += d % 2
			}
		}
		return want{1 + up, k * blocks}
	case schedule.Broadcast, schedule.Reduce:
		return want{up, k * (k - 1)}
	case schedule.Gather, schedule.Scatter: // a part goes up or down as many edges as its rank has binary digits set
		edges := 0
		for i := range k {
			edges += bits.OnesCount(uint(i))
		}
		return want{up, edges}
	}
	return want{rounds, k*(p-1) + extra*k + extra}
}

func TestCostsAreTheFormulas(t *testing.T) {
	t.Parallel()
	for _, k := range sizes()[1:] {
		ring, second := rings(k)
		for _, m := range constants() {
			for _, c := range schedule.Collectives() {
				const pieces = 5
				s, err := Build(Spec{Method: m, Collective: c, Size: k, Ring: ring, Second: second, Pieces: pieces})
				if err != nil {
					t.Fatal(err)
				}
				total, rounds, first := 0, 0, 0
				for rank, p := range s.Programs {
					rounds = max(rounds, len(p))
					sent := 0
					for _, r := range p {
						for _, st := range r.Moves {
							if st.Verb == schedule.Send {
								sent += st.Src.Count
							}
						}
					}
					if rank == 0 {
						first = sent
					}
					total += sent
					if !c.Contract().Rooted() && m != RecursiveDoubling && sent != first {
						t.Errorf("%v %v over %d: rank %d sends %d chunks, rank 0 %d", m, c, k, rank, sent, first)
					}
				}
				// A chunk is k/Chunks pieces.
				if w := formula(m, c, k, pieces); rounds != w.rounds || total*k != w.pieces*s.Chunks {
					t.Errorf("%v %v over %d: %d rounds, %d chunks of %d sent; want %d rounds, %d pieces of n/%d",
						m, c, k, rounds, total, s.Chunks, w.rounds, w.pieces, k)
				}
			}
		}
	}
}

func TestFragments(t *testing.T) {
	t.Parallel()
	const k = 6
	ring, second := rings(k)
	for m, perRank := range map[Method]int{ClockwiseRing: 1, AnticlockwiseRing: 1, BidirectionalRingPair: 2,
		MeetInMiddleRing: 1, QuadDirectionalRing: 4, Direct: 1} {
		for _, c := range []schedule.Collective{schedule.AllReduce, schedule.ReduceScatter, schedule.AllGather,
			schedule.AllToAll} {
			s := Spec{Method: m, Collective: c, Size: k, Ring: ring, Second: second}
			if got := s.Chunks(); got != k*perRank {
				t.Errorf("%v %v: %d chunks, want %d", m, c, got, k*perRank)
			}
		}
	}
	if got := (Spec{Method: SendToAll, Size: k}).Chunks(); got != 1 {
		t.Errorf("broadcast all-reduce: %d chunks, want 1", got)
	}
}

func TestMeetInMiddleEndsInOneDirectionForEvenSizes(t *testing.T) {
	t.Parallel()
	for k := 2; k <= 9; k++ {
		ring := inOrder(k)
		s, err := Build(Spec{Method: MeetInMiddleRing, Collective: schedule.ReduceScatter, Size: k, Ring: ring})
		if err != nil {
			t.Fatal(err)
		}
		p := s.Programs[0]
		sends := 0
		for _, st := range p[len(p)-1].Moves {
			if st.Verb == schedule.Send {
				sends++
			}
		}
		if want := 1 + k%2; sends != want {
			t.Errorf("n=%d: %d messages in the last round, want %d", k, sends, want)
		}
	}
}
