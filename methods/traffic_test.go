package methods

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/methods/schedule"
)

// ranksCompared are the ranks whose programs are compared with a traffic: all of 64, and some of more.
func ranksCompared(k int) []int {
	if k <= 64 || everything() {
		return inOrder(k)
	}
	return []int{0, 1, k / 3, k / 2, k - 2, k - 1}
}

// TestTrafficIsTheSchedule: the messages are those of the steps, in their order, round by round.
func TestTrafficIsTheSchedule(t *testing.T) {
	t.Parallel()
	for m := range traffics {
		for c := range traffics[m] {
			if traffics[m][c] == nil {
				continue
			}
			m, c := Method(m), schedule.Collective(c)
			t.Run(fmt.Sprintf("method=%v/collective=%v", m, c), func(t *testing.T) {
				t.Parallel()
				for _, k := range trafficSizes() {
					ring, second := rings(k)
					s := Spec{Method: m, Collective: c, Size: k, Ring: ring, Second: second}
					roots := []int{0}
					if c.Contract().Rooted() {
						roots, s.Pieces = []int{0, k / 3, k - 1}, k%5
					}
					for _, s.Root = range roots {
						compareTraffic(t, s)
					}
				}
			})
		}
	}
}

func compareTraffic(t *testing.T, s Spec) {
	t.Helper()
	traffic, err := s.Traffic()
	if err == nil {
		err = traffic.Check()
	}
	if err != nil {
		t.Fatalf("n=%d root=%d: %v", s.Size, s.Root, err)
	}
	if got, want := traffic.Chunks, s.Chunks(); got != want {
		t.Errorf("n=%d: %d chunks, want %d", s.Size, got, want)
	}
	// By rank: its sends and what it folds, of one after the other of the rounds that are alike.
	type rounds struct{ first, times int }
	var spans []rounds
	var sends [][][]schedule.Message
	var folds [][]int
	total := 0
	for i, alike := range traffic.Rounds {
		messages, err := traffic.Messages(nil, i)
		if err != nil {
			t.Fatalf("n=%d: %v", s.Size, err)
		}
		byRank, folded := make([][]schedule.Message, s.Size), make([]int, s.Size)
		for _, m := range messages {
			byRank[m.From] = append(byRank[m.From], m)
			if m.Fold {
				folded[m.To] += m.Chunks
			}
		}
		sends, folds = append(sends, byRank), append(folds, folded)
		spans = append(spans, rounds{total, alike.Times})
		total += alike.Times
	}
	longest := 0
	for _, rank := range ranksCompared(s.Size) {
		program, err := s.Program(rank)
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, len(program))
		for i, span := range spans {
			for round := span.first; round < span.first+span.times; round++ {
				var moves []schedule.Step
				if round < len(program) {
					moves = program[round].Moves
				}
				n, folded := 0, 0
				for _, st := range moves {
					switch st.Verb {
					case schedule.RecvReduce:
						folded += st.Dst.Count
					case schedule.Send:
						if n == len(sends[i][rank]) {
							t.Fatalf("n=%d root=%d rank %d round %d: a message to %d that the traffic does not have",
								s.Size, s.Root, rank, round, st.Peer)
						}
						if m := sends[i][rank][n]; m.To != st.Peer || m.Chunks != st.Src.Count {
							t.Fatalf("n=%d root=%d rank %d round %d: %+v, want %d chunks to %d",
								s.Size, s.Root, rank, round, m, st.Src.Count, st.Peer)
						}
						n++
					}
				}
				if n != len(sends[i][rank]) || folded != folds[i][rank] {
					t.Fatalf("n=%d root=%d rank %d round %d: %d messages and %d chunks folded, want %d and %d",
						s.Size, s.Root, rank, round, len(sends[i][rank]), folds[i][rank], n, folded)
				}
			}
		}
	}
	if total != longest {
		t.Errorf("n=%d root=%d: %d rounds, want %d", s.Size, s.Root, total, longest)
	}
}

func TestTrafficErrors(t *testing.T) {
	t.Parallel()
	ring := inOrder(4)
	for _, tt := range []struct {
		spec        Spec
		unsupported bool
		want        string
	}{
		{Spec{Method: Direct, Size: 4}, true, "no traffic describes all-reduce of direct"},
		{Spec{Method: ClockwiseRing, Collective: schedule.AllToAll, Size: 4, Ring: ring}, true, "all-to-all of clockwise_ring"},
		{Spec{Method: RecursiveDoubling, Collective: schedule.Barrier, Size: 4}, true, "barrier of recursive_doubling"},
		{Spec{Method: ClockwiseRing, Size: 4, Ring: ring, RankOrder: true}, true, "all-reduce of clockwise_ring in the order of the ranks"},
		{Spec{Method: Auto, Size: 4}, true, "auto makes no schedule"},
		{Spec{Method: ClockwiseRing, Size: 4}, false, "ring of 0 ranks"},
		{Spec{Method: RecursiveDoubling, Size: 1<<16 + 1}, false, "want at most 65536"},
	} {
		got, err := tt.spec.Traffic()
		if err == nil || got != nil || !strings.Contains(err.Error(), tt.want) ||
			errors.Is(err, errors.ErrUnsupported) != tt.unsupported {
			t.Errorf("%+v: error %v, want one with %q", tt.spec, err, tt.want)
		}
	}
}
