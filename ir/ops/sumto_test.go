package ops

import (
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// TestSumToFailures has what no gradient asks for.
func TestSumToFailures(t *testing.T) {
	for _, c := range []struct {
		op   func(in []ir.Spec) ([]ir.Spec, error)
		in   ir.Spec
		want string
	}{
		{sumToRow(tensor.Shape{3}).infer, ir.Spec{Shape: tensor.Shape{2, 3}, DType: tensor.I32}, "element type int32, want float16, "},
		{sumToRow(tensor.Shape{2}).infer, ir.Spec{Shape: tensor.Shape{2, 3}, DType: tensor.F32}, "the sum in shape (2,), want one that can be repeated to (2, 3)"},
		{sumToRow(tensor.Shape{4, 1, 1}).infer, ir.Spec{Shape: tensor.Shape{2, 3}, DType: tensor.F32}, "the sum in shape (4, 1, 1), want one that can be repeated to (2, 3)"},
		{expansion{shape: tensor.Shape{2}}.infer, ir.Spec{Shape: tensor.Shape{3}, DType: tensor.F32}, "shape (3,) cannot be repeated to be (2,)"},
		{expansion{shape: tensor.Shape{3}}.infer, ir.Spec{Shape: tensor.Shape{2, 3}, DType: tensor.F32}, "shape (2, 3) cannot be repeated to be (3,)"},
	} {
		if _, err := c.op([]ir.Spec{c.in}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one that begins with %q", c.in, err, c.want)
		}
	}
}
