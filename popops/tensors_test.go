package popops_test

import (
	"strings"
	"testing"

	"gogcl.dev/tensor"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks that err has a text.
func wantError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want one with %q", name, err, want)
	}
}

// offsetsTensor is offsets as a tensor of int32 or uint32.
func offsetsTensor[I int32 | uint32](t testing.TB, offsets []I, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(offsets[:len(offsets):len(offsets)], shape...)
	must(t, err)
	return x
}

// of is data as a tensor.
func of[T tensor.Element](t testing.TB, data []T, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(data, shape...)
	must(t, err)
	return x
}
