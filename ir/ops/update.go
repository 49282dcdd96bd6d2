package ops

import (
	"fmt"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// CopyInto changes dst in place to the value of src, of the same shape and any element type, and returns dst as it is
// from then on. It is PopXL's copy_var_update_.
func CopyInto(dst, src *ir.Tensor) *ir.Tensor {
	return (&row{
		name: "copy into", infer: inferUpdate, changes: []int{0},
		bind: func(m *ir.Memory) (func() error, error) { return bindCopy(m.In[0], m.In[1]), nil },
		back: func(b *ir.Backward) []*ir.Tensor { return []*ir.Tensor{nil, b.Grad(0)} },
	}).of(dst, src)
}

// Accumulate changes dst in place to dst + x and returns it as it is from then on. Both have the same shape and element
// type: float16, bfloat16, float32, float64, int32, int64 or uint32.
func Accumulate(dst, x *ir.Tensor) *ir.Tensor {
	return (&row{
		name: "accumulate", changes: []int{0},
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
			if err := takes(numberTypes, in[0].DType); err != nil {
				return nil, err
			}
			return inferUpdate(in)
		},
		bind: func(m *ir.Memory) (func() error, error) { return plus.bind(m.In[0], m.In[0], m.In[1], nil) },
		back: func(b *ir.Backward) []*ir.Tensor { return []*ir.Tensor{b.Grad(0), b.Grad(0)} },
	}).of(dst, x)
}

// ScaledAdd changes dst in place to dst + factor*x and returns it as it is from then on, for what Accumulate takes.
// 16-bit floats are widened, factor is taken as a float32, and only the sum is rounded to 16 bits; in float32 and
// float64 product and sum are. factor must be a number that AddScalar would take, with 16-bit floats one for float32.
func ScaledAdd(dst, x *ir.Tensor, factor float64) *ir.Tensor {
	return (&row{
		name: "scaled add", says: fmt.Sprintf("scaled add %v", factor), changes: []int{0},
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
			if err := takes(numberTypes, in[0].DType); err != nil {
				return nil, err
			}
			if _, err := numberOf(factorType(in[0].DType), factor); err != nil {
				return nil, err
			}
			return inferUpdate(in)
		},
		// A block of each operand, of the result, of factors and of products.
		scratch: func(in []ir.Spec) int { return 5 * blockBytes(in[0].DType) },
		bind: func(m *ir.Memory) (func() error, error) {
			by, err := numberOf(factorType(m.In[0].DType()), factor)
			if err != nil {
				return nil, err
			}
			return byType(m.In[0].DType(), bindScaledAdd[float32], bindScaledAdd[float64], bindScaledAdd[int32],
				bindScaledAdd[int64], bindScaledAdd[uint32])(m, by)
		},
		back: func(b *ir.Backward) []*ir.Tensor { // floats of 16 bits are widened: factor may be none of theirs
			d := b.InSpec(1).DType
			wide := factorType(d)
			if wide == d {
				return []*ir.Tensor{b.Grad(0), MulScalar(b.Grad(0), factor)}
			}
			return []*ir.Tensor{b.Grad(0), Cast(MulScalar(Cast(b.Grad(0), wide), factor), d)}
		},
	}).of(dst, x)
}

// inferUpdate is the rule of a change in place.
func inferUpdate(in []ir.Spec) ([]ir.Spec, error) {
	if !in[0].Equal(in[1]) {
		return nil, fmt.Errorf("%v into %v, want the same shape and element type", in[1], in[0])
	}
	return in[:1], nil
}

// bindCopy copies what has as many bytes.
func bindCopy(to, from *tensor.Tensor) func() error {
	dst, src := to.Bytes(), from.Bytes()
	return func() error {
		copy(dst, src)
		return nil
	}
}

// factorType is the type that a factor has for tensors of an element type.
func factorType(d tensor.DType) tensor.DType {
	if d == tensor.F16 || d == tensor.BF16 {
		return tensor.F32
	}
	return d
}

func bindScaledAdd[T number](m *ir.Memory, factor *tensor.Tensor) (func() error, error) {
	dst := m.In[0]
	c := cutter(m.Scratch)
	factors, err := newReader[T](factor, dst.Shape(), c.block(dst))
	if err != nil {
		return nil, err
	}
	products, err := tensor.FromBytes[T](c.block(dst))
	if err != nil {
		return nil, err
	}
	add, mul := folded[T](kernel.Add), folded[T](kernel.Mul)
	run, err := each2(dst, dst, m.In[1], c, func(d, y, x []T) {
		p := products[:len(d)]
		mul(p, x, factors.take(len(d)))
		add(d, y, p)
	})
	return func() error {
		factors.rewind()
		return run()
	}, err
}
