package methodtest

import (
	"testing"

	"gogcl.dev/methods"
)

// TestGallery carries out the schedules of the gallery: a power of two, one more, and sizes between.
func TestGallery(t *testing.T) {
	t.Parallel()
	for _, l := range methods.Gallery() {
		switch l.Name {
		case "double_binary_tree":
			l.Generator = methods.DoubleBinaryTree(2) // fewer pieces have fewer mutants
		case "hierarchical_8":
			l.Generator = methods.Hierarchical(2) // for small groups
		}
		t.Run("method="+l.Name, func(t *testing.T) {
			t.Parallel()
			Prove(t, l.Generator, 2, 3, 4, 5, 8)
		})
	}
}
