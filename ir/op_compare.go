package ir

import (
	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// Equal returns, as bool, where x and y are equal, broadcast as for Add. Both have one element type: one that Add
// takes, or bool. A NaN is equal to nothing, -0 to +0.
func Equal(x, y *Tensor) *Tensor { return Apply1(compareOp{equal}, nil, x, y) }

// NotEqual returns, as bool, where x and y are not equal, as Equal does. It is true of a NaN.
func NotEqual(x, y *Tensor) *Tensor { return Apply1(compareOp{notEqual}, nil, x, y) }

// Less returns, as bool, where x < y, broadcast as for Add and of what Add takes; false for a NaN.
func Less(x, y *Tensor) *Tensor { return Apply1(compareOp{less}, nil, x, y) }

// LessEqual returns, as bool, where x <= y, as Less does.
func LessEqual(x, y *Tensor) *Tensor { return Apply1(compareOp{lessEqual}, nil, x, y) }

// Greater returns, as bool, where x > y, as Less does.
func Greater(x, y *Tensor) *Tensor { return Apply1(compareOp{greater}, nil, x, y) }

// GreaterEqual returns, as bool, where x >= y, as Less does.
func GreaterEqual(x, y *Tensor) *Tensor { return Apply1(compareOp{greaterEqual}, nil, x, y) }

// Not returns, as bool, where t, of bool, is false.
func Not(t *Tensor) *Tensor { return Apply1(notOp{}, nil, t) }

// And returns, as bool, where both x and y, of bool, are true, broadcast as for Add.
func And(x, y *Tensor) *Tensor { return Apply1(logicOp{"and", kernel.And}, nil, x, y) }

// Or returns, as bool, where x or y, of bool, is true, broadcast as for Add.
func Or(x, y *Tensor) *Tensor { return Apply1(logicOp{"or", kernel.Or}, nil, x, y) }

// Select returns the elements of x where condition, of bool, is true, and those of y where it is false. x and y have
// one element type, which may be any. All three are broadcast as for Add.
func Select(condition, x, y *Tensor) *Tensor { return Apply1(selectOp{}, nil, condition, x, y) }

type comparison uint8

const (
	equal comparison = iota
	notEqual
	less
	lessEqual
	greater
	greaterEqual
)

type compareOp struct{ is comparison }

func (o compareOp) Name() string {
	return [...]string{"equal", "not equal", "less", "less or equal", "greater", "greater or equal"}[o.is]
}

func (o compareOp) Infer(in []Spec) ([]Spec, error) {
	types := numberTypes
	if o.is <= notEqual {
		types = valueTypes
	}
	if _, err := sameType(types, in...); err != nil {
		return nil, err
	}
	shape, err := broadcast(in...)
	return []Spec{{shape, tensor.Bool}}, err
}

func (o compareOp) ScratchBytes(in []Spec) int { return blocksBytes(tensor.Bool, in...) }

func (o compareOp) Bind(m *Memory) (func() error, error) {
	switch m.In[0].DType() {
	case tensor.Bool:
		return bindCompare[uint8](m, o.is)
	case tensor.I32:
		return bindCompare[int32](m, o.is)
	case tensor.I64:
		return bindCompare[int64](m, o.is)
	case tensor.U32:
		return bindCompare[uint32](m, o.is)
	case tensor.F64:
		return bindCompare[float64](m, o.is)
	}
	return bindCompare[float32](m, o.is)
}

func bindCompare[T number | uint8](m *Memory, is comparison) (func() error, error) {
	var f func(d []bool, x, y []T)
	switch is {
	case equal:
		f = whereEqual[T]
	case notEqual:
		f = whereNotEqual[T]
	case less:
		f = whereLess[T]
	case lessEqual:
		f = whereLessEqual[T]
	case greater:
		f = func(d []bool, x, y []T) { whereLess(d, y, x) }
	case greaterEqual:
		f = func(d []bool, x, y []T) { whereLessEqual(d, y, x) }
	}
	return each2(m.Out[0], m.In[0], m.In[1], m.Scratch, f)
}

func whereEqual[T number | uint8](d []bool, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] == y[i]
	}
}

func whereNotEqual[T number | uint8](d []bool, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] != y[i]
	}
}

func whereLess[T number | uint8](d []bool, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] < y[i]
	}
}

func whereLessEqual[T number | uint8](d []bool, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	for i := range d {
		d[i] = x[i] <= y[i]
	}
}

type notOp struct{}

func (notOp) Name() string                    { return "not" }
func (notOp) Infer(in []Spec) ([]Spec, error) { return in, takes(boolTypes, in[0].DType) }

func (notOp) Bind(m *Memory) (func() error, error) {
	d, x := m.Out[0].Bytes(), m.In[0].Bytes()
	return func() error {
		for i, v := range x {
			d[i] = v ^ 1
		}
		return nil
	}, nil
}

type logicOp struct {
	name string
	op   kernel.Op
}

func (o logicOp) Name() string { return o.name }

func (o logicOp) Infer(in []Spec) ([]Spec, error) {
	if _, err := sameType(boolTypes, in...); err != nil {
		return nil, err
	}
	shape, err := broadcast(in...)
	return []Spec{{shape, tensor.Bool}}, err
}

func (o logicOp) ScratchBytes(in []Spec) int { return blocksBytes(tensor.Bool, in...) }

func (o logicOp) Bind(m *Memory) (func() error, error) {
	return each2(m.Out[0], m.In[0], m.In[1], m.Scratch, kernel.Binary(o.op, kernel.Bool))
}

type selectOp struct{}

func (selectOp) Name() string { return "select" }

func (selectOp) Infer(in []Spec) ([]Spec, error) {
	if err := takes(boolTypes, in[0].DType); err != nil {
		return nil, wrapInput("the condition", err)
	}
	d, err := sameType(tensor.DTypes(), in[1:]...)
	if err != nil {
		return nil, err
	}
	shape, err := broadcast(in...)
	return []Spec{{shape, d}}, err
}

// ScratchBytes: 16-bit floats are moved as they are, in a part of what their blocks could take.
func (selectOp) ScratchBytes(in []Spec) int { return blocksBytes(in[1].DType, in...) }

func (selectOp) Bind(m *Memory) (func() error, error) {
	switch m.In[1].DType().Size() {
	case 1:
		return bindSelect[uint8](m)
	case 2:
		return bindSelect[uint16](m)
	case 4:
		return bindSelect[uint32](m)
	}
	return bindSelect[uint64](m)
}

// Gradient of x is that of the result where the condition is true, and that of y where it is not.
func (selectOp) Gradient(b *Backward) []*Tensor {
	condition, g := b.In(0), b.Grad(0)
	zero := b.Graph().scalar(g.DType(), 0)
	return []*Tensor{
		nil,
		sumTo(Select(condition, g, zero), b.InSpec(1).Shape),
		sumTo(Select(condition, zero, g), b.InSpec(2).Shape),
	}
}

func bindSelect[T uint8 | uint16 | uint32 | uint64](m *Memory) (func() error, error) {
	c, dst := cutter(m.Scratch), m.Out[0]
	condition, err := newReader[uint8](m.In[0], dst.Shape(), c.block(m.In[0]))
	if err != nil {
		return nil, err
	}
	run, err := each2(dst, m.In[1], m.In[2], c, func(d, x, y []T) {
		choose(d, x, y, condition.take(len(d)))
	})
	return func() error {
		condition.rewind()
		return run()
	}, err
}

// choose takes no branches, which could not be foreseen.
func choose[T uint8 | uint16 | uint32 | uint64](d, x, y []T, condition []uint8) {
	x, y, condition = x[:len(d)], y[:len(d)], condition[:len(d)]
	for i := range d {
		d[i] = y[i] ^ (x[i]^y[i])&-T(condition[i])
	}
}
