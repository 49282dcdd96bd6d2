package ops

import (
	"fmt"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Cast returns t in another element type; both are among float16, bfloat16, float32, float64, int32, int64, uint32 and
// bool.
//
//	float to float       rounded once to nearest even; infinite if too large
//	integer to float     the same
//	float to integer     rounded toward zero; the least or largest integer if too small or large; 0 for NaN
//	integer to integer   the lower bits, as Go has it: they wrap
//	bool to number       1 for true, 0 for false
//	number to bool       true unless 0; NaN is true
//
// The gradient is cast back between floats, and there is none otherwise.
func Cast(t *ir.Tensor, to tensor.DType) *ir.Tensor {
	return (&row{
		name: "cast", says: fmt.Sprintf("cast to %v", to),
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
			if err := takes(valueTypes, in[0].DType); err != nil {
				return nil, err
			}
			return []ir.Spec{{Shape: in[0].Shape, DType: to}}, wrapInput("the result", takes(valueTypes, to))
		},
		scratch: func(in []ir.Spec) int { return blocksBytes(to, in...) },
		bind:    func(m *ir.Memory) (func() error, error) { return bindCast(m, to) },
		back: func(b *ir.Backward) []*ir.Tensor {
			if from := b.InSpec(0).DType; from.IsFloat() && to.IsFloat() {
				return []*ir.Tensor{Cast(b.Grad(0), from)}
			}
			return []*ir.Tensor{nil}
		},
	}).of(t)
}

func bindCast(m *ir.Memory, to tensor.DType) (func() error, error) {
	narrow := to == tensor.F16 || to == tensor.BF16
	switch from := m.In[0].DType(); from {
	case to:
		return bindCopy(m.Out[0], m.In[0]), nil
	case tensor.Bool:
		return castFrom[uint8](m, toFloat32[uint8])
	case tensor.I32:
		return castInteger[int32](m, narrow)
	case tensor.I64:
		return castInteger[int64](m, narrow)
	case tensor.U32:
		return castInteger[uint32](m, narrow)
	case tensor.F64:
		if narrow {
			return castFloat(m, oddFloats)
		}
		return castFloat(m, convert[float32, float64])
	}
	return castFloat(m, convert[float32, float32])
}

func castInteger[C int32 | int64 | uint32](m *ir.Memory, narrow bool) (func() error, error) {
	if narrow {
		return castFrom(m, oddIntegers[C])
	}
	return castFrom(m, toFloat32[C])
}

// castFrom is a cast of integers, where to32 makes a float32 or what is narrowed further.
func castFrom[C int32 | int64 | uint32 | uint8](m *ir.Memory, to32 func(d []float32, x []C)) (func() error, error) {
	dst, src := m.Out[0], m.In[0]
	switch dst.DType() {
	case tensor.Bool:
		return each1(dst, src, m.Scratch, isTrue[C])
	case tensor.I32:
		return each1(dst, src, m.Scratch, convert[int32, C])
	case tensor.I64:
		return each1(dst, src, m.Scratch, convert[int64, C])
	case tensor.U32:
		return each1(dst, src, m.Scratch, convert[uint32, C])
	case tensor.F64:
		return each1(dst, src, m.Scratch, convert[float64, C])
	}
	return each1(dst, src, m.Scratch, to32)
}

func castFloat[C float](m *ir.Memory, to32 func(d []float32, x []C)) (func() error, error) {
	dst, src := m.Out[0], m.In[0]
	switch dst.DType() {
	case tensor.Bool:
		return each1(dst, src, m.Scratch, isTrue[C])
	case tensor.I32:
		return each1(dst, src, m.Scratch, truncate[int32, C](dst.DType()))
	case tensor.I64:
		return each1(dst, src, m.Scratch, truncate[int64, C](dst.DType()))
	case tensor.U32:
		return each1(dst, src, m.Scratch, truncate[uint32, C](dst.DType()))
	case tensor.F64:
		return each1(dst, src, m.Scratch, convert[float64, C])
	}
	return each1(dst, src, m.Scratch, to32)
}

func toFloat32[C int32 | int64 | uint32 | uint8](d []float32, x []C) { convert(d, x) }

func convert[D number, C number | uint8](d []D, x []C) {
	for i, v := range x {
		d[i] = D(v)
	}
}

func isTrue[C number | uint8](d []bool, x []C) {
	for i, v := range x {
		d[i] = v != 0
	}
}

// truncate rounds toward zero and keeps within the type.
func truncate[D int32 | int64 | uint32, C float](to tensor.DType) func(d []D, x []C) {
	lo, above := integerRange(to)
	least := D(lo)
	most := least - 1 // wraps
	return func(d []D, x []C) {
		for i, v := range x {
			switch v := float64(v); {
			case v != v:
				d[i] = 0
			case v <= lo:
				d[i] = least
			case v >= above:
				d[i] = most
			default:
				d[i] = D(v)
			}
		}
	}
}

// oddFloats makes float32s that are to be rounded further.
func oddFloats(d []float32, x []float64) {
	for i, v := range x {
		d[i] = kernel.OddF32(v)
	}
}

// oddIntegers makes float32s that are to be rounded further.
func oddIntegers[C int32 | int64 | uint32](d []float32, x []C) {
	for i, v := range x {
		d[i] = kernel.OddF32OfInt(v)
	}
}
