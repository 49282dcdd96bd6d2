package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
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
func ReduceSum(t *ir.Tensor, axes ...int) *ir.Tensor { return sums.of(t, axes, false) }

// ReduceSumKeep is ReduceSum whose result keeps the axes, with one place each.
func ReduceSumKeep(t *ir.Tensor, axes ...int) *ir.Tensor { return sums.of(t, axes, true) }

// ReduceMean is ReduceSum of floats divided by how many are added. That of no elements is an error.
func ReduceMean(t *ir.Tensor, axes ...int) *ir.Tensor { return means.of(t, axes, false) }

// ReduceMeanKeep is ReduceMean whose result keeps the axes, with one place each.
func ReduceMeanKeep(t *ir.Tensor, axes ...int) *ir.Tensor { return means.of(t, axes, true) }

// ReduceMax is the greatest along axes, as those of ReduceSum. A NaN is greater than all else, and 0 than -0. That of
// no elements is an error. The gradient goes to the first that is greatest, in row-major order.
func ReduceMax(t *ir.Tensor, axes ...int) *ir.Tensor { return greatest.of(t, axes, false) }

// ReduceMaxKeep is ReduceMax whose result keeps the axes, with one place each.
func ReduceMaxKeep(t *ir.Tensor, axes ...int) *ir.Tensor { return greatest.of(t, axes, true) }

// reducing is what elements along axes become.
type reducing struct {
	name string
	zero bool // there is a result of no elements

	f32, f64      func(g *reduction, m *ir.Memory) (func() error, error)
	i32, i64, u32 func(g *reduction, m *ir.Memory) (func() error, error) // nil: integers are not taken

	back func(b *ir.Backward, along []bool) *ir.Tensor
}

var (
	sums = reducing{
		name: "reduce sum", zero: true, f32: bindSum[float32, float64], f64: bindSum[float64, float64],
		i32: bindSum[int32, int32], i64: bindSum[int64, int64], u32: bindSum[uint32, uint32],
		back: func(b *ir.Backward, along []bool) *ir.Tensor { return repeated(b, b.Grad(0), along) },
	}
	means = reducing{
		name: "reduce mean", f32: bindMean[float32], f64: bindMean[float64],
		back: func(b *ir.Backward, along []bool) *ir.Tensor {
			count := 1
			for d, extent := range b.InSpec(0).Shape {
				if along[d] {
					count *= extent
				}
			}
			return repeated(b, divide(b.Grad(0), count), along)
		},
	}
	greatest = reducing{
		name: "reduce max", f32: bindMax[float32], f64: bindMax[float64],
		i32: bindMax[int32], i64: bindMax[int64], u32: bindMax[uint32],
		back: func(b *ir.Backward, along []bool) *ir.Tensor { return maxGradient(b.In(0), b.Grad(0), along) },
	}
)

// repeated gives every element of the input of a reduction what its result has.
func repeated(b *ir.Backward, g *ir.Tensor, along []bool) *ir.Tensor {
	s := b.InSpec(0).Shape
	kept := s.Clone()
	for d := range kept {
		if along[d] {
			kept[d] = 1
		}
	}
	return expansion{shape: s, as: kept}.of(g)
}

// alongOf says of each dimension whether some axes are along it. No axes are along all.
func alongOf(axes []int, rank int) ([]bool, error) {
	along := make([]bool, rank)
	for d := range along {
		along[d] = len(axes) == 0
	}
	for _, axis := range axes {
		d, err := axisOf(axis, rank)
		if err != nil {
			return nil, err
		}
		if along[d] {
			return nil, fmt.Errorf("axes %v have dimension %d twice, want each once", axes, d)
		}
		along[d] = true
	}
	return along, nil
}

// infer is the rule of a reduction.
func (k reducing) infer(s ir.Spec, axes []int, keep bool) ([]ir.Spec, error) {
	types := numberTypes
	if k.i32 == nil {
		types = floatTypes
	}
	if err := takes(types, s.DType); err != nil {
		return nil, err
	}
	along, err := alongOf(axes, len(s.Shape))
	if err != nil {
		return nil, err
	}
	shape, some := tensor.Shape{}, true
	for d, extent := range s.Shape {
		switch {
		case !along[d]:
			shape = append(shape, extent)
		case keep:
			shape = append(shape, 1)
		}
		some = some && (extent > 0 || !along[d])
	}
	if !some && !k.zero {
		return nil, errors.New("along no elements, want one or more")
	}
	return []ir.Spec{{Shape: shape, DType: s.DType}}, nil
}

func (k reducing) of(t *ir.Tensor, axes []int, keep bool) *ir.Tensor {
	axes = slices.Clone(axes)
	bind := func(f func(g *reduction, m *ir.Memory) (func() error, error)) func(m *ir.Memory) (func() error, error) {
		return func(m *ir.Memory) (func() error, error) {
			along, err := alongOf(axes, m.In[0].Rank())
			if err != nil {
				return nil, err
			}
			return f(newReduction(m.In[0].Shape(), along), m)
		}
	}
	return (&row{
		name:  k.name,
		infer: func(in []ir.Spec) ([]ir.Spec, error) { return k.infer(in[0], axes, keep) },
		f32:   bind(k.f32), f64: bind(k.f64),
		bind: func(m *ir.Memory) (func() error, error) {
			return bind(byType(m.In[0].DType(), k.f32, k.f64, k.i32, k.i64, k.u32))(m)
		},
		back: func(b *ir.Backward) []*ir.Tensor {
			along, err := alongOf(axes, len(b.InSpec(0).Shape))
			if err != nil { // infer has found none
				return nil
			}
			return []*ir.Tensor{k.back(b, along)}
		},
	}).of(t)
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

func bindSum[T, A number](g *reduction, m *ir.Memory) (func() error, error) {
	return bindMeans[T](g, A(1), m)
}

func bindMean[T float](g *reduction, m *ir.Memory) (func() error, error) {
	return bindMeans[T](g, float64(g.count), m)
}

// bindMeans adds in A, divides, and rounds.
func bindMeans[T, A number](g *reduction, by A, m *ir.Memory) (func() error, error) {
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

func bindMax[T number](g *reduction, m *ir.Memory) (func() error, error) {
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

// maxGradient is the gradient of a reduction to the greatest, given what is reduced and the gradient g of the result.
func maxGradient(x, g *ir.Tensor, along []bool) *ir.Tensor {
	bind := func(f func(g *reduction, m *ir.Memory) (func() error, error)) func(m *ir.Memory) (func() error, error) {
		return func(m *ir.Memory) (func() error, error) { return f(newReduction(m.In[0].Shape(), along), m) }
	}
	return (&row{
		name: "reduce max gradient", infer: like,
		f32: bind(bindMaxGradient[float32]), f64: bind(bindMaxGradient[float64]),
		back: func(b *ir.Backward) []*ir.Tensor { // of g: what the places of the greatest have
			x, s := b.In(0), b.InSpec(1)
			one, zero := scalar(b.Graph(), s.DType, 1), scalar(b.Graph(), s.DType, 0)
			greatest := NotEqual(maxGradient(x, Expand(one, s.Shape...), along), zero)
			var axes []int
			for d, is := range along {
				if is {
					axes = append(axes, d)
				}
			}
			u := b.Grad(0)
			if len(axes) > 0 {
				u = ReduceSum(Select(greatest, u, zero), axes...)
			}
			return []*ir.Tensor{nil, Reshape(u, s.Shape...)}
		},
	}).of(x, g)
}

func bindMaxGradient[T float](g *reduction, m *ir.Memory) (func() error, error) {
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
func Argmax(t *ir.Tensor) *ir.Tensor {
	return (&row{
		name: "argmax",
		infer: func(in []ir.Spec) ([]ir.Spec, error) {
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
			return []ir.Spec{{Shape: in[0].Shape[:len(in[0].Shape)-1], DType: tensor.I32}}, nil
		},
		f32: bindArgmax[float32], f64: bindArgmax[float64],
		bind: func(m *ir.Memory) (func() error, error) {
			return byType(m.In[0].DType(), nil, nil, bindArgmax[int32], bindArgmax[int64], bindArgmax[uint32])(m)
		},
	}).of(t)
}

func bindArgmax[T number](m *ir.Memory) (func() error, error) {
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

// divide divides floats by a number, which is rounded to no type of theirs before.
func divide(t *ir.Tensor, by int) *ir.Tensor {
	return (&row{
		name:  "divide",
		infer: func(in []ir.Spec) ([]ir.Spec, error) { return in, takes(floatTypes, in[0].DType) },
		bind: func(m *ir.Memory) (func() error, error) {
			divide := kernel.Divide(kernel.Type(m.In[0].DType()))
			dst, src := m.Out[0].Bytes(), m.In[0].Bytes()
			return func() error {
				divide(dst, src, by)
				return nil
			}, nil
		},
		back: func(b *ir.Backward) []*ir.Tensor { return []*ir.Tensor{divide(b.Grad(0), by)} },
	}).of(t)
}
