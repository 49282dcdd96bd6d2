package ops

import (
	"fmt"
	"math"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// TopK is the k greatest elements of each row of the last dimension, the greatest first, and where in the row they are,
// as int32: both in the shape of t with k in place of the last extent. Of equal ones the first comes first, as do 0 and
// -0 in their order; a NaN comes after all else. It takes floats, int32, int64 and uint32. The gradient of a value goes
// to its place, and the places have none. A row costs its length times log k, and k moves for each that is among the
// greatest so far.
//
// Errors: other types, a scalar, a k that is not 1 to the length of a row, rows of more than int32 counts.
func TopK(t *ir.Tensor, k int) (values, places *ir.Tensor) {
	out := ir.Apply(&row{
		name: "top k", says: fmt.Sprintf("top %d", k),
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
			if err := takes(numberTypes, in[0].DType); err != nil {
				return nil, err
			}
			_, width, err := lastDimension(in[0].Shape)
			if err != nil {
				return nil, err
			}
			if k < 1 || k > width || width > math.MaxInt32 {
				return nil, fmt.Errorf("the greatest %d of rows of %d elements, want 1 to as many, and at most %d", k, width,
					math.MaxInt32)
			}
			shape := in[0].Shape.Clone()
			shape[len(shape)-1] = k
			return []ir.Spec{{Shape: shape, DType: in[0].DType}, {Shape: shape, DType: tensor.I32}}, nil
		},
		f32: bindTopK[float32], f64: bindTopK[float64],
		bind: func(m *ir.Memory) (func() error, error) {
			return byType(m.In[0].DType(), nil, nil, bindTopK[int32], bindTopK[int64], bindTopK[uint32])(m)
		},
		back: func(b *ir.Backward) []*ir.Tensor {
			s := b.InSpec(0).Shape
			return []*ir.Tensor{scatterRows(b.Grad(0), b.Out(1), s[len(s)-1])}
		},
	}, nil, t)
	if len(out) < 2 { // after an error
		return out[0], out[0]
	}
	return out[0], out[1]
}

// precedes reports whether x comes before y, which is earlier in the row.
func precedes[T number](x, y T) bool { return x > y || y != y && x == x }

func bindTopK[T number](m *ir.Memory) (func() error, error) {
	x, y, places := elementsOf[T](m.In[0]), elementsOf[T](m.Out[0]), elementsOf[int32](m.Out[1])
	n, k := width(m.In[0]), width(m.Out[0])
	return func() error {
		for r := range len(y) / k {
			row, best, at := x[r*n:][:n], y[r*k:][:k], places[r*k:][:k]
			found := 0
			for i, v := range row {
				if found == k && !precedes(v, best[k-1]) {
					continue
				}
				lo, hi := 0, found // before best[lo] all stay
				for lo < hi {
					if mid := (lo + hi) / 2; precedes(v, best[mid]) {
						hi = mid
					} else {
						lo = mid + 1
					}
				}
				found = min(found+1, k)
				copy(best[lo+1:found], best[lo:])
				copy(at[lo+1:found], at[lo:])
				best[lo], at[lo] = v, int32(i)
			}
		}
		return nil
	}, nil
}

// scatterRows puts the elements of each row of t at their places in rows of so many zeros.
func scatterRows(t, places *ir.Tensor, width int) *ir.Tensor {
	return moveRows("scatter in rows", t, places, width, func(rows *rowMove, r int) {
		to := rows.out[r*rows.width*rows.bytes:][:rows.width*rows.bytes]
		clear(to)
		for i, at := range rows.places[r*rows.few:][:rows.few] {
			copy(to[int(at)*rows.bytes:][:rows.bytes], rows.in[(r*rows.few+i)*rows.bytes:])
		}
	}, func(b *ir.Backward) *ir.Tensor { return gatherRows(b.Grad(0), b.In(1)) })
}

// gatherRows takes the elements of each row of t that places name.
func gatherRows(t, places *ir.Tensor) *ir.Tensor {
	s := places.Shape()
	few := s[len(s)-1]
	return moveRows("gather in rows", t, places, few, func(rows *rowMove, r int) {
		for i, at := range rows.places[r*rows.few:][:rows.few] {
			copy(rows.out[(r*rows.few+i)*rows.bytes:][:rows.bytes], rows.in[(r*rows.width+int(at))*rows.bytes:])
		}
	}, func(b *ir.Backward) *ir.Tensor {
		s := b.InSpec(0).Shape
		return scatterRows(b.Grad(0), b.In(1), s[len(s)-1])
	})
}

// rowMove is memory of rows, some of few elements and some of width.
type rowMove struct {
	in, out    []byte
	places     []int32
	few, width int
	bytes      int // of an element
}

// moveRows is a row operation on elements of any type, with a result of rows of so many.
func moveRows(name string, t, places *ir.Tensor, to int, move func(rows *rowMove, r int),
	back func(b *ir.Backward) *ir.Tensor) *ir.Tensor {
	return (&row{
		name: name,
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
			shape := in[0].Shape.Clone()
			shape[len(shape)-1] = to
			return []ir.Spec{{Shape: shape, DType: in[0].DType}}, nil
		},
		bind: func(m *ir.Memory) (func() error, error) {
			rows := &rowMove{in: m.In[0].Bytes(), out: m.Out[0].Bytes(), places: elementsOf[int32](m.In[1]),
				few: width(m.In[1]), width: max(width(m.In[0]), width(m.Out[0])), bytes: m.In[0].DType().Size()}
			count := len(rows.places) / rows.few
			return func() error {
				for r := range count {
					move(rows, r)
				}
				return nil
			}, nil
		},
		back: func(b *ir.Backward) []*ir.Tensor { return []*ir.Tensor{back(b), nil} },
	}).of(t, places)
}
