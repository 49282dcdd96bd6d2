//go:build !noasm

package kernel

import (
	"testing"

	"golang.org/x/sys/cpu"
)

// TestNEON: NEON is in use where the processor has it, which is everywhere, unless GODEBUG=cpu.asimd=off hides it.
func TestNEON(t *testing.T) {
	want := "go"
	if cpu.ARM64.HasASIMD {
		want = "neon"
	}
	if Version() != want {
		t.Errorf("version %q is in use, want %q", Version(), want)
	}
}
