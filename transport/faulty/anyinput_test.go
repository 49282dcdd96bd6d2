package faulty_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/transport/faulty"
	"gogcl.dev/transport/inproc"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	ends, err := inproc.New(2)
	if err != nil {
		t.Fatal(err)
	}
	defer ends[0].Close()
	defer ends[1].Close()
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"Wrap": faulty.Wrap, "WrapMemory": faulty.WrapMemory,
			"WrapNative": faulty.WrapNative, "Corrupt": faulty.Corrupt, "Cut": faulty.Cut,
			"Delay": faulty.Delay, "Drop": faulty.Drop, "FailSend": faulty.FailSend, "Hide": faulty.Hide,
			"Random": faulty.Random, "Slow": faulty.Slow,
		},
		Types:  []any{faulty.Fault{}},
		Values: []any{ends, faulty.Drop(0, 1), faulty.Cut(0, 1, 1), 2},
	})
}
