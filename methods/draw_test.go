package methods

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/methods/schedule"
)

var update = flag.Bool("update", false, "rewrite golden files and the pictures in doc comments; commit only what you "+
	"understand")

// inOrder is the ring 0, 1, ..., k-1.
func inOrder(k int) []int {
	ring := make([]int, k)
	for i := range ring {
		ring[i] = i
	}
	return ring
}

// build makes a schedule over plain rings, or with another second one.
func build(t *testing.T, s Spec) *schedule.Schedule {
	t.Helper()
	s.Ring = inOrder(s.Size)
	if s.Second == nil {
		s.Second = s.Ring
	}
	out, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDrawings(t *testing.T) {
	t.Parallel()
	for _, m := range constants() {
		for _, c := range append(schedule.Collectives(), schedule.Barrier) {
			t.Run(fmt.Sprintf("method=%v/collective=%v", m, c), func(t *testing.T) {
				got := build(t, Spec{Method: m, Collective: c, Size: 4, Pieces: 2}).String()
				golden := filepath.Join("testdata", "draw", fmt.Sprintf("%v_%v.txt", m, c))
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
			})
		}
	}
}

// TestPicturesInComments keeps the pictures above the generators true. Below them stands a line for each, for the table
// of a schedule or for its shape:
//
//	//draw:METHOD COLLECTIVE RANKS [pieces=N] [inner=N] [rank-order] [second=RANK,RANK,...]
//	//shape:METHOD COLLECTIVE RANKS [pieces=N] [inner=N] [rank-order] [second=RANK,RANK,...]
func TestPicturesInComments(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	tables, shapes := 0, map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out, orders, pictures []string
		for line := range strings.SplitSeq(string(text), "\n") {
			table, isTable := strings.CutPrefix(line, "//draw:")
			shape, isShape := strings.CutPrefix(line, "//shape:")
			switch {
			case isTable:
				tables++
				pictures = append(pictures, drawn(t, table).String())
			case isShape:
				shapes[strings.Fields(shape)[0]] = true
				pictures = append(pictures, drawn(t, shape).Shape())
			case len(orders) > 0:
				out = append(replacePictures(out, pictures), orders...)
				orders, pictures = nil, nil
			}
			if isTable || isShape {
				orders = append(orders, line)
			} else {
				out = append(out, line)
			}
		}
		fresh := strings.Join(out, "\n")
		if *update && fresh != string(text) {
			if err := os.WriteFile(file, []byte(fresh), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if diff := cmp.Diff(string(text), fresh); diff != "" {
			t.Errorf("%s: picture is out of date (-have +want); run with -update:\n%s", file, diff)
		}
	}
	if tables < 9 {
		t.Errorf("found %d tables, want one for each generator", tables)
	}
	for _, m := range constants() {
		if !shapes[m.String()] {
			t.Errorf("no comment has a shape of %v", m)
		}
	}
	for _, l := range Gallery() {
		if !shapes[l.Name] {
			t.Errorf("no comment has a shape of %s", l.Name)
		}
	}
}

// TestPictureInDocs checks the drawing in docs/design/schedules.md.
func TestPictureInDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "design", "schedules.md"))
	if err != nil {
		t.Fatal(err)
	}
	picture := drawn(t, "meet_in_middle_ring reduce-scatter 6").Shape()
	if !strings.Contains(string(text), "```\n"+picture+"```\n") {
		t.Errorf("docs/design/schedules.md does not hold this picture:\n%s", picture)
	}
}

// drawn is the schedule that a line asks for, of a method or of a Generator of the gallery.
func drawn(t *testing.T, order string) *schedule.Schedule {
	t.Helper()
	words := strings.Fields(order)
	if len(words) < 3 {
		t.Fatalf("%q: want METHOD COLLECTIVE RANKS", order)
	}
	s := specified(t, order, words)
	for _, l := range Gallery() {
		if l.Name == words[0] {
			g := l.Generator
			switch _, inner, found := strings.Cut(order, " inner="); {
			case s.Pieces > 0:
				g = DoubleBinaryTree(s.Pieces)
			case found:
				g = Hierarchical(int(inner[0] - '0'))
			}
			out, err := g.Schedule(Request{Spec: s})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
	}
	m, err := Parse(words[0])
	if err != nil {
		t.Fatal(err)
	}
	s.Method = m
	return build(t, s)
}

// specified is what a line asks for, but for the method.
func specified(t *testing.T, order string, words []string) Spec {
	t.Helper()
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%q: %v", order, err)
		}
		return n
	}
	s := Spec{Collective: 255, Size: number(words[2])}
	for _, c := range append(schedule.Collectives(), schedule.Barrier) {
		if c.String() == words[1] {
			s.Collective = c
		}
	}
	for _, w := range words[3:] {
		switch name, value, _ := strings.Cut(w, "="); name {
		case "pieces":
			s.Pieces = number(value)
		case "inner": // of a hierarchy, which is no part of a Spec
		case "rank-order":
			s.RankOrder = true
		case "second":
			for rank := range strings.SplitSeq(value, ",") {
				s.Second = append(s.Second, number(rank))
			}
		default:
			t.Fatalf("%q: unknown word %q", order, w)
		}
	}
	return s
}

// replacePictures drops the indented blocks at the end of a comment, at most as many as there are pictures, and puts
// the pictures there. A blank comment line stands above and below each.
func replacePictures(lines, pictures []string) []string {
	lines = lines[:len(lines)-1] // the blank comment line above the orders
	for range pictures {
		end := len(lines)
		for end > 0 && strings.HasPrefix(lines[end-1], "//\t") {
			end--
		}
		if end == len(lines) {
			break
		}
		lines = lines[:end-1] // and the blank line above the block
	}
	for _, picture := range pictures {
		lines = append(lines, "//")
		for l := range strings.Lines(picture) {
			lines = append(lines, "//\t"+strings.TrimSuffix(l, "\n"))
		}
	}
	return append(lines, "//")
}
