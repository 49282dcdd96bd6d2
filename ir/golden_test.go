package ir_test

import (
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/internal/golden"
	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
)

// TestProgramsStay holds 1,000 random programs, and 200 with gradients, against what they were: as text, with where
// everything lies and which code is loaded when.
func TestProgramsStay(t *testing.T) {
	if irtest.Race {
		t.Skip("the race detector changes no program")
	}
	const each = 100 // programs of a hash
	texts := map[string]string{}
	add := func(kind string, n int, program func(seed uint64) *ir.Program) {
		for first := 0; first < n; first += each {
			var b strings.Builder
			for seed := first; seed < first+each; seed++ {
				p := program(uint64(seed))
				if p.Err() != nil { // there is no gradient of it
					continue
				}
				s, err := ir.NewSession(p)
				if err != nil {
					t.Fatalf("%s, seed %d: %v", kind, seed, err)
				}
				fmt.Fprintf(&b, "program %d\n%s\n", seed, golden.Program(s))
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			texts[fmt.Sprintf("%s-%d-%d", kind, first, first+each-1)] = b.String()
		}
	}
	add("random", 1000, func(seed uint64) *ir.Program { return ir.RandomProgram(seed, true) })
	add("gradients", 200, func(seed uint64) *ir.Program { return newGradientProgram(seed, true).Program })
	golden.Hashes(t, "programs.txt", texts)
}
