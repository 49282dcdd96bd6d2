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

var update = flag.Bool("update", false, "rewrite golden files and the pictures in doc comments; commit only what you understand")

// inOrder is the ring 0, 1, ..., k-1.
func inOrder(k int) []int {
	ring := make([]int, k)
	for i := range ring {
		ring[i] = i
	}
	return ring
}

// draw is the picture of a schedule over plain rings.
func draw(t *testing.T, m Method, c schedule.Collective, k, pieces int, rankOrder bool) string {
	t.Helper()
	s, err := Build(Spec{Method: m, Collective: c, Size: k, Ring: inOrder(k), Second: inOrder(k), Pieces: pieces, RankOrder: rankOrder})
	if err != nil {
		t.Fatal(err)
	}
	return s.String()
}

func TestDrawings(t *testing.T) {
	t.Parallel()
	for _, m := range All() {
		for _, c := range schedule.Collectives() {
			t.Run(fmt.Sprintf("method=%v/collective=%v", m, c), func(t *testing.T) {
				got := draw(t, m, c, 4, 2, false)
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

// TestPicturesInComments keeps the pictures above the generators true. A line "//draw:METHOD COLLECTIVE RANKS
// [pieces=N] [rank-order]" stands below each.
func TestPicturesInComments(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	pictures := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, line := range strings.Split(string(text), "\n") {
			if order, ok := strings.CutPrefix(line, "//draw:"); ok {
				pictures++
				out = replacePicture(out, drawOrder(t, order))
			}
			out = append(out, line)
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
	if pictures < 9 {
		t.Errorf("found %d pictures, want one for each generator", pictures)
	}
}

// drawOrder draws what a draw line asks for.
func drawOrder(t *testing.T, order string) string {
	t.Helper()
	words := strings.Fields(order)
	m, err := Parse(words[0])
	if err != nil {
		t.Fatal(err)
	}
	k, err := strconv.Atoi(words[2])
	if err != nil {
		t.Fatal(err)
	}
	pieces, rankOrder := 1, false
	for _, w := range words[3:] {
		if n, ok := strings.CutPrefix(w, "pieces="); ok {
			if pieces, err = strconv.Atoi(n); err != nil {
				t.Fatal(err)
			}
		}
		rankOrder = rankOrder || w == "rank-order"
	}
	for _, c := range schedule.Collectives() {
		if c.String() == words[1] {
			return draw(t, m, c, k, pieces, rankOrder)
		}
	}
	t.Fatalf("unknown collective %q", words[1])
	return ""
}

// replacePicture drops the indented block at the end of a comment, up to the blank comment line that closes it, and
// puts another there.
func replacePicture(lines []string, picture string) []string {
	lines = lines[:len(lines)-1] // the blank comment line above the draw line
	end := len(lines)
	for end > 0 && strings.HasPrefix(lines[end-1], "//\t") {
		end--
	}
	if end == len(lines) {
		lines = append(lines, "//")
		end++
	}
	lines = lines[:end]
	for _, l := range strings.Split(strings.TrimSuffix(picture, "\n"), "\n") {
		lines = append(lines, "//\t"+l)
	}
	return append(lines, "//")
}
