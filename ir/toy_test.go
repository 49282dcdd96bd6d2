package ir

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/tensor"
)

// The tests of drawings, reports and plans need operations, and what those compute only so far as their order and their
// memory show. Theirs are toys: they do not change with the operations that users have. They are of this package, so
// that the position of one is the line of a test of ir_test.

// toy is an operation on int64, or on anything if nobody runs it.
type toy struct {
	name    string
	kind    string
	attr    string
	infer   func(in []Spec) ([]Spec, error)
	compute func(out, in [][]int64) // elements may not overlap
}

func (o *toy) Name() string                    { return o.name }
func (o *toy) Kind() string                    { return o.kind }
func (o *toy) Infer(in []Spec) ([]Spec, error) { return o.infer(in) }
func (o *toy) Bind(m *Memory) (func() error, error) {
	if o.compute == nil || m.In[0].DType() != tensor.I64 {
		return func() error { return nil }, nil
	}
	var out, in [][]int64
	for i, list := range [][]*tensor.Tensor{m.Out, m.In} {
		for _, t := range list {
			x, err := tensor.Of[int64](t)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				out = append(out, x)
			} else {
				in = append(in, x)
			}
		}
	}
	return func() error {
		o.compute(out, in)
		return nil
	}, nil
}

func (o *toy) String() string {
	if o.attr == "" {
		return o.name
	}
	return o.name + " " + o.attr
}

// toyUpdate changes its first input.
type toyUpdate struct{ toy }

func (o *toyUpdate) Updates() []int { return []int{0} }

// toyScratch wants memory.
type toyScratch struct {
	toy
	bytes int
}

func (o *toyScratch) ScratchBytes([]Spec) int { return o.bytes }

// toyOdd makes a condition: whether the sum of its input is odd.
type toyOdd struct{}

func (toyOdd) Name() string                 { return "odd" }
func (toyOdd) Infer([]Spec) ([]Spec, error) { return []Spec{{DType: tensor.Bool}}, nil }
func (toyOdd) Bind(m *Memory) (func() error, error) {
	x, err := tensor.Of[int64](m.In[0])
	dst := m.Out[0].Bytes()
	return func() error {
		dst[0] = 0
		if odd(x) {
			dst[0] = 1
		}
		return nil
	}, err
}

func odd(x []int64) bool {
	var sum int64
	for _, v := range x {
		sum += v
	}
	return sum&1 != 0
}

func toySame(in []Spec) ([]Spec, error) {
	for _, s := range in[1:] {
		if !s.Equal(in[0]) {
			return nil, errors.New("want equal specs")
		}
	}
	return in[:1], nil
}

// ToyAdd adds two tensors of one shape.
func ToyAdd(a, b *Tensor) *Tensor {
	return Apply1(&toy{name: "add", infer: toySame, compute: func(out, in [][]int64) {
		for i := range out[0] {
			out[0][i] = in[0][i] + in[1][i]
		}
	}}, nil, a, b)
}

// ToyScale multiplies by a number.
func ToyScale(a *Tensor, by int64) *Tensor {
	return Apply1(&toy{name: "scale", attr: fmt.Sprint("by ", by), infer: toySame, compute: func(out, in [][]int64) {
		for i := range out[0] {
			out[0][i] = in[0][i] * by
		}
	}}, nil, a)
}

// ToyResize gives a vector another length.
func ToyResize(a *Tensor, n int) *Tensor {
	return Apply1(&toy{name: "resize", attr: fmt.Sprint("to ", n), infer: func(in []Spec) ([]Spec, error) {
		return []Spec{{DType: in[0].DType, Shape: tensor.Shape{n}}}, nil
	}, compute: func(out, in [][]int64) {
		for i := range out[0] {
			out[0][i] = 3*in[0][i%len(in[0])] + int64(i)
		}
	}}, nil, a)
}

// ToySplit has two outputs.
func ToySplit(a, b *Tensor) (sum, difference *Tensor) {
	out := Apply(&toy{name: "split", infer: func(in []Spec) ([]Spec, error) {
		s, err := toySame(in)
		return append(slices.Clone(s), s...), err
	}, compute: func(out, in [][]int64) {
		for i := range out[0] {
			out[0][i], out[1][i] = in[0][i]+2*in[1][i], in[0][i]-in[1][i]
		}
	}}, nil, a, b)
	return out[0], out[len(out)-1]
}

// ToyAccumulate changes a in place: a += 3b + 1.
func ToyAccumulate(a, b *Tensor) *Tensor {
	return Apply1(&toyUpdate{toy{name: "accumulate", infer: toySame, compute: func(out, in [][]int64) {
		for i := range out[0] {
			out[0][i] += 3*in[1][i] + 1
		}
	}}}, nil, a, b)
}

// ToyWithScratch is the identity with so many bytes beside.
func ToyWithScratch(a *Tensor, bytes int) *Tensor {
	return Apply1(&toyScratch{toy{name: "with scratch", infer: toySame}, bytes}, nil, a)
}

// ToyOdd is a scalar of bool.
func ToyOdd(a *Tensor) *Tensor { return Apply1(toyOdd{}, nil, a) }

// ToyMatMul has the shapes of a product of matrices.
func ToyMatMul(a, b *Tensor) *Tensor {
	return Apply1(&toy{name: "matmul", infer: func(in []Spec) ([]Spec, error) {
		if in[0].Shape[1] != in[1].Shape[0] {
			return nil, errors.New("shapes do not match")
		}
		return []Spec{{DType: in[0].DType, Shape: tensor.Shape{in[0].Shape[0], in[1].Shape[1]}}}, nil
	}}, nil, a, b)
}

// ToyAddRow has the shapes of adding a vector to each row.
func ToyAddRow(a, row *Tensor) *Tensor {
	return Apply1(&toy{name: "add row", infer: func(in []Spec) ([]Spec, error) { return in[:1], nil }}, nil, a, row)
}

// ToyRelu has the shapes of a function of one element.
func ToyRelu(a *Tensor) *Tensor { return Apply1(&toy{name: "relu", infer: toySame}, nil, a) }

// ToyAbove has the shape of a condition.
func ToyAbove(a *Tensor, limit float64) *Tensor {
	return Apply1(&toy{name: "any above", attr: fmt.Sprint(limit), infer: func([]Spec) ([]Spec, error) {
		return []Spec{{DType: tensor.Bool}}, nil
	}}, nil, a)
}

// ToyAllReduce stands for a collective.
func ToyAllReduce(a *Tensor) *Tensor {
	return Apply1(&toy{name: "all-reduce", attr: "add", kind: "collective", infer: toySame}, nil, a)
}

// ToyOfKind is the identity, of any name and kind.
func ToyOfKind(name, kind string, a *Tensor) *Tensor {
	return Apply1(&toy{name: name, kind: kind, infer: toySame}, nil, a)
}
