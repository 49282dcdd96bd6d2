package inproc_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/transport/inproc"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	anyinput.Check(t, anyinput.API{Functions: map[string]any{"New": inproc.New, "Link": inproc.Link}})
}
