package main

import (
	"fmt"
	"testing"

	"gogcl.dev/internal/golden"
)

// TestProgramsStay holds the step and its reference against what they were.
func TestProgramsStay(t *testing.T) {
	onNumbers(t)
	texts := map[string]string{}
	for _, n := range []int{1, 2, 4} {
		cfg, b, from, s, _ := begun(t, n)
		r, err := newReference(cfg, b, from)
		if err != nil {
			t.Fatal(err)
		}
		texts[fmt.Sprint("step-", n)] = golden.Program(s.session)
		texts[fmt.Sprint("reference-", n)] = golden.Program(r.session)
		if err := r.session.Close(); err != nil {
			t.Error(err)
		}
	}
	golden.Hashes(t, "programs.txt", texts)
}
