package ir

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// ReduceSum adds elements along axes, which the result does not have; a negative axis counts from the end, and without
// any it is along all. It takes floats, int32, int64 and uint32; integers wrap.
//
// Floats are added in float64, in row-major order, but for runs of elements that adjoin in memory, whose four
// interleaved parts are added first and then together. What is along no elements is 0. The order depends on the shape
// and the axes only.
//
// Errors: other types, an axis that t does not have or that is there twice.
func ReduceSum(t *Tensor, axes ...int) *Tensor { return reduce(t, reduceSum, false, axes) }

// ReduceSumKeep is ReduceSum whose result keeps the axes, with one place each.
func ReduceSumKeep(t *Tensor, axes ...int) *Tensor { return reduce(t, reduceSum, true, axes) }

// ReduceMean is ReduceSum of floats divided by how many are added. That of no elements is an error.
func ReduceMean(t *Tensor, axes ...int) *Tensor { return reduce(t, reduceMean, false, axes) }

// ReduceMeanKeep is ReduceMean whose result keeps the axes, with one place each.
func ReduceMeanKeep(t *Tensor, axes ...int) *Tensor { return reduce(t, reduceMean, true, axes) }

// ReduceMax is the greatest along axes, as those of ReduceSum. A NaN is greater than all else, and 0 than -0. That of
// no elements is an error. The gradient goes to the first that is greatest, in row-major order.
func ReduceMax(t *Tensor, axes ...int) *Tensor { return reduce(t, reduceMax, false, axes) }

// ReduceMaxKeep is ReduceMax whose result keeps the axes, with one place each.
func ReduceMaxKeep(t *Tensor, axes ...int) *Tensor { return reduce(t, reduceMax, true, axes) }

func reduce(t *Tensor, kind reduceKind, keep bool, axes []int) *Tensor {
	o := &reduceOp{kind: kind, keep: keep}
	if len(axes) > 0 {
		o.axes = slices.Clone(axes)
	}
	return Apply1(o, nil, t)
}

type reduceKind uint8

const (
	reduceSum reduceKind = iota
	reduceMean
	reduceMax
)

type reduceOp struct {
	kind reduceKind
	axes []int // nil: all
	keep bool
}

func (o *reduceOp) Name() string {
	return [...]string{"reduce sum", "reduce mean", "reduce max"}[o.kind]
}

// along says of each dimension whether the reduction is along it.
func (o *reduceOp) along(rank int) ([]bool, error) {
	along := make([]bool, rank)
	if o.axes == nil {
		for d := range along {
			along[d] = true
		}
	}
	for _, axis := range o.axes {
		d, err := axisOf(axis, rank)
		if err != nil {
			return nil, err
		}
		if along[d] {
			return nil, fmt.Errorf("axes %v have dimension %d twice, want each once", o.axes, d)
		}
		along[d] = true
	}
	return along, nil
}

func (o *reduceOp) Infer(in []Spec) ([]Spec, error) {
	types := numberTypes
	if o.kind == reduceMean {
		types = floatTypes
	}
	if err := takes(types, in[0].DType); err != nil {
		return nil, err
	}
	s := in[0].Shape
	along, err := o.along(len(s))
	if err != nil {
		return nil, err
	}
	shape, some := tensor.Shape{}, true
	for d, extent := range s {
		switch {
		case !along[d]:
			shape = append(shape, extent)
		case o.keep:
			shape = append(shape, 1)
		}
		some = some && (extent > 0 || !along[d])
	}
	if !some && o.kind != reduceSum {
		return nil, errors.New("along no elements, want one or more")
	}
	return []Spec{{Shape: shape, DType: in[0].DType}}, nil
}

func (o *reduceOp) ScratchBytes(in []Spec) int { return wideBytes(o, in) }

func (o *reduceOp) Bind(m *Memory) (func() error, error) {
	along, err := o.along(m.In[0].Rank())
	if err != nil {
		return nil, err
	}
	g := newReduction(m.In[0].Shape(), along)
	if o.kind == reduceMax {
		switch m.In[0].DType() {
		case tensor.I32:
			return bindMax[int32](g, m)
		case tensor.I64:
			return bindMax[int64](g, m)
		case tensor.U32:
			return bindMax[uint32](g, m)
		}
		return bindWide(m,
			func(m *Memory) (func() error, error) { return bindMax[float32](g, m) },
			func(m *Memory) (func() error, error) { return bindMax[float64](g, m) })
	}
	by := 1
	if o.kind == reduceMean {
		by = g.count
	}
	switch m.In[0].DType() {
	case tensor.I32:
		return bindSum[int32, int32](g, 1, m)
	case tensor.I64:
		return bindSum[int64, int64](g, 1, m)
	case tensor.U32:
		return bindSum[uint32, uint32](g, 1, m)
	}
	return bindWide(m,
		func(m *Memory) (func() error, error) { return bindSum[float32](g, float64(by), m) },
		func(m *Memory) (func() error, error) { return bindSum[float64](g, float64(by), m) })
}

// Gradient implements Differentiable.
func (o *reduceOp) Gradient(b *Backward) []*Tensor {
	s := b.InSpec(0).Shape
	along, err := o.along(len(s))
	if err != nil { // Infer has found none
		return nil
	}
	if o.kind == reduceMax {
		return []*Tensor{Apply1(&maxGradientOp{along}, nil, b.In(0), b.Grad(0))}
	}
	kept, count := s.Clone(), 1
	for d, is := range along {
		if is {
			count *= s[d]
			kept[d] = 1
		}
	}
	g := b.Grad(0)
	if o.kind == reduceMean {
		g = Apply1(&divideOp{count}, nil, g)
	}
	return []*Tensor{Apply1(&expandOp{shape: s, as: kept}, nil, g)}
}

// reduction goes through a tensor along some of its dimensions. What adjoins is taken together: it has columns of
// results that adjoin, or runs of elements to reduce that adjoin, of which one is 1.
type reduction struct {
	columns, run int
	results      *grid // all other places of results
	rest         *grid // all other places of what is reduced
	count        int   // elements that make one result
}

func newReduction(shape tensor.Shape, along []bool) *reduction {
	g := &reduction{columns: 1, run: 1, count: 1}
	strides := stridesOf(shape)
	type dimension struct {
		extent, stride int
		along          bool
	}
	var dims []dimension
	for d, extent := range shape {
		if along[d] {
			g.count *= extent
		}
		if k := len(dims) - 1; k >= 0 && dims[k].along == along[d] {
			dims[k].extent *= extent
			dims[k].stride = strides[d]
		} else {
			dims = append(dims, dimension{extent, strides[d], along[d]})
		}
	}
	if k := len(dims) - 1; k >= 0 {
		if dims[k].along {
			g.run = dims[k].extent
		} else {
			g.columns = dims[k].extent
		}
		dims = dims[:k]
	}
	g.results, g.rest = newGrid(nil, nil), newGrid(nil, nil)
	for _, d := range dims {
		w := g.results
		if d.along {
			w = g.rest
		}
		w.extents, w.strides, w.at = append(w.extents, d.extent), append(w.strides, d.stride), append(w.at, 0)
	}
	return g
}

// reduceColumns is how many columns are reduced together: 512 bytes of float64, in eight lines of the cache.
const reduceColumns = 64

// bindSum adds in A, divides, and rounds.
func bindSum[T, A number](g *reduction, by A, m *Memory) (func() error, error) {
	x, y := elementsOf[T](m.In[0]), elementsOf[T](m.Out[0])
	var sums [reduceColumns]A
	results, rest := g.results.places(), g.rest.places()
	return func() error {
		for r := range results {
			for from := 0; from < g.columns; from += reduceColumns {
				n := min(reduceColumns, g.columns-from)
				acc := sums[:n]
				clear(acc)
				for range rest {
					at := g.results.offset + g.rest.offset + from
					if g.columns == 1 {
						acc[0] += sumRun[T, A](x[at:][:g.run])
					} else {
						row := x[at:][:len(acc)]
						for j := range acc {
							acc[j] += A(row[j])
						}
					}
					g.rest.next()
				}
				out := y[r*g.columns+from:][:n]
				for j := range out {
					out[j] = T(acc[j] / by)
				}
			}
			g.results.next()
		}
		return nil
	}, nil
}

// sumRun adds elements in four interleaved parts, and then these.
func sumRun[T, A number](x []T) A {
	var a, b, c, d A
	for len(x) >= 4 {
		a += A(x[0])
		b += A(x[1])
		c += A(x[2])
		d += A(x[3])
		x = x[4:]
	}
	for _, v := range x {
		a += A(v)
	}
	return (a + b) + (c + d)
}

// beats reports whether x is greater than y, as ReduceMax has it.
func beats[T number](x, y T) bool {
	switch {
	case x > y:
		return true
	case x < y:
		return false
	case x == y:
		return x == 0 && math.Signbit(float64(y)) && !math.Signbit(float64(x))
	}
	return x != x && y == y
}

func bindMax[T number](g *reduction, m *Memory) (func() error, error) {
	x, y := elementsOf[T](m.In[0]), elementsOf[T](m.Out[0])
	first := &maxima[T]{reduction: g, x: x}
	results := g.results.places()
	return func() error {
		for r := range results {
			for from := 0; from < g.columns; from += reduceColumns {
				for j, at := range first.find(from) {
					y[r*g.columns+from+j] = x[at]
				}
			}
			g.results.next()
		}
		return nil
	}, nil
}

// maxima finds greatest elements.
type maxima[T number] struct {
	*reduction
	x  []T
	at [reduceColumns]int
}

// find returns where in x the first greatest is, of each column from one on, of the place that results is at.
func (f *maxima[T]) find(from int) []int {
	at := f.at[:min(reduceColumns, f.columns-from)]
	for k := range f.rest.places() {
		first := f.results.offset + f.rest.offset + from
		if k == 0 {
			for j := range at {
				at[j] = first + j
			}
		}
		if f.columns == 1 {
			best := f.x[at[0]]
			for i, v := range f.x[first:][:f.run] {
				if !(v < best) && beats(v, best) {
					best, at[0] = v, first+i
				}
			}
		} else {
			for j, v := range f.x[first:][:len(at)] {
				if best := f.x[at[j]]; !(v < best) && beats(v, best) {
					at[j] = first + j
				}
			}
		}
		f.rest.next()
	}
	return at
}

// maxGradientOp is the gradient of a reduction to the greatest, given what is reduced and the gradient of the result.
type maxGradientOp struct{ along []bool }

func (o *maxGradientOp) Name() string { return "reduce max gradient" }

func (o *maxGradientOp) Infer(in []Spec) ([]Spec, error) { return in[:1], nil }

func (o *maxGradientOp) ScratchBytes(in []Spec) int { return wideBytes(o, in) }

func (o *maxGradientOp) Bind(m *Memory) (func() error, error) {
	g := newReduction(m.In[0].Shape(), o.along)
	return bindWide(m,
		func(m *Memory) (func() error, error) { return bindMaxGradient[float32](g, m) },
		func(m *Memory) (func() error, error) { return bindMaxGradient[float64](g, m) })
}

func bindMaxGradient[T float](g *reduction, m *Memory) (func() error, error) {
	x, dy, dx := elementsOf[T](m.In[0]), elementsOf[T](m.In[1]), elementsOf[T](m.Out[0])
	first := &maxima[T]{reduction: g, x: x}
	results := g.results.places()
	return func() error {
		clear(dx)
		for r := range results {
			for from := 0; from < g.columns; from += reduceColumns {
				for j, at := range first.find(from) {
					dx[at] = dy[r*g.columns+from+j]
				}
			}
			g.results.next()
		}
		return nil
	}, nil
}

// Argmax is where the greatest element of each row of the last dimension is, as int32, in the shape of t without that
// dimension: of several the first, and a NaN is greater than all else. It takes what ReduceMax takes, and has no
// gradient. Errors: other types, a scalar, rows of no elements or of more than int32 counts.
func Argmax(t *Tensor) *Tensor { return Apply1(argmaxOp{}, nil, t) }

type argmaxOp struct{}

func (argmaxOp) Name() string { return "argmax" }

func (argmaxOp) Infer(in []Spec) ([]Spec, error) {
	if err := takes(numberTypes, in[0].DType); err != nil {
		return nil, err
	}
	_, width, err := lastDimension(in[0].Shape)
	if err != nil {
		return nil, err
	}
	if width < 1 || width > math.MaxInt32 {
		return nil, fmt.Errorf("rows of %d elements, want 1 to %d", width, math.MaxInt32)
	}
	return []Spec{{Shape: in[0].Shape[:len(in[0].Shape)-1], DType: tensor.I32}}, nil
}

func (o argmaxOp) ScratchBytes(in []Spec) int { return wideBytes(o, in) }

func (argmaxOp) Bind(m *Memory) (func() error, error) {
	switch m.In[0].DType() {
	case tensor.I32:
		return bindArgmax[int32](m)
	case tensor.I64:
		return bindArgmax[int64](m)
	case tensor.U32:
		return bindArgmax[uint32](m)
	}
	return bindWide(m, bindArgmax[float32], bindArgmax[float64])
}

func bindArgmax[T number](m *Memory) (func() error, error) {
	along := make([]bool, m.In[0].Rank())
	along[len(along)-1] = true
	g := newReduction(m.In[0].Shape(), along)
	x, y := elementsOf[T](m.In[0]), elementsOf[int32](m.Out[0])
	first := &maxima[T]{reduction: g, x: x}
	return func() error {
		for r := range y {
			y[r] = int32(first.find(0)[0] - g.results.offset)
			g.results.next()
		}
		return nil
	}, nil
}

// divideOp divides floats by a number.
type divideOp struct{ by int }

func (o *divideOp) Name() string { return "divide" }

func (o *divideOp) Infer(in []Spec) ([]Spec, error) { return in, takes(floatTypes, in[0].DType) }

func (o *divideOp) Bind(m *Memory) (func() error, error) {
	divide := kernel.Divide(kernel.Type(m.In[0].DType()))
	dst, src := m.Out[0].Bytes(), m.In[0].Bytes()
	return func() error {
		divide(dst, src, o.by)
		return nil
	}, nil
}

// Gradient implements Differentiable.
func (o *divideOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{Apply1(o, nil, b.Grad(0))}
}
