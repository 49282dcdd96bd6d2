package ir

import (
	"strings"
	"testing"

	"gogcl.dev/tensor"
)

// TestSumToFailures has what no gradient asks for.
func TestSumToFailures(t *testing.T) {
	for _, c := range []struct {
		op   Op
		in   Spec
		want string
	}{
		{&sumToOp{tensor.Shape{3}}, Spec{tensor.Shape{2, 3}, tensor.I32}, "element type int32, want float16, "},
		{&sumToOp{tensor.Shape{2}}, Spec{tensor.Shape{2, 3}, tensor.F32}, "the sum in shape (2,), want one that can be repeated to (2, 3)"},
		{&sumToOp{tensor.Shape{4, 1, 1}}, Spec{tensor.Shape{2, 3}, tensor.F32}, "the sum in shape (4, 1, 1), want one that can be repeated to (2, 3)"},
		{&expandOp{shape: tensor.Shape{2}}, Spec{tensor.Shape{3}, tensor.F32}, "shape (3,) cannot be repeated to be (2,)"},
		{&expandOp{shape: tensor.Shape{3}}, Spec{tensor.Shape{2, 3}, tensor.F32}, "shape (2, 3) cannot be repeated to be (3,)"},
	} {
		if _, err := c.op.Infer([]Spec{c.in}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v of %v: error %v, want one that begins with %q", c.op, c.in, err, c.want)
		}
	}
}
