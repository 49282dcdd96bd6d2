package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWordcount counts files, also where a replica has none.
func TestWordcount(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for name, text := range map[string]string{"a": "The dog saw the cat.", "b": "the cat ran", "c": ""} {
		files = append(files, filepath.Join(dir, name))
		if err := os.WriteFile(files[len(files)-1], []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, files := range [][]string{files, files[:1], {filepath.Join(dir, "a"), filepath.Join(dir, "a")}} {
		var out, stderr bytes.Buffer
		if code := run(context.Background(), append([]string{"-top", "2"}, files...), &out, &stderr); code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr.String())
		}
		if len(files) == 3 && out.String() != "      3  the\n      2  cat\n" {
			t.Errorf("%q", out.String())
		}
	}
}

// TestMistakes: what is wrong is said, and by which file.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "no files, want one or more"},
		{[]string{"-top", "0", "x"}, "-top 0, want 1 or more"},
		{[]string{filepath.Join(t.TempDir(), "missing")}, "missing"},
	} {
		var out, stderr bytes.Buffer
		code := run(context.Background(), c.args, &out, &stderr)
		if code == 0 || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%q: exit code %d, %q, want %q", c.args, code, stderr.String(), c.want)
		}
	}
}
