package topology_test

import (
	"strings"
	"testing"

	"gogcl.dev/topology"
)

func TestRingNames(t *testing.T) {
	t.Parallel()
	want := []string{"auto", "rung-ring-2", "rung-ring-4", "rung-ring-8", "ring-on-line", "peripheral-ring"}
	for i, name := range want {
		r, err := topology.ParseRing(name)
		if err != nil || r != topology.RingName(i) || r.String() != name {
			t.Errorf("%s is %v, %v", name, r, err)
		}
		text, err := r.MarshalText()
		var back topology.RingName
		if err != nil || string(text) != name || back.UnmarshalText(text) != nil || back != r {
			t.Errorf("%v is written %s, %v, and read %v", r, text, err, back)
		}
	}
	for _, name := range []string{"", "Auto", "rung-ring-3", "auto "} {
		r := topology.RingOnLine
		err := r.UnmarshalText([]byte(name))
		if err == nil || !strings.Contains(err.Error(), strings.Join(want, ", ")) || r != topology.RingOnLine {
			t.Errorf("%q is %v, %v, want an error with all names", name, r, err)
		}
	}
	if text, err := topology.RingName(6).MarshalText(); err == nil {
		t.Errorf("ring 6 is written %s", text)
	}
}

func FuzzParseRing(f *testing.F) {
	for _, name := range []string{"auto", "rung-ring-8", "ring-on-line", "peripheral-ring", "rung-ring-", "\x00"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r, err := topology.ParseRing(name)
		if err == nil && r.String() != name {
			t.Fatalf("%q is %v", name, r)
		}
		if err != nil && r != 0 {
			t.Fatalf("%q is %v beside the error %v", name, r, err)
		}
	})
}
