package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNetwork reads names and files, and refuses what is neither.
func TestNetwork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"pair": "replicas 2\nlink 0 1 1e9 1us\n", "torus:2": "replicas 3",
		"bad": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		text     string
		replicas int
		want     string // of the error
	}{
		{"torus:4x3", 12, ""},
		{filepath.Join(dir, "pair"), 2, ""},
		{filepath.Join(dir, "torus:2"), 3, ""}, // a slash makes it a file
		{"torus", 0, "no such file or directory, nor is it a name such as torus:8x8x8 or fattree:16x8x4"},
		{"toruss:4", 0, `cost: no network "toruss:4", want a name such as torus:8x8x8, `},
		{filepath.Join(dir, "bad"), 0, "bad: cost: line 1: "},
	} {
		n, err := Network(c.text)
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", c.text, err, c.want)
		case c.want == "" && (err != nil || n.Replicas() != c.replicas):
			t.Errorf("%s: %v, error %v, want %d replicas", c.text, n, err, c.replicas)
		}
	}
}
