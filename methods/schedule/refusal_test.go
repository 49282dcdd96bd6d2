package schedule

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// chainOfFour is an all-reduce whose rank 2 folds rank 3's chunk too late, and the same in order.
func chainOfFour(t *testing.T, late bool) *Schedule {
	b := NewBuilder(AllReduce, 4, 0, 4)
	last := 0
	if late {
		last = 2
	}
	b.Fold(last, 3, 2, 0, 4)
	b.Fold(1, 2, 1, 0, 4)
	b.Fold(2, 1, 0, 0, 4)
	for rank := 1; rank < 4; rank++ {
		b.Copy(2+rank, 0, rank, 0, 4)
	}
	s, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRefusedPictures compares the pictures of a schedule that ends wrong with golden ones, and finds the marks of
// others where Check says that they are wrong. Those of schedules that prove have none.
func TestRefusedPictures(t *testing.T) {
	t.Parallel()
	s := chainOfFour(t, true)
	compare(t, filepath.Join("testdata", "refused", "shape.txt"), s.Shape())
	compare(t, filepath.Join("testdata", "refused", "shape.svg"), svgOf(t, s))
	compare(t, filepath.Join("testdata", "refused", "time.svg"), spaceTimeOf(t, s))

	cell := regexp.MustCompile(`<path d="M(\d+) (\d+)h`)
	count := func(text string) int { return len(cell.FindAllString(text, -1)) - strings.Count(text, "h8v8h") }
	right := chainOfFour(t, false)
	marked := strings.Contains(right.Shape(), "!") || count(svgOf(t, right)) > 0 || count(spaceTimeOf(t, right)) > 0
	if marked {
		t.Errorf("a mark in the pictures of a schedule that proves:\n%s", right.Shape())
	}
	twice := twoRanks(AllReduce, 1, append(allReduce2().Programs[0], moves(fold(Out(0, 1), Out(0, 1), 1)), Round{}),
		append(allReduce2().Programs[1], moves(send(In(0, 1), 0)), Round{}))
	overwritten := twoRanks(AllReduce, 1, append(allReduce2().Programs[0], then(move(Out(0, 1), In(0, 1))), Round{}),
		append(allReduce2().Programs[1], Round{}, Round{}))
	unmet := twoRanks(Broadcast, 1, Program{{}, moves(send(In(0, 1), 1)), {}}, nil)
	for name, c := range map[string]struct {
		s           *Schedule
		rank, round int
	}{
		"twice":          {twice, 0, 1},
		"overwritten":    {overwritten, 0, 1},
		"never received": {unmet, 0, 1},
		"a form":         {twoRanks(AllReduce, 1, nil, Program{{}, moves(send(In(0, 1), 5)), {}}), 1, 1},
		"at the end":     {twoRanks(AllReduce, 1, nil, Program{{}, {}, {}}), 0, 2},
	} {
		sh := shapeOf(c.s)
		i := slices.IndexFunc(sh.columns, func(x column) bool { return x.wrong > 0 })
		if i < 0 || sh.columns[i].first != c.round || sh.columns[i].last != c.round || sh.columns[i].wrong != c.rank+1 {
			t.Errorf("%s: marked %+v, want rank %d round %d", name, sh.columns, c.rank, c.round)
		}
		for _, picture := range []string{svgOf(t, c.s), spaceTimeOf(t, c.s)} {
			if count(picture) != 1 || !strings.Contains(picture, "refused: ") {
				t.Errorf("%s: %d cells in\n%s", name, count(picture), picture)
			}
		}
		if text := c.s.Shape(); strings.Count(text, "!") != 3 || !strings.Contains(text, "\n!: ") {
			t.Errorf("%s: no mark in\n%s", name, text)
		}
	}
	if text := (&Schedule{}).Shape(); !strings.Contains(text, "\nrefused: schedule: size 0, want 1 or more\n") {
		t.Errorf("an error without a cell:\n%s", text)
	}
	// What takes long is not proved for a drawing.
	large := &Schedule{Collective: AllReduce, Size: 2, Chunks: maxDrawnStates, Programs: make([]Program, 2)}
	if r := large.refusal(); r != nil {
		t.Errorf("refused: %q", r.text)
	}
}

// TestShapeSVGWraps: hundreds of rounds stand in rows, in text and as SVG.
func TestShapeSVGWraps(t *testing.T) {
	t.Parallel()
	there, back := exchange(2, [2]int{0, 1}), exchange(2, [2]int{1, 0})
	s := inRounds(2, slices.Repeat([][]Round{there, back}, 120)...)
	checkText(t, s.Shape())
	size := regexp.MustCompile(`<svg [^>]*width="(\d+)" height="(\d+)"`).FindStringSubmatch(svgOf(t, s))
	width, _ := strconv.Atoi(size[1])
	height, _ := strconv.Atoi(size[2])
	if width > svgWide || height < 20*svgRow {
		t.Errorf("a picture of %d by %d pixels, want a width of %d at most", width, height, svgWide)
	}
	if svg := svgOf(t, s); !strings.Contains(svg, ">239</text>") || strings.Count(svg, ">rank 1</text>") < 10 {
		t.Errorf("not all rounds are drawn, or rows have no names:\n%.2000s", svg)
	}
}

// box is where a text is.
type box struct {
	text                     string
	left, right, top, bottom float64
}

var textElement = regexp.MustCompile(`<text x="(-?\d+)" y="(-?\d+)" ([^>]*)>([^<]*)</text>`)

// boxes are those of a picture's texts. Digits of Helvetica are 0.556 wide, bold letters 0.6 on average.
func boxes(t *testing.T, picture string) (out []box) {
	t.Helper()
	for _, m := range textElement.FindAllStringSubmatch(picture, -1) {
		x, _ := strconv.ParseFloat(m[1], 64)
		y, _ := strconv.ParseFloat(m[2], 64)
		size := 12.0
		if _, after, is := strings.Cut(m[3], `font-size="`); is {
			if _, err := fmt.Sscanf(after, "%f", &size); err != nil {
				t.Fatal(err)
			}
		}
		width := 0.58 * size * float64(utf8.RuneCountInString(m[4]))
		switch {
		case strings.Contains(m[3], `text-anchor="middle"`):
			x -= width / 2
		case strings.Contains(m[3], `text-anchor="end"`):
			x -= width
		}
		out = append(out, box{m[4], x, x + width, y - 0.75*size, y + 0.22*size})
	}
	return out
}

// mustLieApart fails for two texts of a picture that lie on each other.
func mustLieApart(t *testing.T, what, picture string) {
	t.Helper()
	list := boxes(t, picture)
	slices.SortFunc(list, func(a, b box) int { return int(a.top - b.top) })
	for i, a := range list {
		for _, b := range list[i+1:] {
			if b.top > a.bottom+1 {
				break
			}
			if a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom {
				t.Errorf("%s: %+v lies on %+v", what, a, b)
				return
			}
		}
	}
}

// MustLieApart is mustLieApart of a schedule's picture of space and time.
func MustLieApart(t *testing.T, what string, s *Schedule) {
	t.Helper()
	mustLieApart(t, what, spaceTimeOf(t, s))
}

// TestLabelsOfAnything has spans as wide as they come, to both sides.
func TestLabelsOfAnything(t *testing.T) {
	t.Parallel()
	wide := &Schedule{Collective: AllReduce, Size: 3, Chunks: maxChunks, Programs: make([]Program, 3)}
	for rank := range 3 {
		round := Round{Then: steps(move(Out(0, maxChunks), In(0, maxChunks)))}
		for range 3 {
			round.Moves = append(round.Moves, send(In(maxChunks/2, maxChunks/2), (rank+1)%3),
				send(In(maxChunks/2, maxChunks/4).Strided(1, 2), (rank+2)%3))
		}
		wide.Programs[rank] = Program{round, round}
	}
	mustLieApart(t, "wide spans", spaceTimeOf(t, wide))
	mustLieApart(t, "mismatched", spaceTimeOf(t, mismatched()))
}
