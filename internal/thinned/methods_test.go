package thinned

import (
	"slices"
	"testing"

	"gogcl.dev/methods"
)

// TestMethods: each of the gallery has its turn.
func TestMethods(t *testing.T) {
	constants, seen := Constants(), map[methods.Method]bool{}
	for turn := range len(methods.Gallery()) {
		all := Methods(turn)
		last := len(all) - 1
		if !slices.Equal(all[:last], constants) || !all[last].InGallery() || Methods(turn + len(methods.Gallery()))[last] != all[last] {
			t.Errorf("turn %d: %v", turn, all)
		}
		seen[all[last]] = true
	}
	if len(seen) != len(methods.Gallery()) || slices.ContainsFunc(constants, methods.Method.Own) {
		t.Errorf("constants %v, and %v", constants, seen)
	}
}
