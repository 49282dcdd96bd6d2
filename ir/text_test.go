package ir_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/ir"
)

var update = flag.Bool("update", false, "rewrite the golden files; commit only what you understand")

// golden compares text with a file, but for the numbers of lines.
func unchanged(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	got = regexp.MustCompile(`(_test\.go):\d+`).ReplaceAllString(got, "$1:#")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s changed (-want +got); run with -update if that is right:\n%s", path, diff)
	}
}

// TestProgramString compares programs as text.
func TestProgramString(t *testing.T) {
	unchanged(t, "perceptron.txt", perceptron().String())
	unchanged(t, "oddities.txt", oddities().String())
	broken := ir.New(1)
	broken.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ir.ToyAdd(in[0], in[1]), in[0]}
	}, f32(2), f32(3))
	unchanged(t, "broken.txt", broken.String())
	unchanged(t, "empty.txt", ir.New(3).String())
}
