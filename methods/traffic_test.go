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
	described := 0
	for _, m := range constants() {
		for c, w := range m.row().recipes {
			c := schedule.Collective(c)
			if w.traffic == nil || c == schedule.Barrier {
				continue
			}
			described++
			t.Run(fmt.Sprintf("method=%v/collective=%v", m, c), func(t *testing.T) {
				t.Parallel()
				for _, k := range trafficSizes() {
					if k > 40 && k != 64 && (m == Direct || m == SendToAll || c > schedule.AllGather) && !everything() {
						continue // most are many more messages than ranks
					}
					ring, second := rings(k)
					s := Spec{Method: m, Collective: c, Size: k, Ring: ring, Second: second}
					if c.Contract().Combines && k <= 40 {
						inOrder := s
						inOrder.RankOrder, inOrder.Pieces, inOrder.Root = true, k%5, 0
						compareTraffic(t, inOrder)
						if c.Contract().Rooted() {
							inOrder.Root = k - 1
							compareTraffic(t, inOrder)
						}
					}
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
	if want := 8 * 8; described != want {
		t.Errorf("%d methods and collectives are described, want %d: of each method all but a barrier", described, want)
	}
}

// TestTrafficOfGallery: the messages by a Generator are those of its schedule, put together by their two ends.
func TestTrafficOfGallery(t *testing.T) {
	t.Parallel()
	described := map[string]string{}
	for _, l := range append(Gallery(), Listed{"pat in messages of 4", PAT(4)}) {
		g, ok := l.Generator.(TrafficGenerator)
		if !ok {
			continue
		}
		for _, c := range schedule.Collectives() {
			compare := func(t *testing.T, k int) bool {
				r := Request{Spec: Spec{Collective: c, Size: k}}
				traffic, err := g.Traffic(r)
				s, unmade := g.Schedule(r)
				if errors.Is(err, errors.ErrUnsupported) && errors.Is(unmade, errors.ErrUnsupported) {
					return false
				}
				if err = errors.Join(err, unmade, traffic.Check()); err != nil {
					t.Fatalf("n=%d: %v", k, err)
				}
				compareMessages(t, s, traffic)
				return true
			}
			if compare(t, 4) || compare(t, 8) {
				described[l.Name] += c.String() + " "
			} else {
				continue
			}
			t.Run(fmt.Sprintf("method=%s/collective=%v", l.Name, c), func(t *testing.T) {
				t.Parallel()
				for _, k := range galleryTrafficSizes() {
					compare(t, k)
				}
			})
		}
	}
	all := "all-reduce reduce-scatter all-gather "
	want := map[string]string{
		"halving_doubling": all, "circulant": all, "torus_2d": all, "torus_3d": all, "hierarchical_8": "all-reduce ",
		"swing": "all-reduce ", "swing_2d": "all-reduce ", "bruck": "all-gather all-to-all ",
		"binomial_tree":      "all-reduce broadcast reduce gather scatter ",
		"knomial_4_tree":     "all-reduce broadcast reduce gather scatter ",
		"double_binary_tree": "all-reduce broadcast reduce ",
		"pat":                "reduce-scatter all-gather ", "pat in messages of 4": "reduce-scatter all-gather ",
	}
	if !maps.Equal(described, want) {
		t.Errorf("described are %v, want %v", described, want)
	}
}

// galleryTrafficSizes are the group sizes for which traffic of the gallery is compared with schedules.
func galleryTrafficSizes() []int {
	if everything() {
		return inOrder(257)[2:]
	}
	out := slices.DeleteFunc(trafficSizes(), func(k int) bool { return k < 2 || k > 17 && k%16 > 1 })
	return slices.DeleteFunc(out, func(k int) bool { return k > 81 && k != 128 && k != 255 && k != 256 })
}

// TestTrafficByName: a method of the gallery describes more ranks than a schedule could be made of, and a method of a
// program does if its Generator does.
func TestTrafficByName(t *testing.T) {
	KeepTable(t)
	for name, want := range map[string]int{"circulant": 32, "torus_2d": 4 * 255, "torus_3d": 2 * (63 + 31 + 31),
		"hierarchical_8": 2 + 2*13, "swing": 32} {
		m, err := Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		traffic, err := Spec{Method: m, Collective: schedule.AllReduce, Size: 1 << 16}.Traffic()
		if err != nil {
			t.Fatal(err)
		}
		rounds := 0
		for _, alike := range traffic.Rounds {
			rounds += alike.Times
		}
		if rounds != want {
			t.Errorf("%s: %d rounds, want %d", name, rounds, want)
		}
	}
	ok := func(r Request) (*schedule.Traffic, error) {
		if len(r.Ring) != r.Size || len(r.Second) != r.Size || len(r.Members) != r.Size {
			return nil, fmt.Errorf("a request with the lists %v, %v and %v", r.Ring, r.Second, r.Members)
		}
		return &schedule.Traffic{Size: r.Size, Chunks: 1, Rounds: []schedule.Alike{{Times: r.Size}}}, nil
	}
	for i, c := range []struct {
		g    Generator
		want string // error; "": none
	}{
		{described{StarForTests, ok, nil}, ""},
		{StarForTests, "no traffic describes all-reduce of star4_1"},
		{described{StarForTests, func(Request) (*schedule.Traffic, error) { return nil, nil }, nil}, "no traffic and no error"},
		{described{StarForTests, func(Request) (*schedule.Traffic, error) {
			return &schedule.Traffic{Size: 5, Chunks: 1, Rounds: []schedule.Alike{{Times: 5}}}, nil
		}, nil}, "a traffic of 5 ranks"},
		{described{StarForTests, func(Request) (*schedule.Traffic, error) { return &schedule.Traffic{Size: 4}, nil }, nil},
			"traffic of all-reduce over 4 ranks: schedule: traffic of 0 chunks"},
	} {
		name := fmt.Sprintf("star4_%d", i)
		if err := Register(name, c.g); err != nil {
			t.Fatal(err)
		}
		m, _ := Parse(name)
		traffic, err := Spec{Method: m, Collective: schedule.AllReduce, Size: 4}.Traffic()
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) ||
			err == nil && traffic.Rounds[0].Times != 4 {
			t.Errorf("%s: %+v, %v, want %q", name, traffic, err, c.want)
		}
		if alone, err := (Spec{Method: m, Size: 1}).Traffic(); c.want == "" && (err != nil || alone.Size != 1) {
			t.Errorf("%s alone: %v", name, err)
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
					case schedule.RecvReduce, schedule.Fold:
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
	for _, tt := range []struct {
		spec        Spec
		unsupported bool
		want        string
	}{
		{Spec{Method: Direct, Collective: schedule.Barrier, Size: 4}, true, "no traffic describes barrier of direct"},
		{Spec{Method: RecursiveDoubling, Collective: schedule.Barrier, Size: 4}, true, "barrier of recursive_doubling"},
		{Spec{Method: gallery(t, "circulant"), Size: 4, RankOrder: true}, true, "it does not fold in the order of the ranks"},
		{Spec{Method: Auto, Size: 4}, true, "auto makes no schedule"},
		{Spec{Method: ClockwiseRing, Size: 4}, false, "no ring for a group of 4 ranks: want the ranks in the order of their links"},
		{Spec{Method: RecursiveDoubling, Size: 1<<16 + 1}, false, "want at most 65536"},
	} {
		got, err := tt.spec.Traffic()
		if err == nil || got != nil || !strings.Contains(err.Error(), tt.want) ||
			errors.Is(err, errors.ErrUnsupported) != tt.unsupported {
			t.Errorf("%+v: error %v, want one with %q", tt.spec, err, tt.want)
		}
	}
}

// gallery is a method of the gallery.
func gallery(t *testing.T, name string) Method {
	m, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMakes: what is said without making a schedule is what making it says, of all methods and collectives.
func TestMakes(t *testing.T) {
	t.Parallel()
	for _, m := range All() {
		if m.Own() && !m.InGallery() {
			continue
		}
		for _, c := range schedule.Collectives() {
			for _, k := range []int{1, 2, 3, 4, 6, 7, 8, 12, 16, 24, 64} {
				for _, order := range []bool{false, true} {
					s := Spec{Method: m, Collective: c, Size: k, Ring: inOrder(k), Second: inOrder(k), RankOrder: order}
					_, want := Build(s)
					if err := s.Makes(); (err == nil) != (want == nil) ||
						errors.Is(err, errors.ErrUnsupported) != errors.Is(want, errors.ErrUnsupported) {
						t.Errorf("%+v: %v, and Build %v", s, err, want)
					}
				}
			}
		}
	}
	for _, tt := range []struct {
		method string
		c      schedule.Collective
		size   int
		makes  bool
	}{
		{"circulant", schedule.AllReduce, 4096, true}, {"circulant", schedule.AllReduce, 4097, false},
		{"torus_3d", schedule.AllReduce, 4096, false}, {"torus_3d", schedule.AllGather, 4096, true},
		{"swing", schedule.AllReduce, 1024, true}, {"swing", schedule.AllReduce, 2048, false},
		{"pat", schedule.AllGather, 8192, false}, {"binomial_tree", schedule.AllReduce, 65536, true},
	} {
		err := Spec{Method: gallery(t, tt.method), Collective: tt.c, Size: tt.size}.Makes()
		if (err == nil) != tt.makes || err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
