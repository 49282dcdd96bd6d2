package schedule

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files; commit only what you understand")

// TestDrawing draws what the notation has: all verbs and buffers, spans of several chunks, cells of unequal width, a
// round in which a rank has nothing to do, one in which nobody has, and ranks that end early. Not all of it is a
// correct schedule.
func TestDrawing(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*Schedule{
		"all-to-all":                allToAll2(),
		"own operand in the middle": right()["own operand anywhere in a fold"],
		"alone":                     right()["alone"],
		"no rounds":                 twoRanks(Broadcast, 1, nil, nil),
		"everything": {Collective: AllReduce, Size: 3, Chunks: 12, Programs: []Program{
			{both(steps(send(In(0, 12), 1), recv(Tmp(10, 3, 2), 2)), move(Out(0, 12), In(0, 12)), reduce(Out(3, 2), Tmp(10, 3, 2))), {}, moves(send(Out(11, 1), 2))},
			{moves(fold(Out(0, 12), In(0, 12), 0), fold(Out(0, 12), Out(0, 12), 2), reduce(Out(0, 12), Tmp(1, 0, 12))), {}},
			{},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			golden := filepath.Join("testdata", "draw", strings.ReplaceAll(name, " ", "_")+".txt")
			got := s.String()
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

// TestPackageComment checks the drawings in doc.go, which explain the notation.
func TestPackageComment(t *testing.T) {
	t.Parallel()
	s := &Schedule{Collective: AllGather, Size: 3, Chunks: 3}
	for rank := range 3 {
		next, last, first := (rank+1)%3, (rank+2)%3, In(rank, 1)
		s.Programs = append(s.Programs, Program{
			both(steps(send(first, next), recv(Out(last, 1), last)), move(Out(rank, 1), first)),
			moves(send(Out(last, 1), next), recv(Out(next, 1), last)),
		})
	}
	if err := Check(s); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, drawing := range []string{s.String(), s.Shape()} {
		picture := "//\t" + strings.ReplaceAll(strings.TrimSuffix(drawing, "\n"), "\n", "\n//\t") + "\n//\n"
		if !strings.Contains(string(text), picture) {
			t.Errorf("doc.go does not hold this picture:\n%s", picture)
		}
	}
}
