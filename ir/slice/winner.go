package slice

import (
	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Who has written an element last, or who had the greatest first, is found by numbers: a table of them is updated as
// the table was, and sliced again. A look-up that finds its own number is the one.

// lastOp keeps of slices, its first input, the elements that are the last to be written at offsets, its second, to a
// table; the others become zeros. It is linear, and its own adjoint.
type lastOp struct {
	Form
	table ir.Spec
}

// Name implements ir.Op.
func (o *lastOp) Name() string { return o.Kind.String() + " update, last" }

// Infer implements ir.Op.
func (o *lastOp) Infer(in []ir.Spec) ([]ir.Spec, error) {
	return in[:1], (ir.Spec{Shape: o.table.Shape, DType: tensor.U32}).Shape.Validate()
}

// ScratchBytes implements ir.Scratcher.
func (o *lastOp) ScratchBytes(in []ir.Spec) int {
	return numberBytes(o.table) + 2*numberBytes(in[0])
}

// Bind implements ir.Op.
func (o *lastOp) Bind(m *ir.Memory) (func() error, error) {
	c := cutter{scratch: m.Scratch}
	x := ir.SpecOf(m.In[0])
	table, numbers, found := c.numbers(o.table), c.numbers(x), c.numbers(x)
	if c.err != nil {
		return nil, c.err
	}
	f := o.withoutPlan()
	write, err := f.bindUpdate(put, table.t, numbers.t, m.In[1], nil)
	if err != nil {
		return nil, err
	}
	read, err := f.bindTake(found.t, table.t, m.In[1])
	if err != nil {
		return nil, err
	}
	count := o.counter(x, ir.SpecOf(m.In[1]))
	keep := keepFunc(m.Out[0], m.In[0], found.words, numbers.words)
	return func() error {
		for i := range numbers.words {
			numbers.words[i] = uint32(count.lookUp(i) + 1)
		}
		if err := write(); err != nil {
			return err
		}
		if err := read(); err != nil { // zeros where offsets are out of range
			return err
		}
		keep()
		return nil
	}, nil
}

// Gradient implements ir.Differentiable.
func (o *lastOp) Gradient(b *ir.Backward) []*ir.Tensor {
	return []*ir.Tensor{ir.Apply1(o, nil, b.Grad(0), b.In(1)), nil}
}

// greatestOp has the inputs t, s, offsets, y and dy of an update to the greatest, and the outputs dt and ds.
type greatestOp struct{ Form }

// Name implements ir.Op.
func (o *greatestOp) Name() string { return o.Kind.String() + " update max gradient" }

// Infer implements ir.Op.
func (o *greatestOp) Infer(in []ir.Spec) ([]ir.Spec, error) {
	return in[:2], (ir.Spec{Shape: in[0].Shape, DType: tensor.U32}).Shape.Validate()
}

// ScratchBytes implements ir.Scratcher.
func (o *greatestOp) ScratchBytes(in []ir.Spec) int {
	return numberBytes(in[0]) + 2*numberBytes(in[1]) + 2*kernel.Lines(in[1].Bytes())
}

// Bind implements ir.Op.
func (o *greatestOp) Bind(m *ir.Memory) (func() error, error) {
	t, s, offsets, y, dy := m.In[0], m.In[1], m.In[2], m.In[3], m.In[4]
	dt, ds := m.Out[0], m.Out[1]
	c := cutter{scratch: m.Scratch}
	spec := ir.SpecOf(s)
	table, numbers, found := c.numbers(ir.SpecOf(t)), c.numbers(spec), c.numbers(spec)
	before, after := c.tensor(spec), c.tensor(spec)
	if c.err != nil {
		return nil, c.err
	}
	f := o.withoutPlan()
	var steps []func() error
	for _, x := range [][2]*tensor.Tensor{{before, t}, {after, y}, {nil, table.t}, {found.t, table.t}, {after, dy}} {
		step, err := f.bindUpdate(maxTo, table.t, numbers.t, offsets, nil)
		if x[0] != nil {
			step, err = f.bindTake(x[0], x[1], offsets)
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	count := o.counter(spec, ir.SpecOf(offsets))
	is, was := sameFunc(s, after), sameFunc(before, after)
	unchanged := sameFunc(t, y)
	keep := keepFunc(ds, after, found.words, numbers.words)
	keepTable := keepIf(dt, dy, unchanged)
	return func() error {
		for _, step := range steps[:2] {
			if err := step(); err != nil {
				return err
			}
		}
		// The first of those that have become what is there, and was not before, has the greatest number.
		for i := range numbers.words {
			numbers.words[i] = 0
			if is(i) && !was(i) {
				numbers.words[i] = uint32(count.n - count.lookUp(i))
			}
		}
		clear(table.words)
		for _, step := range steps[2:] {
			if err := step(); err != nil {
				return err
			}
		}
		keep()
		keepTable()
		return nil
	}, nil
}

// withoutPlan is the form of calls that make a plan for themselves, whose offsets have been checked.
func (f Form) withoutPlan() Form {
	f.Plan = nil
	f.Options.PartialType = 0
	return f
}

// counter says of which look-up an element of slices is.
type counter struct{ n, each int }

func (f *Form) counter(slices, offsets ir.Spec) counter {
	c := counter{n: f.lookUps(offsets), each: 1}
	lead := 1
	if f.Kind == GroupedMulti {
		lead = 2
	}
	for _, extent := range slices.Shape[lead:] {
		c.each *= extent
	}
	return c
}

// lookUp is the number of the look-up, in its group, of element i.
func (c counter) lookUp(i int) int { return i / c.each % c.n }

func numberBytes(s ir.Spec) int { return kernel.Lines(4 * s.Elements()) }

// numbers are a tensor of uint32, and the same as a slice.
type numbers struct {
	t     *tensor.Tensor
	words []uint32
}

// cutter cuts scratch into tensors.
type cutter struct {
	scratch []byte
	err     error
}

func (c *cutter) numbers(like ir.Spec) numbers {
	n := numbers{t: c.tensor(ir.Spec{Shape: like.Shape, DType: tensor.U32})}
	if c.err == nil {
		n.words, c.err = tensor.Of[uint32](n.t)
	}
	return n
}

func (c *cutter) tensor(s ir.Spec) *tensor.Tensor {
	if c.err != nil {
		return nil
	}
	var t *tensor.Tensor
	t, c.err = tensor.View(s.DType, s.Shape, c.scratch[:s.Bytes():s.Bytes()])
	c.scratch = c.scratch[kernel.Lines(s.Bytes()):]
	return t
}

// keepFunc makes dst src where a number that is not 0 has been found again, and zeros elsewhere.
func keepFunc(dst, src *tensor.Tensor, found, numbers []uint32) func() {
	return keepIf(dst, src, func(i int) bool { return numbers[i] != 0 && found[i] == numbers[i] })
}

// keepIf makes dst src where a condition holds, and zeros elsewhere. Both are floats.
func keepIf(dst, src *tensor.Tensor, condition func(i int) bool) func() {
	switch dst.DType().Size() {
	case 2:
		return keepBits[uint16](dst, src, condition)
	case 4:
		return keepBits[uint32](dst, src, condition)
	}
	return keepBits[uint64](dst, src, condition)
}

func keepBits[T uint16 | uint32 | uint64](dst, src *tensor.Tensor, condition func(i int) bool) func() {
	d, s := bitsOf[T](dst), bitsOf[T](src)
	return func() {
		for i, v := range s {
			if !condition(i) {
				v = 0
			}
			d[i] = v
		}
	}
}

// sameFunc says whether elements of two tensors of floats have the same bits or are NaN both.
func sameFunc(a, b *tensor.Tensor) func(i int) bool {
	switch a.DType() {
	case tensor.F16:
		return sameBits[uint16](a, b, 0x7c00)
	case tensor.BF16:
		return sameBits[uint16](a, b, 0x7f80)
	case tensor.F32:
		return sameBits[uint32](a, b, 0x7f800000)
	}
	return sameBits[uint64](a, b, 0x7ff0000000000000)
}

// sameBits is sameFunc, given the bits of positive infinity, above which those of a NaN are.
func sameBits[T uint16 | uint32 | uint64](x, y *tensor.Tensor, infinity T) func(i int) bool {
	a, b := bitsOf[T](x), bitsOf[T](y)
	unsigned := ^T(0) >> 1
	return func(i int) bool {
		return a[i] == b[i] || a[i]&unsigned > infinity && b[i]&unsigned > infinity
	}
}

// bitsOf is the elements of a tensor as words of their size.
func bitsOf[T uint16 | uint32 | uint64](t *tensor.Tensor) []T {
	words, err := tensor.FromBytes[T](t.Bytes())
	if err != nil {
		panic(err) // the size is right, and a tensor is aligned
	}
	return words
}
