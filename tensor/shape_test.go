package tensor

import (
	"math"
	"math/bits"
	"strings"
	"testing"
)

func TestShape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shape Shape
		text  string
		n     int
	}{
		{nil, "()", 1},
		{Shape{}, "()", 1},
		{Shape{0}, "(0,)", 0},
		{Shape{7}, "(7,)", 7},
		{Shape{2, 3}, "(2, 3)", 6},
		{Shape{2, 0, 3}, "(2, 0, 3)", 0},
		{Shape{4, 1, 5, 6}, "(4, 1, 5, 6)", 120},
		{Shape{1, 1}, "(1, 1)", 1},
	} {
		if got, err := c.shape.Elements(); err != nil || got != c.n {
			t.Errorf("%v has %d elements, %v; want %d", c.shape, got, err, c.n)
		}
		if err := c.shape.Validate(); err != nil {
			t.Errorf("%v: %v", c.shape, err)
		}
		if got := c.shape.String(); got != c.text {
			t.Errorf("%q, want %q", got, c.text)
		}
		if !c.shape.Clone().Equal(c.shape) || c.shape.Equal(append(c.shape.Clone(), 1)) {
			t.Errorf("%v: Equal", c.shape)
		}
	}
	s := Shape{2, 3}
	if c := s.Clone(); &c[0] == &s[0] {
		t.Error("a clone shares memory")
	}
	if (Shape{2, 3}).Equal(Shape{3, 2}) {
		t.Error("(2, 3) equals (3, 2)")
	}
}

// TestShapeOverflow works at the limits of int, whatever its size.
func TestShapeOverflow(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt
	root := 1 << (bits.UintSize / 2) // its square is 2^32 or 2^64
	for _, c := range []struct {
		shape Shape
		n     int // -1: an error
	}{
		{Shape{most}, most},
		{Shape{most, 1}, most},
		{Shape{1, most}, most},
		{Shape{most, 2}, -1},
		{Shape{2, most}, -1},
		{Shape{most/2 + 1, 2}, -1},
		{Shape{most / 2, 2}, most - 1},
		{Shape{root, root}, -1},
		{Shape{root, root, root, root}, -1}, // wraps around to 0
		{Shape{root, root, 0}, 0},
		{Shape{0, most, most}, 0},
		{Shape{-1}, -1},
		{Shape{0, -1}, -1},
		{Shape{-1, -1}, -1},
		{Shape{most, most, -1}, -1},
		{Shape{math.MinInt, 0}, -1},
	} {
		got, err := c.shape.Elements()
		switch {
		case c.n < 0 && (err == nil || !strings.Contains(err.Error(), c.shape.String())):
			t.Errorf("%v: %d, %v; want an error that names it", c.shape, got, err)
		case c.n >= 0 && (err != nil || got != c.n):
			t.Errorf("%v: %d, %v; want %d", c.shape, got, err, c.n)
		}
		if valid := c.shape.Validate() == nil; valid != (c.n >= 0) {
			t.Errorf("%v: valid is %v", c.shape, valid)
		}
	}
	for _, d := range []DType{U8, F32, F64} {
		for _, n := range []int{most / d.Size(), most/d.Size() + 1, most} {
			if x, err := New(d, n); err == nil {
				t.Errorf("New(%v, %d): %d bytes, want an error", d, n, len(x.Bytes()))
			}
		}
	}
}
