package slice

import (
	"fmt"
	"math"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// Update is t with the slices s, of the shape that Slice gives, at offsets: of what is written twice the last remains.
// See popops.DynamicUpdate, MultiUpdate and GroupedMultiUpdate.
func (f Form) Update(t, s, offsets *ir.Tensor) *ir.Tensor { return f.update(put, t, s, offsets) }

// UpdateInPlace changes t to what Update gives, and returns it as it is from then on. s must not share t's memory.
func (f Form) UpdateInPlace(t, s, offsets *ir.Tensor) *ir.Tensor {
	return f.updateInPlace(put, t, s, offsets)
}

// UpdateAdd is t with scale times each of the slices s added at offsets, in their order: popops.MultiUpdateAdd says how
// it is rounded. scale is one element of t's type, or for floats of 16 bits of float32. Not of Dynamic.
func (f Form) UpdateAdd(t, s, offsets, scale *ir.Tensor) *ir.Tensor {
	return f.update(addTo, t, s, offsets, scale)
}

// UpdateAddInPlace changes t to what UpdateAdd gives, and returns it as it is from then on. What is not added to costs
// nothing: with minus the rate as scale it is a step of gradient descent on the rows of a table that were used.
func (f Form) UpdateAddInPlace(t, s, offsets, scale *ir.Tensor) *ir.Tensor {
	return f.updateInPlace(addTo, t, s, offsets, scale)
}

// UpdateMax is t where each element is the greatest of itself and that of each of the slices s that is for it: see
// popops.MultiUpdateMax. Not of Dynamic.
func (f Form) UpdateMax(t, s, offsets *ir.Tensor) *ir.Tensor { return f.update(maxTo, t, s, offsets) }

// UpdateMaxInPlace changes t to what UpdateMax gives, and returns it as it is from then on.
func (f Form) UpdateMaxInPlace(t, s, offsets *ir.Tensor) *ir.Tensor {
	return f.updateInPlace(maxTo, t, s, offsets)
}

func (f Form) update(v verb, in ...*ir.Tensor) *ir.Tensor {
	return ir.Apply1(&updateOp{Form: f.own(), verb: v}, nil, in...)
}

func (f Form) updateInPlace(v verb, in ...*ir.Tensor) *ir.Tensor {
	return ir.Apply1(&updateInPlace{&updateOp{Form: f.own(), verb: v}}, nil, in...)
}

func checkOffset(i, offset, extent int) error {
	if offset < 0 || offset >= extent {
		return fmt.Errorf("offset %d is %d, want 0 <= offset < %d", i, offset, extent)
	}
	if uint64(offset) > math.MaxUint32 {
		return fmt.Errorf("offset %d is %d, more than the 32 bits of an offset", i, offset)
	}
	return nil
}

// updateOp has the inputs t, s, offsets, and if it adds scale. Part of a gradient it may have only s and offsets: then
// t is zeros and scale 1.
type updateOp struct {
	Form
	verb  verb
	zeros *ir.Spec // t, if it is zeros
}

// updateInPlace is an updateOp whose output is t where it lies.
type updateInPlace struct{ *updateOp }

// Name implements ir.Op.
func (o *updateOp) Name() string {
	name := o.Kind.String() + " " + o.verb.String()
	if o.zeros != nil {
		name += " of zeros"
	}
	return name
}

// Name implements ir.Op.
func (o *updateInPlace) Name() string { return o.updateOp.Name() + " in place" }

// String implements fmt.Stringer.
func (o *updateOp) String() string { return o.Name() + " " + o.text() }

// String implements fmt.Stringer.
func (o *updateInPlace) String() string { return o.Name() + " " + o.text() }

// Updates implements ir.Updater.
func (o *updateInPlace) Updates() []int { return []int{0} }

// Infer implements ir.Op.
func (o *updateOp) Infer(in []ir.Spec) ([]ir.Spec, error) {
	var t, s, offsets ir.Spec
	if o.zeros != nil {
		t, s, offsets = *o.zeros, in[0], in[1]
	} else {
		t, s, offsets = in[0], in[1], in[2]
	}
	want, err := o.slices(t, offsets)
	if err != nil {
		return nil, err
	}
	if o.verb >= addTo && o.Kind == Dynamic {
		return nil, fmt.Errorf("a form of Kind Dynamic, want Multi or GroupedMulti")
	}
	if o.verb >= addTo && !t.DType.IsNumber() {
		return nil, fmt.Errorf("t is %v, want a number", t.DType)
	}
	if !s.Equal(want) {
		return nil, fmt.Errorf("s is %v, want %v", s, want)
	}
	if len(in) > 3 {
		if err := checkScale(in[3], t.DType); err != nil {
			return nil, err
		}
	}
	return []ir.Spec{t}, o.checkPlan(o.verb, t, offsets)
}

func checkScale(scale ir.Spec, of tensor.DType) error {
	if scale.DType != of && !(is16(of) && scale.DType == tensor.F32) {
		if is16(of) {
			return fmt.Errorf("scale is %v, want %v or float32", scale.DType, of)
		}
		return fmt.Errorf("scale is %v, want %v", scale.DType, of)
	}
	if scale.Elements() != 1 {
		return fmt.Errorf("scale has shape %v, want one element", scale.Shape)
	}
	return nil
}

func is16(t tensor.DType) bool { return t.IsFloat() && t.Size() == 2 }

// Bind implements ir.Op.
func (o *updateOp) Bind(m *ir.Memory) (func() error, error) {
	t := m.Out[0]
	if o.zeros != nil {
		run, err := o.bindUpdate(o.verb, t, m.In[0], m.In[1], oneOf(t.DType()))
		return func() error {
			clear(t.Bytes())
			return run()
		}, err
	}
	run, err := o.bind(m)
	return func() error {
		copy(t.Bytes(), m.In[0].Bytes())
		return run()
	}, err
}

// Bind implements ir.Op.
func (o *updateInPlace) Bind(m *ir.Memory) (func() error, error) {
	return o.bind(m)
}

// Apart implements ir.Apart.
func (o *updateInPlace) Apart() {}

func (o *updateOp) bind(m *ir.Memory) (func() error, error) {
	var scale *tensor.Tensor
	if o.verb == addTo {
		scale = m.In[3]
	}
	return o.bindUpdate(o.verb, m.Out[0], m.In[1], m.In[2], scale)
}

// oneOf is 1 as a scale.
func oneOf(of tensor.DType) *tensor.Tensor {
	switch of {
	case tensor.F64:
		return tensor.Scalar(1.0)
	case tensor.F16, tensor.BF16, tensor.F32:
		return tensor.Scalar(float32(1))
	}
	return nil // a gradient is of floats
}

// Gradient implements ir.Differentiable.
func (o *updateOp) Gradient(b *ir.Backward) []*ir.Tensor {
	if o.zeros != nil {
		return []*ir.Tensor{o.slicesOf(b, b.Grad(0), *o.zeros, 1), nil}
	}
	t, s := b.InSpec(0), b.InSpec(1)
	if o.verb == addTo {
		return o.addGradient(b)
	}
	dy, offsets := b.Grad(0), b.In(2)
	if o.verb == maxTo {
		d := ir.Apply(&greatestOp{o.Form}, nil, b.In(0), b.In(1), offsets, b.Out(0), dy)
		if len(d) < 2 { // after an error
			return []*ir.Tensor{d[0], d[0], nil}
		}
		return []*ir.Tensor{d[0], d[1], nil}
	}
	none, err := tensor.New(s.DType, s.Shape...)
	if err != nil {
		b.Fail(err)
		return nil
	}
	cleared := &updateOp{verb: put, Form: o.gradientForm(b, put, t, b.InSpec(2))}
	dt := ir.Apply1(cleared, nil, dy, b.Graph().Constant(none), offsets)
	ds := o.slicesOf(b, dy, t, 2)
	if o.Kind != Dynamic {
		ds = ir.Apply1(&lastOp{o.Form, t}, nil, ds, offsets)
	}
	return []*ir.Tensor{dt, ds, nil}
}

// slicesOf is the slices of dy, at the offsets that are an input.
func (o *updateOp) slicesOf(b *ir.Backward, dy *ir.Tensor, t ir.Spec, offsets int) *ir.Tensor {
	return o.gradientForm(b, take, t, b.InSpec(offsets)).Slice(dy, b.In(offsets))
}

// addGradient is the gradient of an update that adds. For floats of 16 bits products are of float32 and rounded once.
// Slices that are left out have none, whatever they and scale are.
func (o *updateOp) addGradient(b *ir.Backward) []*ir.Tensor {
	dy, s, scale := b.Grad(0), b.In(1), b.In(3)
	rows := o.slicesOf(b, dy, b.InSpec(0), 2)
	dtype, of := b.InSpec(1).DType, b.InSpec(3)
	if !dtype.IsFloat() {
		return []*ir.Tensor{dy, nil, nil, nil}
	}
	within := &inRangeOp{o.Form, b.InSpec(0)}
	s = ir.Apply1(within, nil, s, b.In(2))
	wide := dtype
	if is16(dtype) {
		wide = tensor.F32
		rows, s = ops.Cast(rows, wide), ops.Cast(s, wide)
		if of.DType != wide {
			scale = ops.Cast(scale, wide)
		}
	}
	ds := ops.Mul(rows, ops.Reshape(scale))
	dScale := ops.Reshape(ops.ReduceSum(ops.Mul(rows, s)), of.Shape...)
	if wide != dtype {
		ds = ops.Cast(ds, dtype)
	}
	ds = ir.Apply1(within, nil, ds, b.In(2))
	if of.DType != wide {
		dScale = ops.Cast(dScale, of.DType)
	}
	return []*ir.Tensor{dy, ds, nil, dScale}
}
