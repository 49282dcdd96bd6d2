package checkpoint_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/rts/checkpoint"
	"gogcl.dev/tensor"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	data, err := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	d, err := checkpoint.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"Load": checkpoint.Load, "Open": checkpoint.Open, "Save": checkpoint.Save, "Keep": checkpoint.Keep,
			"OpenTogether": checkpoint.OpenTogether,
		},
		Types: []any{
			checkpoint.Directory{}, checkpoint.SaveOption(nil), checkpoint.Tensor{},
		},
		Values: []any{
			data, d, checkpoint.Keep(2), &checkpoint.Directory{}, map[string]string{"a": "b"},
		},
		Scratch: true,
		Skip:    map[string]string{"Directory.Close": "other calls are to find it open"},
	})
}
