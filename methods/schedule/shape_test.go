package schedule

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/internal/ink"
)

// exchange is a round in which ranks send one chunk each to others.
func exchange(ranks int, pairs ...[2]int) []Round {
	out := make([]Round, ranks)
	for _, p := range pairs {
		out[p[0]].Moves = append(out[p[0]].Moves, send(In(0, 1), p[1]))
		out[p[1]].Moves = append(out[p[1]].Moves, recv(Out(0, 1), p[0]))
	}
	return out
}

// inRounds is a schedule, right or wrong, of rounds.
func inRounds(ranks int, rounds ...[]Round) *Schedule {
	s := &Schedule{Collective: AllReduce, Size: ranks, Chunks: 1, Programs: make([]Program, ranks)}
	for _, round := range rounds {
		for rank := range ranks {
			s.Programs[rank] = append(s.Programs[rank], round[rank])
		}
	}
	return s
}

// everyone is the pairs of everyone with everyone.
func everyone(ranks int) (out [][2]int) {
	for from := range ranks {
		for to := range ranks {
			if from != to {
				out = append(out, [2]int{from, to})
			}
		}
	}
	return out
}

// mismatched has messages that no other rank receives or sends, of unequal sizes, with no rank, and after the moves.
func mismatched() *Schedule {
	return &Schedule{Collective: 77, Size: -3, Chunks: 12, Programs: []Program{
		{
			moves(send(In(0, 2), 1), send(In(0, 3), 1), send(In(0, 1), 2)),
			moves(send(In(0, 1), 0), send(In(0, 1), -1)),
			then(send(In(0, 1), 1)),
		},
		{
			moves(recv(Out(0, 2), 0), fold(Out(2, 1), Out(2, 1), 0), recv(Out(0, 1), 3)),
			moves(recv(Out(0, -5), 2), send(In(0, math.MaxInt), 2)),
		},
		{
			{},
			moves(send(In(0, -5), 1), recv(Out(0, math.MaxInt), 1), Step{Verb: 99, Peer: 1}),
			moves(recv(Out(0, 1), 4)),
		},
		nil,
	}}
}

// TestShape compares drawings of the shape, as text and as SVG: all marks, equal rounds, wide ones, numbers that do and
// do not differ within a round, and what is left out.
func TestShape(t *testing.T) {
	ring := exchange(3, [2]int{0, 1}, [2]int{1, 2}, [2]int{2, 0})
	back := exchange(3, [2]int{1, 0}, [2]int{2, 1}, [2]int{0, 2})
	lone := exchange(40, [2]int{0, 39}, [2]int{38, 39}, [2]int{31, 0}, [2]int{0, 1}, [2]int{0, 1})
	rootless := slices.DeleteFunc(everyone(20), func(p [2]int) bool { return p[1] == 0 })
	for name, s := range map[string]*Schedule{
		"all-to-all":                allToAll2(),
		"own operand in the middle": right()["own operand anywhere in a fold"],
		"alone":                     right()["alone"],
		"no rounds":                 twoRanks(Broadcast, 1, nil, nil),
		"no ranks":                  {},
		"mismatched":                mismatched(),
		"everyone of five":          inRounds(5, exchange(5, everyone(5)...)),
		"everyone of three":         inRounds(3, exchange(3, everyone(3)...)),
		"to nineteen of twenty":     inRounds(20, exchange(20, rootless...)),
		"forty ranks":               inRounds(40, lone, lone),
		"thirty equal rounds":       inRounds(3, append(slices.Repeat([][]Round{ring}, 30), back)...),
		"columns below":             inRounds(3, slices.Repeat([][]Round{ring, back}, 10)...),
		"differing numbers": {Collective: Broadcast, Size: 3, Chunks: 12, Programs: []Program{
			{moves(send(In(0, 12), 1), send(In(0, 1), 2)), moves(send(In(0, 12), 1), send(In(0, 12), 2))},
			{moves(recv(Out(0, 12), 0), send(In(0, 7), 2)), moves(recv(Out(0, 12), 0))},
			{moves(recv(Out(0, 1), 0), recv(Out(1, 7), 1)), moves(recv(Out(0, 12), 0))},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", "shape", strings.ReplaceAll(name, " ", "_"))
			got := s.Shape()
			checkText(t, got)
			compare(t, file+".txt", got)
			if name != "to nineteen of twenty" { // 361 arrows
				compare(t, file+".svg", svgOf(t, s))
			}
		})
	}
}

// compare compares a drawing with a golden file.
func compare(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("drawing changed (-want +got); run with -update if that is right:\n%s", diff)
	}
}

// checkText checks that a drawing is text, and no wider than it may be.
func checkText(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("no text: %q", text)
	}
	title, rows, _ := strings.Cut(text, "\n")
	for line := range strings.Lines(rows) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > maxShapeWidth {
			t.Errorf("a line of %d letters below %q, want at most %d:\n%s", n, title, maxShapeWidth, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("a line ends with spaces: %q", line)
		}
	}
}

// svgOf is the SVG drawing of a schedule, which must be well-formed XML.
func svgOf(t *testing.T, s *Schedule) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
		switch _, err := d.Token(); {
		case err == io.EOF:
			return b.String()
		case err != nil:
			t.Fatalf("%v in\n%s", err, b.String())
		}
	}
}

// TestShapeOfAnything draws schedules of odd numbers: both drawings say only what they can, in bounds.
func TestShapeOfAnything(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	odd := func(usual int) int {
		if random.IntN(8) > 0 {
			return random.IntN(usual)
		}
		return []int{-1, math.MinInt, math.MaxInt, 64, maxChunks, 1 << 30}[random.IntN(6)]
	}
	for range 100 {
		ranks := 1 + random.IntN(40)
		s := &Schedule{Collective: Collective(random.IntN(7)), Size: odd(40), Chunks: odd(40)}
		for range ranks {
			var p Program
			for range random.IntN(4) {
				var lists [2][]Step
				for i := range lists {
					for range random.IntN(40 >> (4 * i)) {
						st := Step{Verb: Verb(random.IntN(6)), Peer: odd(ranks + 1)}
						st.Src, st.Dst = In(odd(9), odd(3)), Out(odd(9), odd(3))
						lists[i] = append(lists[i], st)
					}
				}
				p = append(p, both(lists[0], lists[1]...))
			}
			s.Programs = append(s.Programs, p)
		}
		checkText(t, s.Shape())
		svgOf(t, s)
	}
}

// TestLargeShape draws more than anyone can look at: a line says what is left out, and the drawing stays small.
func TestLargeShape(t *testing.T) {
	t.Parallel()
	long := &Schedule{Collective: AllReduce, Size: 1000, Chunks: 1, Programs: make([]Program, 1000)}
	long.Programs[999] = make(Program, 1<<20)
	if columns := shapeOf(long).single(); columns != nil {
		t.Errorf("%d columns of one round each, want none", len(columns))
	}
	there, back := exchange(2, [2]int{0, 1}), exchange(2, [2]int{1, 0})
	for _, c := range []struct {
		s    *Schedule
		want string
	}{
		{inRounds(2, slices.Repeat([][]Round{there, back}, 150)...), "not drawn: rounds 256 to 299\n"},
		{long, "not drawn: ranks 32 to 999, and messages with them\n"},
		{inRounds(300, exchange(300, everyone(300)...)), "not drawn: ranks 32 to 299, and messages with them\n"},
	} {
		text := c.s.Shape()
		checkText(t, text)
		if !strings.HasSuffix(text, c.want) {
			t.Errorf("the drawing does not end with %q:\n%s", c.want, text)
		}
		if svg := svgOf(t, c.s); len(svg) > 1<<18 || !strings.Contains(svg, strings.TrimSpace(c.want)) {
			t.Errorf("%d bytes of SVG, want at most %d, with %q", len(svg), 1<<18, c.want)
		}
	}
}

// TestSVGInks wants every colour of a drawing to have its like for dark pages. Arrows stand out from the page by 3 to 1
// and text by 4.5 to 1; lines that only guide the eye do not.
func TestSVGInks(t *testing.T) {
	like := map[string]string{}
	for _, i := range svgInks {
		like[i.Light] = i.Dark
	}
	page := svgInks[0]
	least := map[string]float64{"#000000": 4.5, "#333333": 4.5, "#5f5f5f": 4.5,
		svgColors[kept]: 3, svgColors[folded]: 3, svgColors[mismatch]: 3}
	for color, want := range least {
		if got := min(ink.Contrast(color, page.Light), ink.Contrast(like[color], page.Dark)); got < want {
			t.Errorf("%s and %s stand out from the page by %.2f, want %v", color, like[color], got, want)
		}
	}
	for _, s := range []*Schedule{mismatched(), allReduce2(), allToAll2()} {
		text := svgOf(t, s)
		for _, color := range regexp.MustCompile(`(?:fill|stroke)="(#[0-9a-f]+)"`).FindAllStringSubmatch(text, -1) {
			if like[color[1]] == "" || !strings.Contains(text, `[fill="`+color[1]+`"] {`) {
				t.Errorf("%s has no like on a dark page", color[1])
			}
		}
	}
}

// TestSVGErrors has nothing to draw, nothing to write to, and a writer that fails.
func TestSVGErrors(t *testing.T) {
	var none *Schedule
	if err := none.WriteSVG(io.Discard); err == nil || err.Error() != "schedule: no schedule to draw" {
		t.Errorf("error %v of a nil schedule", err)
	}
	if err := allReduce2().WriteSVG(nil); err == nil || err.Error() != "schedule: nothing to write a drawing to" {
		t.Errorf("error %v of a nil writer", err)
	}
	full := errors.New("disk full")
	err := allReduce2().WriteSVG(failing{full})
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "all-reduce") {
		t.Errorf("error %v, want %v of the all-reduce", err, full)
	}
	if text := none.Shape(); text != "no schedule" {
		t.Errorf("%q of a nil schedule", text)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
