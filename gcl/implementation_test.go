package gcl_test

import (
	"slices"
	"strings"
	"testing"

	"gogcl.dev/gcl"
)

var implementationNames = []string{"Auto", "Syncless", "Syncful", "Hybrid"}

func TestImplementationNames(t *testing.T) {
	for i, m := range []gcl.Implementation{gcl.AutoImplementation, gcl.Syncless, gcl.Syncful, gcl.Hybrid} {
		text, err := m.MarshalText()
		if err != nil || string(text) != implementationNames[i] || m.String() != implementationNames[i] {
			t.Errorf("%d: %q, %q, %v, want %s", i, text, m, err, implementationNames[i])
		}
		parsed, err := gcl.ParseImplementation(implementationNames[i])
		if err != nil || parsed != m {
			t.Errorf("%s: %v, %v", implementationNames[i], parsed, err)
		}
	}
	if text, err := gcl.Implementation(4).MarshalText(); err == nil ||
		!strings.Contains(err.Error(), "Implementation(4)") {
		t.Errorf("Implementation(4): %q, %v", text, err)
	}
	if s := gcl.Implementation(4).String(); s != "Implementation(4)" {
		t.Errorf("Implementation(4): %q", s)
	}
}

// FuzzParseImplementation: what parses is one of the names and prints as it was; what does not leaves the receiver
// alone and lists the names.
func FuzzParseImplementation(f *testing.F) {
	for _, name := range append(slices.Clone(implementationNames), "",
		"auto", "hybrid", "Syncful ", " Syncful", "Implementation(4)", "SYNCLESS", "Syncful\x00", "Sync") {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := gcl.ParseImplementation(text)
		if known := slices.Contains(implementationNames, text); known != (err == nil) {
			t.Fatalf("%q: %v", text, err)
		}
		got := gcl.Syncful
		err2 := got.UnmarshalText([]byte(text))
		if err != nil {
			if err2 == nil || got != gcl.Syncful || m != 0 {
				t.Errorf("%q: UnmarshalText: %v, %v; ParseImplementation: %v", text, got, err2, m)
			}
			for _, name := range implementationNames {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%q: %q does not list %s", text, err, name)
				}
			}
			return
		}
		if m.String() != text || err2 != nil || got != m {
			t.Errorf("%q: %v; UnmarshalText: %v, %v", text, m, got, err2)
		}
	})
}
