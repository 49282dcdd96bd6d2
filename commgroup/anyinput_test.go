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
	listed := lists(t, []int{0, 3}, []int{1, 2, 4})
	uneven, err := listed.Resolve(5)
	if err != nil {
		t.Fatal(err)
	}
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{"Parse": commgroup.Parse, "Lists": commgroup.Lists},
		Types:     []any{commgroup.Group{}, commgroup.Layout{}, commgroup.Type(0)},
		Values:    []any{pairs, layout, listed, uneven, [][]int{{0, 3}, {1, 2, 4}}},
	})
}
