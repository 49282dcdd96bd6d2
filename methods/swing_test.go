package methods

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/methods/schedule"
)

// tori are tori of powers of two of up to 64 ranks.
var tori = [][]int{{2}, {4}, {8}, {16}, {32}, {64}, {1, 8}, {2, 2}, {4, 2}, {2, 8}, {4, 4}, {8, 8}, {2, 4, 8},
	{4, 4, 4}, {2, 2, 2, 2, 2, 2}}

func TestSwing(t *testing.T) {
	t.Parallel()
	for _, dims := range tori {
		for _, concurrent := range []bool{false, true} {
			t.Run(fmt.Sprintf("dims=%v/concurrent=%v", dims, concurrent), func(t *testing.T) {
				t.Parallel()
				s, err := Swing(dims, concurrent)
				if err != nil {
					t.Fatal(err)
				}
				if s.Size > 16 && (testing.Short() || len(sizes()) < 12) {
					t.Skip("large")
				}
				if err := schedule.Check(s); err != nil {
					t.Error(err)
				}
				traffic, err := SwingTraffic(dims, concurrent)
				if err == nil {
					err = traffic.Check()
				}
				if err != nil {
					t.Fatal(err)
				}
				compareMessages(t, s, traffic)
			})
		}
	}
}

// compareMessages compares the messages of the steps with those of the traffic, put together by their two ends.
func compareMessages(t *testing.T, s *schedule.Schedule, traffic *schedule.Traffic) {
	t.Helper()
	if traffic.Size != s.Size || traffic.Chunks != s.Chunks {
		t.Errorf("traffic of %d ranks and %d chunks, want %d and %d", traffic.Size, traffic.Chunks, s.Size, s.Chunks)
	}
	round := 0
	for i, alike := range traffic.Rounds {
		messages, err := traffic.Messages(nil, i)
		if err != nil {
			t.Fatal(err)
		}
		got, gotFolds := map[[2]int]int{}, make([]int, s.Size)
		for _, m := range messages {
			got[[2]int{m.From, m.To}] += m.Chunks
			if m.Fold {
				gotFolds[m.To] += m.Chunks
			}
		}
		for range alike.Times {
			want, wantFolds := map[[2]int]int{}, make([]int, s.Size)
			for rank, p := range s.Programs {
				if round >= len(p) {
					t.Fatalf("n=%d: more than %d rounds", s.Size, len(p))
				}
				for _, st := range p[round].Moves {
					switch st.Verb {
					case schedule.Send:
						want[[2]int{rank, st.Peer}] += st.Src.Count
					case schedule.RecvReduce:
						wantFolds[rank] += st.Dst.Count
					}
				}
			}
			if !maps.Equal(got, want) || !slices.Equal(gotFolds, wantFolds) {
				t.Fatalf("n=%d round %d: messages %v, folds %v, want %v, %v", s.Size, round, got, gotFolds, want,
					wantFolds)
			}
			round++
		}
	}
	if round != len(s.Programs[0]) {
		t.Errorf("n=%d: %d rounds, want %d", s.Size, round, len(s.Programs[0]))
	}
}

// The partners of eight ranks on a ring, as the paper's figure has them: at distance 1 forth, 1 back, 3.
func TestSwingPartners(t *testing.T) {
	t.Parallel()
	_, parts, err := swing([]int{8}, true, 8)
	if err != nil {
		t.Fatal(err)
	}
	want := [][][]int{
		{{1, 0, 3, 2, 5, 4, 7, 6}, {7, 2, 1, 4, 3, 6, 5, 0}, {3, 6, 5, 0, 7, 2, 1, 4}},
		{{7, 2, 1, 4, 3, 6, 5, 0}, {1, 0, 3, 2, 5, 4, 7, 6}, {5, 4, 7, 6, 1, 0, 3, 2}},
	}
	for i, steps := range parts {
		for s, step := range steps {
			var got []int
			for rank := range 8 {
				got = append(got, step.partner(rank))
			}
			if !slices.Equal(got, want[i][s]) {
				t.Errorf("part %d step %d: partners %v, want %v", i, s, got, want[i][s])
			}
		}
	}
}

func TestSwingErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		dims        []int
		unsupported bool
		want        string
		traffic     bool // an error of SwingTraffic too
	}{
		{nil, false, "swing on a torus without dimensions", true},
		{[]int{4, 6}, true, "swing with 6 places in dimension 1, want a power of two", true},
		{[]int{0}, false, "0 places in dimension 0", true},
		{[]int{-4}, false, "-4 places in dimension 0", true},
		{[]int{1, 1}, false, "swing on a torus of [1 1]: 1 rank, want 2 or more", true},
		{[]int{1 << 11}, false, "more than 1024 ranks", false},
		{[]int{1 << 9, 1 << 8}, false, "more than 1024 ranks", true},
	} {
		s, err := Swing(tt.dims, false)
		if err == nil || s != nil || !strings.Contains(err.Error(), tt.want) ||
			strings.Count(err.Error(), "methods: ") != 1 ||
			errors.Is(err, errors.ErrUnsupported) != tt.unsupported {
			t.Errorf("%v: error %v, want one with %q", tt.dims, err, tt.want)
		}
		want := strings.Replace(tt.want, "1024", "65536", 1)
		if _, err := SwingTraffic(tt.dims, true); (err != nil) != tt.traffic ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: SwingTraffic returns error %v", tt.dims, err)
		}
	}
	p, err := NewProver("swing", SwingTorus(false))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Prove(Request{Spec: Spec{Collective: schedule.AllReduce, Size: 6}})
	if want := "methods: swing: all-reduce over 6 ranks: swing with 6 places in dimension 0, want a power of two"; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	_, err = p.Prove(Request{Spec: Spec{Collective: schedule.Barrier, Size: 4}})
	if err == nil || !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "a barrier has no data") {
		t.Errorf("a barrier: error %v", err)
	}
	_, err = new(Prover).Prove(Request{Spec: Spec{Collective: schedule.AllReduce, Size: 4}})
	if err == nil || !strings.Contains(err.Error(), "a Prover that NewProver has not made") {
		t.Errorf("the zero Prover: error %v", err)
	}
}
