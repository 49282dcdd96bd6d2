package main

import (
	"io"
	"strings"
	"testing"

	"gogcl.dev/internal/golden"
)

// TestProgramsStay holds the step against what it was.
func TestProgramsStay(t *testing.T) {
	texts := map[string]string{}
	for _, args := range []string{"-n 2 -mib 1 -width 64", "-n 3 -mib 1 -width 96"} {
		cfg, err := parseFlags(strings.Fields(args), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		m, err := newModel(cfg, t.TempDir(), false)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.ReplaceAll(args, " ", "")] = golden.Program(m.session)
		if err := m.session.Close(); err != nil {
			t.Error(err)
		}
	}
	golden.Hashes(t, "programs.txt", texts)
}
