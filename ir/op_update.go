package ir

import (
	"fmt"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// CopyInto changes dst in place to the value of src, of the same shape and any element type, and returns dst as it is
// from then on. It is PopXL's copy_var_update_.
func CopyInto(dst, src *Tensor) *Tensor { return Apply1(copyIntoOp{}, nil, dst, src) }

// Accumulate changes dst in place to dst + x and returns it as it is from then on. Both have the same shape and element
// type: float16, bfloat16, float32, float64, int32, int64 or uint32.
func Accumulate(dst, x *Tensor) *Tensor { return Apply1(accumulateOp{}, nil, dst, x) }

// ScaledAdd changes dst in place to dst + factor*x and returns it as it is from then on, for what Accumulate takes.
// 16-bit floats are widened, factor is taken as a float32, and only the sum is rounded to 16 bits; in float32 and
// float64 product and sum are. factor must be a number that AddScalar would take, with 16-bit floats one for float32.
func ScaledAdd(dst, x *Tensor, factor float64) *Tensor {
	return Apply1(&scaledAddOp{factor}, nil, dst, x)
}

type (
	copyIntoOp   struct{}
	accumulateOp struct{}
	scaledAddOp  struct{ factor float64 }
)

func (copyIntoOp) Name() string   { return "copy into" }
func (accumulateOp) Name() string { return "accumulate" }
func (*scaledAddOp) Name() string { return "scaled add" }

func (o *scaledAddOp) String() string { return fmt.Sprintf("scaled add %v", o.factor) }

func (copyIntoOp) Updates() []int   { return []int{0} }
func (accumulateOp) Updates() []int { return []int{0} }
func (*scaledAddOp) Updates() []int { return []int{0} }

// Gradient implements Differentiable.
func (copyIntoOp) Gradient(b *Backward) []*Tensor { return []*Tensor{nil, b.Grad(0)} }

// Gradient implements Differentiable.
func (accumulateOp) Gradient(b *Backward) []*Tensor { return []*Tensor{b.Grad(0), b.Grad(0)} }

// Gradient implements Differentiable. Floats of 16 bits are widened: factor may be none of theirs.
func (o *scaledAddOp) Gradient(b *Backward) []*Tensor {
	d := b.InSpec(1).DType
	wide := factorType(d)
	if wide == d {
		return []*Tensor{b.Grad(0), MulScalar(b.Grad(0), o.factor)}
	}
	return []*Tensor{b.Grad(0), Cast(MulScalar(Cast(b.Grad(0), wide), o.factor), d)}
}

// inferUpdate is the rule of a change in place.
func inferUpdate(in []Spec) ([]Spec, error) {
	if !in[0].Equal(in[1]) {
		return nil, fmt.Errorf("%v into %v, want the same shape and element type", in[1], in[0])
	}
	return in[:1], nil
}

func (copyIntoOp) Infer(in []Spec) ([]Spec, error) { return inferUpdate(in) }

func (accumulateOp) Infer(in []Spec) ([]Spec, error) {
	if err := takes(numberTypes, in[0].DType); err != nil {
		return nil, err
	}
	return inferUpdate(in)
}

func (o *scaledAddOp) Infer(in []Spec) ([]Spec, error) {
	if err := takes(numberTypes, in[0].DType); err != nil {
		return nil, err
	}
	if _, err := numberOf(factorType(in[0].DType), o.factor); err != nil {
		return nil, err
	}
	return inferUpdate(in)
}

// factorType is the type that a factor has for tensors of an element type.
func factorType(d tensor.DType) tensor.DType {
	if d == tensor.F16 || d == tensor.BF16 {
		return tensor.F32
	}
	return d
}

func (copyIntoOp) Bind(m *Memory) (func() error, error) {
	dst, src := m.In[0].Bytes(), m.In[1].Bytes()
	return func() error {
		copy(dst, src)
		return nil
	}, nil
}

func (accumulateOp) Bind(m *Memory) (func() error, error) {
	return plus.bind(m.In[0], m.In[0], m.In[1], nil)
}

// ScratchBytes: a block of each operand, of the result, of factors and of products.
func (*scaledAddOp) ScratchBytes(in []Spec) int { return 5 * blockBytes(in[0].DType) }

func (o *scaledAddOp) Bind(m *Memory) (func() error, error) {
	factor, err := numberOf(factorType(m.In[0].DType()), o.factor)
	if err != nil {
		return nil, err
	}
	switch m.In[0].DType() {
	case tensor.F16, tensor.BF16, tensor.F32:
		return bindScaledAdd[float32](m, factor)
	case tensor.F64:
		return bindScaledAdd[float64](m, factor)
	case tensor.I32:
		return bindScaledAdd[int32](m, factor)
	case tensor.I64:
		return bindScaledAdd[int64](m, factor)
	case tensor.U32:
		return bindScaledAdd[uint32](m, factor)
	}
	return nil, takes(numberTypes, m.In[0].DType())
}

func bindScaledAdd[T number](m *Memory, factor *tensor.Tensor) (func() error, error) {
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
