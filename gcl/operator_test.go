package gcl_test

import (
	"slices"
	"strings"
	"testing"

	"gogcl.dev/gcl"
)

var operatorNames = []string{"ADD", "MEAN", "MUL", "MIN", "MAX", "LOGICAL_AND", "LOGICAL_OR", "SQUARE_ADD", "LOCAL"}

func TestOperatorNames(t *testing.T) {
	for i, op := range []gcl.Operator{gcl.Add, gcl.Mean, gcl.Mul, gcl.Min, gcl.Max, gcl.LogicalAnd, gcl.LogicalOr,
		gcl.SquareAdd, gcl.Local} {
		text, err := op.MarshalText()
		if err != nil || string(text) != operatorNames[i] || op.String() != operatorNames[i] {
			t.Errorf("%d: %q, %q, %v, want %s", i, text, op, err, operatorNames[i])
		}
		parsed, err := gcl.ParseOperator(operatorNames[i])
		if err != nil || parsed != op {
			t.Errorf("%s: %v, %v", operatorNames[i], parsed, err)
		}
	}
	if text, err := gcl.Operator(240).MarshalText(); err == nil {
		t.Errorf("Operator(240): %q, no error", text)
	}
	if s := gcl.Operator(240).String(); s != "Operator(240)" {
		t.Errorf("Operator(240): %q", s)
	}
}

// FuzzParseOperator: what parses is one of the nine names and prints as it was; what does not leaves the receiver
// alone and lists the names.
func FuzzParseOperator(f *testing.F) {
	for _, name := range append(operatorNames, "", "add",
		"ADD ", " ADD", "Operator(240)", "LOGICAL AND", "SQUARE_ADD\x00", "AD") {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		op, err := gcl.ParseOperator(text)
		if known := slices.Contains(operatorNames, text); known != (err == nil) {
			t.Fatalf("%q: %v", text, err)
		}
		got := gcl.Local
		err2 := got.UnmarshalText([]byte(text))
		if err != nil {
			if err2 == nil || got != gcl.Local || op != 0 {
				t.Errorf("%q: UnmarshalText: %v, %v; ParseOperator: %v", text, got, err2, op)
			}
			for _, name := range operatorNames {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%q: %q does not list %s", text, err, name)
				}
			}
			return
		}
		if op.String() != text || err2 != nil || got != op {
			t.Errorf("%q: %v; UnmarshalText: %v, %v", text, op, got, err2)
		}
	})
}
