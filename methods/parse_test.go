package methods

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gogcl.dev/methods/schedule"
)

// readDrawing draws a schedule and reads the drawing.
func readDrawing(t *testing.T, name string, s *schedule.Schedule) {
	t.Helper()
	drawing := s.String()
	got, err := schedule.Parse([]byte(drawing))
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, drawing)
	}
	if fingerprint(got) != fingerprint(s) || got.Again != s.Again {
		t.Fatalf("%s: read another schedule than was drawn (-drawn +read):\n%s", name,
			cmp.Diff(s, got, cmpopts.EquateEmpty()))
	}
}

// TestEveryDrawingIsRead draws schedules and reads the drawings. What several specifications give is read once.
// TestGallery does the same with the gallery.
func TestEveryDrawingIsRead(t *testing.T) {
	t.Parallel()
	for _, k := range slices.Backward(drawnSizes()) {
		t.Run(fmt.Sprintf("n=%d", k), func(t *testing.T) {
			t.Parallel()
			read := map[uint64]bool{}
			specs(k, func(name string, s Spec) {
				built, err := Build(s)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				print := fingerprint(built)
				if read[print] {
					return
				}
				read[print] = true
				readDrawing(t, name, built)
			})
			if len(read) < len(constants()) {
				t.Errorf("read %d drawings, want one for each method or more", len(read))
			}
		})
	}
}

// TestTextInDocs reads the text in docs/design/schedules.md and proves it.
func TestTextInDocs(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../docs/design/schedules.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(docs), "## The text form")
	_, rest, _ = strings.Cut(rest, "```\n")
	text, _, found := strings.Cut(rest, "```\n")
	if !found {
		t.Fatal("docs/design/schedules.md has no text")
	}
	s, err := schedule.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schedule.Check(s); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(s.String(), text); diff != "" {
		t.Errorf("not as it is drawn (-drawn +docs):\n%s", diff)
	}
}
