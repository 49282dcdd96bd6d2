package commgroup_test

import (
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/internal/anyinput"
)

// TestAnyInput: no call panics, but those of a Layout with a rank or group that is none.
func TestAnyInput(t *testing.T) {
	t.Parallel()
	pairs := commgroup.Group{Type: commgroup.Consecutive, Size: 2}
	layout, err := pairs.Resolve(4)
	if err != nil {
		t.Fatal(err)
	}
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{"Parse": commgroup.Parse},
		Types:     []any{commgroup.Group{}, commgroup.Layout{}, commgroup.Type(0)},
		Values:    []any{pairs, layout},
	})
}
