package ops

import (
	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Equal returns, as bool, where x and y are equal, broadcast as for Add. Both have one element type: one that Add
// takes, or bool. A NaN is equal to nothing, -0 to +0.
func Equal(x, y *ir.Tensor) *ir.Tensor { return equal.of(valueTypes, x, y) }

// NotEqual returns, as bool, where x and y are not equal, as Equal does. It is true of a NaN.
func NotEqual(x, y *ir.Tensor) *ir.Tensor { return notEqual.of(valueTypes, x, y) }

// Less returns, as bool, where x < y, broadcast as for Add and of what Add takes; false for a NaN.
func Less(x, y *ir.Tensor) *ir.Tensor { return less.of(numberTypes, x, y) }

// LessEqual returns, as bool, where x <= y, as Less does.
func LessEqual(x, y *ir.Tensor) *ir.Tensor { return lessEqual.of(numberTypes, x, y) }

// Greater returns, as bool, where x > y, as Less does.
func Greater(x, y *ir.Tensor) *ir.Tensor { return greater.of(numberTypes, x, y) }

// GreaterEqual returns, as bool, where x >= y, as Less does.
func GreaterEqual(x, y *ir.Tensor) *ir.Tensor { return greaterEqual.of(numberTypes, x, y) }

// comparison is what is asked of two numbers: its name.
type comparison string

const (
	equal        comparison = "equal"
	notEqual     comparison = "not equal"
	less         comparison = "less"
	lessEqual    comparison = "less or equal"
	greater      comparison = "greater"
	greaterEqual comparison = "greater or equal"
)

func (k comparison) of(types []tensor.DType, x, y *ir.Tensor) *ir.Tensor {
	return (&row{
		name:    string(k),
		infer:   func(in []ir.Spec) ([]ir.Spec, error) { return inferBroadcast(types, tensor.Bool, in) },
		scratch: func(in []ir.Spec) int { return blocksBytes(tensor.Bool, in...) },
		bind: func(m *ir.Memory) (func() error, error) {
			d := m.In[0].DType()
			if d == tensor.Bool {
				return bindCompare[uint8](m, k)
			}
			return byType(d, bindCompare[float32], bindCompare[float64], bindCompare[int32], bindCompare[int64],
				bindCompare[uint32])(m, k)
		},
	}).of(x, y)
}

func bindCompare[T number | uint8](m *ir.Memory, is comparison) (func() error, error) {
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

// Not returns, as bool, where t, of bool, is false.
func Not(t *ir.Tensor) *ir.Tensor {
	return (&row{
		name:  "not",
		infer: func(in []ir.Spec) ([]ir.Spec, error) { return in, takes(boolTypes, in[0].DType) },
		bind: func(m *ir.Memory) (func() error, error) {
			d, x := m.Out[0].Bytes(), m.In[0].Bytes()
			return func() error {
				for i, v := range x {
					d[i] = v ^ 1
				}
				return nil
			}, nil
		},
	}).of(t)
}

// And returns, as bool, where both x and y, of bool, are true, broadcast as for Add.
func And(x, y *ir.Tensor) *ir.Tensor { return logic("and", kernel.And, x, y) }

// Or returns, as bool, where x or y, of bool, is true, broadcast as for Add.
func Or(x, y *ir.Tensor) *ir.Tensor { return logic("or", kernel.Or, x, y) }

func logic(name string, op kernel.Op, x, y *ir.Tensor) *ir.Tensor {
	return (&row{
		name:    name,
		infer:   func(in []ir.Spec) ([]ir.Spec, error) { return inferBroadcast(boolTypes, 0, in) },
		scratch: func(in []ir.Spec) int { return blocksBytes(tensor.Bool, in...) },
		bind: func(m *ir.Memory) (func() error, error) {
			return each2(m.Out[0], m.In[0], m.In[1], m.Scratch, kernel.Binary(op, kernel.Bool))
		},
	}).of(x, y)
}

// Select returns the elements of x where condition, of bool, is true, and those of y where it is false. x and y have
// one element type, which may be any. All three are broadcast as for Add.
func Select(condition, x, y *ir.Tensor) *ir.Tensor {
	return (&row{
		name: "select",
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
			if err := takes(boolTypes, in[0].DType); err != nil {
				return nil, wrapInput("the condition", err)
			}
			d, err := sameType(tensor.DTypes(), in[1:]...)
			if err != nil {
				return nil, err
			}
			shape, err := broadcast(in...)
			return []ir.Spec{{Shape: shape, DType: d}}, err
		},
		// 16-bit floats are moved as they are, in a part of what their blocks could take.
		scratch: func(in []ir.Spec) int { return blocksBytes(in[1].DType, in...) },
		bind: func(m *ir.Memory) (func() error, error) {
			return bySize(m.In[1].DType(), bindSelect[uint8], bindSelect[uint16], bindSelect[uint32],
				bindSelect[uint64])(m)
		},
		back: func(b *ir.Backward) []*ir.Tensor { // of x where the condition is true, and of y where it is not
			condition, g := b.In(0), b.Grad(0)
			zero := scalar(b.Graph(), g.DType(), 0)
			return []*ir.Tensor{
				nil,
				sumTo(Select(condition, g, zero), b.InSpec(1).Shape),
				sumTo(Select(condition, zero, g), b.InSpec(2).Shape),
			}
		},
	}).of(condition, x, y)
}

func bindSelect[T uint8 | uint16 | uint32 | uint64](m *ir.Memory) (func() error, error) {
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
