package remote_test

import (
	"fmt"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// Variables of one buffer without a name of its own find their values again in whatever order they are made.
func TestOrderWithinBuffer(t *testing.T) {
	dir := t.TempDir()
	for turn, order := range [][]int{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}} {
		p := ir.New(1)
		remote.UseStorage(p, remote.Dir(dir))
		b := remote.NewBuffer(p, i32(), 4)
		variables := make([]*remote.Variable, 3)
		for _, i := range order {
			begin := tensor.Scalar(int32(100*turn + i)) // after the first turn it counts for nothing
			variables[i] = remote.NewVariable(p, begin, b, i+1, remote.Name(fmt.Sprint("v", i)))
		}
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range variables {
			if got, err := v.Read(s); err != nil || !got.Equal(tensor.Scalar(int32(i))) {
				t.Errorf("turn %d: variable %d is %v, %v", turn, i, got, err)
			}
		}
		if b.Name() != "v0" {
			t.Errorf("turn %d: the buffer has the name %q", turn, b.Name())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
