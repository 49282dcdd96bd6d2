package methods

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/methods/schedule"
)

// galleryCost is the cost of a schedule of the gallery by the formulas in the comments, in chunks.
type galleryCost struct {
	chunks, rounds int
	all            int // sent by all ranks
	most           int // sent by one rank, or 0: no comment says it
	fewer          int // the rounds may be that many fewer
}

// galleryFormulas has the cost over k ranks, by name.
var galleryFormulas = map[string]func(c schedule.Collective, k int) galleryCost{
	"halving_doubling": func(c schedule.Collective, k int) galleryCost {
		if c != schedule.AllReduce {
			w := doublingFormula(c, k)
			return galleryCost{chunks: k, rounds: w.rounds, all: w.pieces}
		}
		p, log := 1, 0
		for 2*p <= k {
			p, log = 2*p, log+1
		}
		if k == p {
			return galleryCost{chunks: p, rounds: 2 * log, all: 2 * p * (p - 1), most: 2 * (p - 1)}
		}
		return galleryCost{chunks: p, rounds: 2*log + 2, all: 2*p*(p-1) + 2*p*(k-p), most: 2*(p-1) + p}
	},
	"circulant": func(c schedule.Collective, k int) galleryCost {
		w := galleryCost{chunks: k, all: k * (k - 1), most: k - 1}
		for n := 1; n < k; n *= 2 {
			w.rounds++
		}
		if c == schedule.AllReduce {
			w.rounds, w.all, w.most = 2*w.rounds, 2*w.all, 2*w.most
		}
		return w
	},
	"bruck": func(c schedule.Collective, k int) galleryCost {
		w := galleryCost{chunks: k, rounds: logUp(k), all: k * (k - 1), most: k - 1}
		if c == schedule.AllToAll {
			w.most = 0
			for i := range k {
				w.most += bits.OnesCount(uint(i))
			}
			w.all = k * w.most
		}
		return w
	},
	"pat": func(_ schedule.Collective, k int) galleryCost {
		return galleryCost{chunks: k, rounds: logUp(k), all: k * (k - 1), most: k - 1}
	},
	"binomial_tree":  knomialFormula(2),
	"knomial_4_tree": knomialFormula(4),
	"double_binary_tree": func(c schedule.Collective, k int) galleryCost {
		const pieces = 8
		levels := 1
		for m := k - 1; m > 1; m /= 2 {
			levels++
		}
		w := galleryCost{chunks: 2 * pieces, rounds: 2 * (levels + pieces - 1), all: 2 * pieces * (k - 1),
			most: 2 * pieces, fewer: 1}
		if c == schedule.AllReduce {
			w.rounds, w.all, w.most, w.fewer = 2*w.rounds, 2*w.all, 2*w.most, 2*w.fewer
			if k < 4 {
				w.most = 0 // no rank has two children
			}
		}
		return w
	},
}

// logUp is the logarithm to base 2, rounded up.
func logUp(k int) (rounds int) {
	for n := 1; n < k; n *= 2 {
		rounds++
	}
	return rounds
}

func knomialFormula(radix int) func(c schedule.Collective, k int) galleryCost {
	return func(c schedule.Collective, k int) galleryCost {
		levels := 0
		for n := 1; n < k; n *= radix {
			levels++
		}
		switch c {
		case schedule.AllReduce:
			return galleryCost{chunks: 1, rounds: 2 * levels, all: 2 * (k - 1)}
		case schedule.Gather, schedule.Scatter:
			digits := 0
			for place := range k {
				for ; place > 0; place /= radix {
					if place%radix != 0 {
						digits++
					}
				}
			}
			return galleryCost{chunks: k, rounds: levels, all: digits}
		}
		return galleryCost{chunks: 1, rounds: levels, all: k - 1}
	}
}

// TestGallery proves the schedules of the gallery for groups of up to 64 ranks, and counts what they cost.
func TestGallery(t *testing.T) {
	t.Parallel()
	for _, l := range Gallery() {
		p, err := NewProver(l.Name, l.Generator)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range schedule.Collectives() {
			t.Run(fmt.Sprintf("method=%s/collective=%v", l.Name, c), func(t *testing.T) {
				t.Parallel()
				for k := 2; k <= sizes()[len(sizes())-1]; k++ {
					roots := []int{0}
					if c.Contract().Rooted() {
						roots = slices.Compact([]int{0, k / 3, k - 1})
					}
					for _, root := range roots {
						made, err := p.Prove(Request{Spec: Spec{Collective: c, Size: k, Root: root}})
						if errors.Is(err, errors.ErrUnsupported) {
							continue
						}
						if err != nil {
							t.Fatal(err)
						}
						compareGallery(t, l.Name, made)
					}
				}
			})
		}
	}
}

func compareGallery(t *testing.T, name string, made *Proved) {
	t.Helper()
	k, c, report := made.Size, made.Collective, made.Report
	all := 0
	for _, sent := range report.Sent {
		all += sent
	}
	want := galleryFormulas[name](c, k)
	got := galleryCost{made.Chunks, report.Rounds, all, slices.Max(report.Sent), want.fewer}
	if want.most == 0 {
		got.most = 0
	}
	if got.rounds < want.rounds && got.rounds >= want.rounds-want.fewer {
		got.rounds = want.rounds
	}
	if got != want {
		t.Errorf("%s over %d: %+v, want %+v", name, k, got, want)
	}
	repeated := 0
	if name == "halving_doubling" {
		repeated = repeats(Spec{Method: RecursiveDoubling, Collective: c, Size: k})
	}
	if report.Waste.Repeated != repeated {
		t.Errorf("%s over %d: waste: %v; want %d chunks sent again", name, k, report.Waste, repeated)
	}
	if (name == "bruck" || name == "pat") && report.Messages != k*report.Rounds {
		t.Errorf("%s over %d: %d messages in %d rounds, want one of each rank in each", name, k, report.Messages,
			report.Rounds)
	}
	if name == "double_binary_tree" && report.Ports != 1 {
		t.Errorf("%s over %d: a rank has to do with %d others in a round, want 1 each way", name, k, report.Ports)
	}
}

// TestGalleryDoes: which collectives each has, so that a test of all of them cannot pass by errors.ErrUnsupported.
func TestGalleryDoes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"halving_doubling": "all-reduce reduce-scatter all-gather",
		"circulant":        "all-reduce reduce-scatter all-gather",
		"bruck":            "all-gather all-to-all",
		"pat":              "reduce-scatter all-gather",
		"binomial_tree":    "all-reduce broadcast reduce gather scatter",
		"knomial_4_tree":   "all-reduce broadcast reduce gather scatter",

		"double_binary_tree": "all-reduce broadcast reduce",
	} {
		i := slices.IndexFunc(Gallery(), func(l Listed) bool { return l.Name == name })
		var does []string
		for _, c := range schedule.Collectives() {
			for _, k := range []int{1, 2, 7} {
				s, err := Gallery()[i].Generator.Schedule(Request{Spec: Spec{Collective: c, Size: k}})
				switch {
				case err == nil && schedule.Check(s) != nil:
					t.Errorf("%s: %v over %d: %v", name, c, k, schedule.Check(s))
				case err == nil && k == 7:
					does = append(does, c.String())
				case err != nil && !errors.Is(err, errors.ErrUnsupported):
					t.Errorf("%s: %v over %d: %v", name, c, k, err)
				}
			}
		}
		if got := strings.Join(does, " "); got != want {
			t.Errorf("%s does %s, want %s", name, got, want)
		}
	}
}

// TestGalleryTooLarge: a request whose chunks would take a Builder very long is refused.
func TestGalleryTooLarge(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		g Generator
		s Spec
	}{
		"halving_doubling": {HalvingDoubling(), Spec{Collective: schedule.AllReduce, Size: 8192}},
		"circulant":        {Circulant(), Spec{Collective: schedule.AllGather, Size: 4097}},
		"knomial":          {KNomialTree(3), Spec{Collective: schedule.Scatter, Size: maxRanks}},
		"double":           {DoubleBinaryTree(specPieces), Spec{Collective: schedule.Reduce, Size: 129}},
	} {
		s, err := tt.g.Schedule(Request{Spec: tt.s})
		if s != nil || !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "are too many") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	tree, err := KNomialTree(2).Schedule(Request{Spec: Spec{Collective: schedule.Reduce, Size: maxRanks}})
	if err != nil || len(tree.Programs[0]) != 16 {
		t.Errorf("a tree over %d: error %v", maxRanks, err)
	}
}

// TestPATMost counts what PAT costs with a bound on its messages.
func TestPATMost(t *testing.T) {
	t.Parallel()
	for k := 2; k <= 40; k++ {
		for _, most := range []int{0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, math.MaxInt} {
			for _, c := range []schedule.Collective{schedule.AllGather, schedule.ReduceScatter} {
				s, err := PAT(most).Schedule(Request{Spec: Spec{Collective: c, Size: k}})
				if err != nil {
					t.Fatal(err)
				}
				report, err := schedule.Examine(s)
				if err != nil {
					t.Fatalf("%v of %d ranks, %d chunks at most: %v", c, k, most, err)
				}
				p, rounds := 1<<logUp(k), logUp(k)
				if most > 0 && most < p/2 {
					a := bits.Len(uint(most)) - 1
					rounds = a + min(p>>a, k) - 1
				}
				longest := 0
				for _, program := range s.Programs {
					for _, r := range program {
						for _, st := range r.Moves {
							longest = max(longest, st.Src.Count)
						}
					}
				}
				if report.Rounds != rounds || report.Messages != k*rounds || slices.Max(report.Sent) != k-1 ||
					slices.Min(report.Sent) != k-1 || report.Waste.Repeated > 0 || most > 0 && longest > most {
					t.Errorf("%v of %d ranks, %d chunks at most: %d chunks in a message\n%v\nwant %d rounds of a message of each",
						c, k, most, longest, report, rounds)
				}
			}
		}
	}
	s, err := PAT(-1).Schedule(Request{Spec: Spec{Collective: schedule.AllGather, Size: 4}})
	if err == nil || s != nil || errors.Is(err, errors.ErrUnsupported) ||
		!strings.Contains(err.Error(), "messages of -1 chunks, want 1 or more") {
		t.Errorf("error %v", err)
	}
}

// TestSixMessages: over 64 ranks, Bruck and PAT send a message in each of six rounds, and the messages of circulant are
// more.
func TestSixMessages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		g    Generator
		c    schedule.Collective
		want int
	}{
		{Bruck(), schedule.AllGather, 6}, {Bruck(), schedule.AllToAll, 6}, {PAT(0), schedule.AllGather, 6},
		{PAT(0), schedule.ReduceScatter, 6}, {PAT(4), schedule.AllGather, 17}, {PAT(1), schedule.AllGather, 63},
	} {
		s, err := tt.g.Schedule(Request{Spec: Spec{Collective: tt.c, Size: 64}})
		if err != nil {
			t.Fatal(err)
		}
		for rank, p := range s.Programs {
			n := 0
			for _, r := range p {
				for _, st := range r.Moves {
					if st.Verb == schedule.Send {
						n++
					}
				}
			}
			if n != tt.want || len(p) != tt.want {
				t.Fatalf("%v: rank %d sends %d messages in %d rounds, want %d", tt.c, rank, n, len(p), tt.want)
			}
		}
	}
}

func TestKNomialTreeRadix(t *testing.T) {
	t.Parallel()
	for _, radix := range []int{1, 0, -2} {
		s, err := KNomialTree(radix).Schedule(Request{Spec: Spec{Collective: schedule.Reduce, Size: 4}})
		if err == nil || s != nil || errors.Is(err, errors.ErrUnsupported) ||
			!strings.Contains(err.Error(), "want 2 or more") {
			t.Errorf("radix %d: %v", radix, err)
		}
	}
	for _, radix := range []int{3, 5, 6, 7, math.MaxInt} { // from 6 on it is a star
		for _, c := range []schedule.Collective{schedule.Reduce, schedule.Gather} {
			s, err := KNomialTree(radix).Schedule(Request{Spec: Spec{Collective: c, Size: 6, Root: 2}})
			if err == nil {
				err = schedule.Check(s)
			}
			if err != nil {
				t.Fatal(err)
			}
			if star := len(s.Programs[0]) == 1; star != (radix >= 6) {
				t.Errorf("%v, radix %d: %d rounds", c, radix, len(s.Programs[0]))
			}
		}
	}
}

func TestDoubleBinaryTreePieces(t *testing.T) {
	t.Parallel()
	request := Request{Spec: Spec{Collective: schedule.Broadcast, Size: 6, Root: 4}}
	for _, pieces := range []int{0, -1, specPieces + 1} {
		s, err := DoubleBinaryTree(pieces).Schedule(request)
		if err == nil || s != nil || errors.Is(err, errors.ErrUnsupported) ||
			!strings.Contains(err.Error(), "want 1 to 65536") {
			t.Errorf("%d pieces: %v", pieces, err)
		}
	}
	for _, pieces := range []int{1, 2, 3, 100} {
		s, err := DoubleBinaryTree(pieces).Schedule(request)
		if err == nil {
			err = schedule.Check(s)
		}
		if err != nil || s.Chunks != 2*pieces {
			t.Errorf("%d pieces: %v", pieces, err)
		}
	}
}

// TestTwoTrees: the second tree of the comment, and that no place is an inner node of both trees.
func TestTwoTrees(t *testing.T) {
	t.Parallel()
	var parents [2][7]int
	for _, e := range twoTrees(7) {
		parents[e.tree][e.child] = e.parent
	}
	if want := [2][7]int{{0, 2, 4, 2, 0, 6, 4}, {0, 3, 1, 0, 5, 3, 5}}; parents != want {
		t.Errorf("parents %v, want %v", parents, want)
	}
	for k := 2; k <= 200; k++ {
		inner := [2]map[int]bool{{}, {}}
		for _, e := range twoTrees(k) {
			inner[e.tree][e.parent] = true
		}
		for place := 1; place < k; place++ {
			if inner[0][place] && inner[1][place] {
				t.Errorf("%d places: %d is an inner node of both trees", k, place)
			}
		}
	}
}

// TestGalleryErrors: each generator refuses what it cannot do, and panics of nothing.
func TestGalleryErrors(t *testing.T) {
	t.Parallel()
	for _, l := range Gallery() {
		moves, folds := schedule.AllToAll, schedule.AllReduce // one that it does not do, and one that it does
		switch l.Name {
		case "bruck":
			moves, folds = schedule.Gather, 0
		case "pat":
			folds = schedule.ReduceScatter
		}
		for _, tt := range []struct {
			spec        Spec
			unsupported bool
			want        string
		}{
			{Spec{Collective: moves, Size: 4}, true, "and not " + moves.String()},
			{Spec{Collective: schedule.Barrier, Size: 4}, true, "and not barrier"},
			{Spec{Collective: folds, Size: 4, RankOrder: true}, true, map[bool]string{
				true: "and not all-reduce", false: "not fold in the order of the ranks"}[l.Name == "bruck"]},
			{Spec{Collective: schedule.AllReduce, Size: maxRanks + 1}, false, "want at most 65536"},
			{Spec{Collective: schedule.AllReduce}, false, "group of 0 ranks"},
			{Spec{Collective: schedule.AllReduce, Size: -3}, false, "group of -3 ranks"},
			{Spec{Collective: schedule.AllReduce, Size: 4, Root: 1}, false, "root 1 of all-reduce"},
		} {
			s, err := l.Generator.Schedule(Request{Spec: tt.spec})
			if err == nil || s != nil || errors.Is(err, errors.ErrUnsupported) != tt.unsupported ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %+v: error %v, want one with %q", l.Name, tt.spec, err, tt.want)
			}
		}
	}
}
