package schedule

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spaceTimeOf is the drawing of a schedule, which must be well-formed XML.
func spaceTimeOf(t *testing.T, s *Schedule) string {
	t.Helper()
	var b strings.Builder
	if err := s.WriteSpaceTimeSVG(&b); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return b.String()
		} else if err != nil {
			t.Fatalf("%v:\n%s", err, &b)
		}
	}
}

// TestSpaceTime compares drawings with those in testdata.
func TestSpaceTime(t *testing.T) {
	t.Parallel()
	mismatched := allReduce2()
	mismatched.Programs[0][0].Moves = slices.Concat(mismatched.Programs[0][0].Moves,
		steps(send(In(0, 1), 1), send(In(0, 1), 5)))
	unmet := allReduce2()
	unmet.Programs[1][0].Moves = unmet.Programs[1][0].Moves[1:]
	for name, s := range map[string]*Schedule{
		"all-to-all": allToAll2(), "fold": byRank0(1, 2), "mismatched": mismatched, "unmet": unmet,
		"chain of two rounds": right()["a slot of two chunks, of which one is sent alone"],
		"no rounds":           twoRanks(Broadcast, 1, nil, nil), "no ranks": {},
	} {
		golden := filepath.Join("testdata", "spacetime", strings.ReplaceAll(name, " ", "_")+".svg")
		got := spaceTimeOf(t, s)
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
			t.Errorf("%s: drawing changed (-want +got); run with -update if that is right:\n%s", name, diff)
		}
	}
}

// TestSpaceTimeHasAllMessages counts arrows: one for each message, from its sender's line down to its receiver's.
func TestSpaceTimeHasAllMessages(t *testing.T) {
	t.Parallel()
	arrow := regexp.MustCompile(`<path d="M(\d+) (\d+)L(\d+) (\d+)" stroke="[^"]*" stroke-width="1.5" marker-end`)
	for name, s := range right() {
		var want, got []string
		for _, p := range s.Programs {
			for _, r := range p {
				for _, st := range r.Moves {
					if st.Verb == Send {
						want = append(want, "")
					}
				}
			}
		}
		text := spaceTimeOf(t, s)
		picture, _, _ := strings.Cut(text, ">received") // the legend comes last
		for _, m := range arrow.FindAllStringSubmatch(picture, -1) {
			y1, _ := strconv.Atoi(m[2])
			if y2, _ := strconv.Atoi(m[4]); y2 > y1 { // those of the legend are level
				got = append(got, "")
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d arrows, want %d", name, len(got), len(want))
		}
		if !strings.Contains(text, `role="img"`) || !strings.Contains(text, "<title>Messages in space and time: ") {
			t.Errorf("%s: no title for screen readers", name)
		}
	}
}

// TestLargeSpaceTime draws more than anyone can look at: a line says what is left out.
func TestLargeSpaceTime(t *testing.T) {
	t.Parallel()
	there := exchange(2, [2]int{0, 1})
	for _, c := range []struct {
		s    *Schedule
		want string
	}{
		{inRounds(2, slices.Repeat([][]Round{there}, 300)...), "not drawn: rounds 256 to 299"},
		{inRounds(40, exchange(40, everyone(40)...)), "not drawn: ranks 32 to 39, and messages with them"},
		{inRounds(32, slices.Repeat([][]Round{exchange(32, everyone(32)...)}, 12)...),
			"not drawn: rounds 8 to 11, with more messages than fit"},
	} {
		if text := spaceTimeOf(t, c.s); !strings.Contains(text, c.want) || len(text) > 1<<22 {
			t.Errorf("%d bytes, want %q", len(text), c.want)
		}
	}
}

// TestSpaceTimeErrors has nothing to draw, nothing to write to, and a writer that fails.
func TestSpaceTimeErrors(t *testing.T) {
	t.Parallel()
	var none *Schedule
	if err := none.WriteSpaceTimeSVG(io.Discard); err == nil || err.Error() != "schedule: no schedule to draw" {
		t.Errorf("error %v of a nil schedule", err)
	}
	err := allReduce2().WriteSpaceTimeSVG(nil)
	if err == nil || err.Error() != "schedule: nothing to write a drawing to" {
		t.Errorf("error %v of a nil writer", err)
	}
	full := errors.New("disk full")
	if err := allReduce2().WriteSpaceTimeSVG(failing{full}); !errors.Is(err, full) {
		t.Errorf("error %v, want %v", err, full)
	}
}
