//go:build noasm || (!amd64 && !arm64)

package kernel

import "testing"

// TestNoAssembly: with the build tag noasm, and on processors that there is no assembly for, all loops are plain Go.
func TestNoAssembly(t *testing.T) {
	if len(versions) != 1 || Version() != "go" {
		t.Errorf("version %q of %d is in use, want go and no other", Version(), len(versions))
	}
}
