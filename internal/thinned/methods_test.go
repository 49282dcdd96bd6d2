package thinned

import (
	"slices"
	"testing"

	"gogcl.dev/methods"
)

// TestMethods: each of the gallery has its turn.
func TestMethods(t *testing.T) {
	constants, seen := Constants(), map[methods.Method]bool{}
	n := len(methods.Gallery())
	for turn := range n {
		all := Methods(turn)
		last := len(all) - 1
		if !slices.Equal(all[:last], constants) || !all[last].InGallery() || Methods(turn + n)[last] != all[last] {
			t.Errorf("turn %d: %v", turn, all)
		}
		seen[all[last]] = true
	}
	if len(seen) != n || slices.ContainsFunc(constants, methods.Method.Own) {
		t.Errorf("constants %v, and %v", constants, seen)
	}
}
