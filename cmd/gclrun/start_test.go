//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCannotStart: the exit codes are those of shells.
func TestCannotStart(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	for _, c := range []struct {
		program string
		code    int
		want    string
	}{
		{"gclrun-no-such-program", 127, `gclrun: exec: "gclrun-no-such-program": executable file not found in $PATH`},
		{filepath.Join(dir, "none"), 127, "no such file or directory"},
		{dir, 126, "is a directory"},
		{write("plain", "text", 0o644), 126, "permission denied"},
		{write("format", "text", 0o755), 126, "gclrun: replica 0: fork/exec " + dir + "/format: exec format error"},
	} {
		s := prepare(t)
		s.gclrun.Args = []string{s.gclrun.Path, "-n", "2", c.program}
		s.start()
		got := line(t, s.stderr)
		if !strings.HasPrefix(got, "gclrun: ") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.program, got, c.want)
		}
		s.ends(c.code, "", "")
	}
}

// TestMistake: a wrong command line starts nothing.
func TestMistake(t *testing.T) {
	s := prepare(t, "-n", "0")
	s.start()
	s.ends(2, "", "gclrun: -n 0, want 1 to 1024 (-h lists the flags)\n")
}
