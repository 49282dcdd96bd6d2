package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/internal/ink"
)

var update = flag.Bool("update", false, "write the golden file anew")

func render(t *testing.T, f *Figure) string {
	t.Helper()
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v in %s", err, b.String())
		}
	}
	return b.String()
}

// figure has every look, one line that is a point only, and one with values that have no place.
func figure() *Figure {
	var lines []Line
	for i := range 12 {
		l := Line{Name: fmt.Sprintf("line %d", i)}
		for x := 1.0; x <= 1024; x *= 4 {
			l.Points = append(l.Points, Point{x, math.Pow(1.5, float64(i)) * (1 + x/20)})
		}
		lines = append(lines, l)
	}
	lines = append(lines,
		Line{Name: "a point", Points: []Point{{32, 1000}}},
		Line{Name: "nowhere", Points: []Point{{0, 1}, {1, 0}, {-1, 1}, {1, math.NaN()}, {math.Inf(1), 1},
			{1, math.Inf(1)}}},
		Line{Name: "the least", Reference: true, Points: []Point{{1, .5}, {1024, 30}}})
	x := Axis{Label: "size (bytes)", Base: 2, Tick: Plain}
	y := Axis{Label: "time (µs)", Base: 10, Tick: Plain}
	return &Figure{Title: "Tom & <Jerry>", Foot: "at 3 & 4 o'clock", Rows: [][]Panel{
		{{Title: "all", X: x, Y: y, Lines: lines}, {Title: "few", X: x, Y: y, Lines: lines[11:12]}},
		{{Title: "one point", X: x, Y: y, Lines: lines[12:13]}, {Title: "none", X: x, Y: y}},
	}}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	const path = "testdata/figure.svg"
	got := render(t, figure())
	if got != render(t, figure()) {
		t.Error("the same figure is not the same twice")
	}
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run with -update and look at it", path)
	}
	for _, bad := range []string{"NaN", "Inf", "e+", "<Jerry>"} {
		if strings.Contains(got, bad) {
			t.Errorf("%s is in the picture", bad)
		}
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	for _, f := range []*Figure{{}, {Title: "x"}, {Rows: [][]Panel{{}}},
		{Rows: [][]Panel{{{X: Axis{Base: 2, Tick: Plain}, Y: Axis{Base: 10, Tick: Plain}}}}}} {
		render(t, f)
	}
}

// TestLooks wants lines to differ in at least two of colour, dash and marker, but for neighbours far apart.
func TestLooks(t *testing.T) {
	t.Parallel()
	seen := map[look]int{}
	for i := range 16 {
		l := lookOf(i)
		if l.marker == none || l.color == "" {
			t.Errorf("look %d: %+v", i, l)
		}
		if before, ok := seen[l]; ok {
			t.Errorf("looks %d and %d are the same", before, i)
		}
		seen[l] = i
	}
	for i := range 8 { // as many as there are methods of a group, without relying on colour
		for j := range i {
			if lookOf(i).marker == lookOf(j).marker {
				t.Errorf("looks %d and %d have the same marker", j, i)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		low, high float64
		base      int
		want      []float64
	}{
		{8, 64, 2, []float64{8, 16, 32, 64}},
		{8, 64 << 20, 2, []float64{8, 64, 512, 4096, 32768, 262144, 2 << 20, 16 << 20}},
		{.9, 11, 10, []float64{1, 2, 5, 10}},
		{.1, 100, 10, []float64{.1, 1, 10, 100}},
		{5, 5, 10, []float64{5}},
		{1e-3, 1e9, 10, []float64{1e-3, .1, 10, 1e3, 1e5, 1e7, 1e9}},
		{0, 1, 0, []float64{0, .2, .4, .6, .8, 1}},
		{.87, .99, 0, []float64{.88, .9, .92, .94, .96, .98}},
		{-.16, 31.2, 0, []float64{0, 5, 10, 15, 20, 25, 30}},
		{-1, 1, 0, []float64{-1, -.5, 0, .5, 1}},
		{1, 9, 0, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{4e6, 4.1e6, 0, []float64{4e6, 4.02e6, 4.04e6, 4.06e6, 4.08e6, 4.1e6}},
		{3e-9, 5e-9, 0, []float64{3e-9, 3.5e-9, 4e-9, 4.5e-9, 5e-9}},
	} {
		major, _ := ticks(span{c.low, c.high, c.base == 0}, c.base, false)
		if len(major) > maxTicks || len(major) != len(c.want) ||
			!slices.EqualFunc(major, c.want, func(a, b float64) bool {
				return a == b && !math.Signbit(a) || math.Abs(a/b-1) < 1e-9
			}) {
			t.Errorf("%g to %g, base %d: %v, want %v", c.low, c.high, c.base, major, c.want)
		}
	}
}

// TestNarrowTicks has ranges in which there is no number between two ticks, or hardly any number at all.
func TestNarrowTicks(t *testing.T) {
	t.Parallel()
	for _, s := range []span{
		{low: 1, high: math.Nextafter(1, 2)},
		{low: math.Nextafter(1, 0), high: math.Nextafter(1, 2)},
		{low: 1e17, high: 1e17 + 64},
		{low: -3, high: math.Nextafter(math.Nextafter(-3, 0), 0)},
		{low: 0, high: math.SmallestNonzeroFloat64},
		{low: 1e-320, high: 1e-318},
		{low: -math.MaxFloat64, high: math.MaxFloat64},
	} {
		got := multiples(s)
		if len(got) > maxTicks || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("%g to %g: %v", s.low, s.high, got)
		}
		for _, v := range got {
			if !(v >= s.low && v <= s.high) {
				t.Errorf("%g to %g: %v is outside", s.low, s.high, v)
			}
		}
	}
}

// TestLinear finds places on linear axes, of numbers that logarithmic ones have no place for.
func TestLinear(t *testing.T) {
	t.Parallel()
	x := Axis{Tick: Plain}
	l := Line{Name: "a", Points: []Point{{-10, 0}, {0, .5}, {10, 1}, {math.NaN(), 1}, {1, math.Inf(-1)}}}
	if got := l.points(x, x); !slices.Equal(got, l.Points[:3]) {
		t.Errorf("points %v", got)
	}
	if got := l.points(x, Axis{Base: 10}); !slices.Equal(got, l.Points[1:3]) {
		t.Errorf("above a logarithmic axis: points %v", got)
	}
	for _, c := range []struct {
		values    []float64
		low, high float64
	}{
		{nil, 0, 1},
		{[]float64{-10, 10, 0}, -10.8, 10.8},
		{[]float64{3}, 1.5, 4.5},
		{[]float64{0, 0}, 0, .5},
		{[]float64{0, 10}, 0, 10.4},
		{[]float64{-8}, -12, -4},
	} {
		s := spanOf(c.values, true)
		if math.Abs(s.low-c.low) > 1e-9 || math.Abs(s.high-c.high) > 1e-9 {
			t.Errorf("%v: from %v to %v, want %v to %v", c.values, s.low, s.high, c.low, c.high)
		}
		if at := s.at((s.low + s.high) / 2); math.Abs(at-.5) > 1e-9 {
			t.Errorf("%v: the middle is at %v", c.values, at)
		}
	}
	got := render(t, &Figure{Title: "linear",
		Rows: [][]Panel{{{Title: "a", X: x, Y: x, Lines: []Line{l}}, {X: x, Y: x}}}})
	if !strings.Contains(got, ">-10<") || !strings.Contains(got, ">0<") || strings.Contains(got, "NaN") ||
		strings.Contains(got, "Inf") {
		t.Errorf("picture: %s", got)
	}
}

// TestContrast wants lines to stand out from both backgrounds by 3 to 1, and text by 4.5 to 1.
func TestContrast(t *testing.T) {
	t.Parallel()
	check := func(what string, i ink.Ink, least float64) {
		for _, pair := range [][2]string{{i.Light, background.Light}, {i.Dark, background.Dark}} {
			if ratio := ink.Contrast(pair[0], pair[1]); ratio < least {
				t.Errorf("%s %s on %s: %.2f to 1, want %v", what, pair[0], pair[1], ratio, least)
			}
		}
	}
	for _, i := range palette {
		check("line", i, 3)
	}
	check("frame", frame, 3)
	check("text", text, 4.5)
	check("foot", small, 4.5)
	for _, color := range regexp.MustCompile(`(?:fill|stroke)="(#[0-9a-f]+)"`).FindAllStringSubmatch(
		render(t, figure()), -1) {
		if !strings.Contains(style(), `[fill="`+color[1]+`"]`) {
			t.Errorf("%s has no colour on the dark background", color[1])
		}
	}
}

// TestLastTick: the last point has a tick, in place of one that is too near.
func TestLastTick(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		linear bool
		want   []float64
	}{
		{[]float64{8, 64 << 20}, false, []float64{8, 64, 512, 4096, 32768, 262144, 2 << 20, 64 << 20}},
		{[]float64{1, 4, 16}, false, []float64{1, 2, 4, 8, 16}},
		{[]float64{0, 12}, true, []float64{0, 2, 4, 6, 8, 10, 12}},
		{[]float64{1, 2}, true, []float64{1, 2}},
		{[]float64{0, 29}, true, []float64{0, 5, 10, 15, 20, 25, 29}},
		{nil, true, []float64{0, 1}},
	} {
		s := spanOf(c.values, c.linear)
		major, _ := ticks(s, 2, true)
		if got := withLast(major, s, c.values); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
	if s := spanOf([]float64{.5, .99}, true).within(Axis{Most: 1}); s.high != 1 {
		t.Errorf("up to %v, want 1", s.high)
	}
}

// TestLegendFits checks that no entry ends beyond the figure or meets the next one.
func TestLegendFits(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 30 {
		names = append(names, strings.Repeat("x", i))
	}
	const width = 700
	spots := place(names, width)
	for i, s := range spots {
		end := s.x + sample + letter*float64(len(names[i]))
		if end > width {
			t.Errorf("entry %d ends at %v", i, end)
		}
		if i+1 < len(spots) && spots[i+1].y == s.y && spots[i+1].x < end {
			t.Errorf("entry %d ends at %v, the next begins at %v", i, end, spots[i+1].x)
		}
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0",
		-0.01: "0", 1: "1", 1.25: "1.2", 1.26: "1.3", -3.5: "-3.5", 100: "100"} {
		if got := number(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
