package methodtest

import (
	"testing"

	"gogcl.dev/methods"
)

// TestGallery carries out the schedules of the gallery: a power of two, one more, and sizes between.
func TestGallery(t *testing.T) {
	t.Parallel()
	for _, l := range methods.Gallery() {
		if l.Name == "double_binary_tree" {
			l.Generator = methods.DoubleBinaryTree(2) // fewer pieces have fewer mutants
		}
		t.Run("method="+l.Name, func(t *testing.T) {
			t.Parallel()
			Prove(t, l.Generator, 2, 3, 4, 5, 8)
		})
	}
}
