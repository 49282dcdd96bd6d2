package slice_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/ir/slice"
	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// call is what the functions have in common.
type call struct {
	groups      int // 0: not grouped
	shape       []int
	dims, sizes []int
	n           int  // look-ups; 0 with single
	single      bool // DynamicSlice and DynamicUpdate
	planned     bool
	options     popops.Options
}

func (c call) String() string {
	return fmt.Sprintf("groups %d shape %v dims %v sizes %v n %d single %v planned %v",
		c.groups, c.shape, c.dims, c.sizes, c.n, c.single, c.planned)
}

// rows are single entries of the first dimension.
var rows = slice.Form{Kind: slice.Multi, Dims: []int{0}, Sizes: []int{1}}

// calls are some of each form; offsets fills in the offsets.
var calls = []call{
	{shape: []int{5, 3}, dims: []int{0}, sizes: []int{1}, n: 7},
	{shape: []int{5, 3}, dims: []int{0}, sizes: []int{1}, n: 7, planned: true},
	{shape: []int{2, 4, 3}, dims: []int{1}, sizes: []int{1}, n: 9, planned: true, options: popops.Options{IndicesAreSorted: true}},
	{shape: []int{3, 4}, dims: []int{1}, sizes: []int{1}, n: 6, options: popops.Options{IndicesAreSorted: true}},
	{shape: []int{4, 5}, dims: []int{0, 1}, sizes: []int{2, 3}, n: 5},
	{shape: []int{4, 5}, dims: []int{1, 0}, sizes: []int{5, 1}, n: 3},
	{shape: []int{2, 3}, n: 2},
	{shape: []int{4, 3}, dims: []int{0}, sizes: []int{0}, n: 3},
	{groups: 2, shape: []int{4, 3}, dims: []int{0}, sizes: []int{1}, n: 6, planned: true},
	{groups: 3, shape: []int{2, 4}, dims: []int{1}, sizes: []int{1}, n: 5, planned: true, options: popops.Options{IndicesAreSorted: true}},
	{single: true, shape: []int{3, 4}, dims: []int{1}, sizes: []int{3}},
	{single: true, shape: []int{3, 4, 2}, dims: []int{2, 0}, sizes: []int{1, 2}},
	{single: true, shape: []int{3}},
}

// offsets are the offsets of a call: some equal, and but for a single slice some out of range.
func (c call) offsets(t testing.TB) *tensor.Tensor {
	t.Helper()
	r := rand.New(rand.NewPCG(3, uint64(len(c.shape)+c.n)))
	d := len(c.dims)
	if c.single {
		at := make([]int32, d)
		for k, axis := range c.dims {
			at[k] = int32(c.shape[axis] - 1) // it wraps around
		}
		return of(t, at, d)
	}
	shape := []int{c.n, d}
	if c.groups > 0 {
		shape = []int{c.groups, c.n, d}
	}
	at := make([]int32, max(c.groups, 1)*c.n*d)
	for i := range at {
		at[i] = int32(r.IntN(c.shape[c.dims[i%d]]+2) - 1)
		if c.options.IndicesAreSorted {
			at[i] = int32(i%c.n*(c.shape[c.dims[0]]+2)/c.n - 1)
		}
	}
	return of(t, at, shape...)
}

func (c call) table() []int {
	if c.groups > 0 {
		return append([]int{c.groups}, c.shape...)
	}
	return c.shape
}

// slices is the shape of slices.
func (c call) slices() []int {
	var out []int
	if c.groups > 0 {
		out = append(out, c.groups)
	}
	if !c.single {
		out = append(out, c.n)
	}
	for axis, extent := range c.shape {
		for k, d := range c.dims {
			if d == axis {
				extent = c.sizes[k]
			}
		}
		out = append(out, extent)
	}
	return out
}

// plan is a plan for a verb alone, so that gradients need others; or none.
func (c call) plan(t testing.TB, v string, d tensor.DType) *popops.Plan {
	t.Helper()
	if !c.planned {
		return nil
	}
	width := 1
	for axis, extent := range c.shape {
		if axis != c.dims[0] {
			width *= extent
		}
	}
	o := popops.PlanOptions{NotForSlice: v != "slice",
		NotForUpdate: v == "slice", IndicesAreSorted: c.options.IndicesAreSorted, Workers: 2}
	switch v {
	case "update":
		o.Operation = popops.UpdateNone
	case "max":
		o.Operation = popops.UpdateMax
	}
	p, err := popops.NewGroupedPlan(d, max(c.groups, 1), c.shape[c.dims[0]], width, []int{c.n}, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// verbs are the verbs of a call.
func (c call) verbs() []string {
	if c.single {
		return []string{"slice", "update"}
	}
	return []string{"slice", "update", "add", "max"}
}

// form is that of a call.
func (c call) form(p *popops.Plan) slice.Form {
	f := slice.Form{Kind: slice.Multi, Dims: c.dims, Sizes: c.sizes, Plan: p, Options: c.options}
	switch {
	case c.single:
		f.Kind = slice.Dynamic
	case c.groups > 0:
		f.Kind = slice.GroupedMulti
	}
	return f
}

// op adds the operation of a verb to a program: in is t, offsets, or t, s, offsets, or t, s, offsets, scale.
func (c call) op(in []*ir.Tensor, v string, p *popops.Plan, inPlace bool) *ir.Tensor {
	f := c.form(p)
	switch {
	case v == "slice":
		return f.Slice(in[0], in[1])
	case v == "update" && inPlace:
		return f.UpdateInPlace(in[0], in[1], in[2])
	case v == "update":
		return f.Update(in[0], in[1], in[2])
	case v == "max" && inPlace:
		return f.UpdateMaxInPlace(in[0], in[1], in[2])
	case v == "max":
		return f.UpdateMax(in[0], in[1], in[2])
	case inPlace:
		return f.UpdateAddInPlace(in[0], in[1], in[2], in[3])
	}
	return f.UpdateAdd(in[0], in[1], in[2], in[3])
}

// direct is the same by popops, on a copy.
func (c call) direct(t testing.TB, in []*tensor.Tensor, v string, p *popops.Plan) *tensor.Tensor {
	t.Helper()
	y := in[0].Clone()
	var err error
	switch g := c.groups > 0; {
	case c.single && v == "slice":
		y, err = popops.DynamicSlice(in[0], in[1], c.dims, c.sizes)
	case c.single:
		err = popops.DynamicUpdate(y, in[1], in[2], c.dims, c.sizes)
	case v == "slice" && g:
		y, err = popops.GroupedMultiSlice(in[0], in[1], c.dims, c.sizes, p, c.options)
	case v == "slice":
		y, err = popops.MultiSlice(in[0], in[1], c.dims, c.sizes, p, c.options)
	case v == "update" && g:
		err = popops.GroupedMultiUpdate(y, in[1], in[2], c.dims, c.sizes, p, c.options)
	case v == "update":
		err = popops.MultiUpdate(y, in[1], in[2], c.dims, c.sizes, p, c.options)
	case v == "max" && g:
		err = popops.GroupedMultiUpdateMax(y, in[1], in[2], c.dims, c.sizes, p, c.options)
	case v == "max":
		err = popops.MultiUpdateMax(y, in[1], in[2], c.dims, c.sizes, p, c.options)
	case g:
		err = popops.GroupedMultiUpdateAdd(y, in[1], in[2], in[3], c.dims, c.sizes, p, c.options)
	default:
		err = popops.MultiUpdateAdd(y, in[1], in[2], in[3], c.dims, c.sizes, p, c.options)
	}
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// inputs are those of a verb.
func (c call) inputs(t testing.TB, v string, d tensor.DType) []*tensor.Tensor {
	t.Helper()
	in := []*tensor.Tensor{fill(t, d, 1, c.table()...)}
	if v != "slice" {
		in = append(in, fill(t, d, 2, c.slices()...))
	}
	in = append(in, c.offsets(t))
	if v == "add" {
		in = append(in, fill(t, d, 4, 1))
	}
	return in
}

// TestAgainstPopops has each operation give the bits of the function of popops, of types of each size, with its input
// unchanged, and in place.
func TestAgainstPopops(t *testing.T) {
	for _, c := range calls {
		for _, v := range c.verbs() {
			for _, d := range []tensor.DType{tensor.Bool, tensor.U8, tensor.I32, tensor.F16, tensor.BF16, tensor.F32,
				tensor.F64} {
				if d == tensor.Bool && (v == "add" || v == "max") ||
					d == tensor.F16 && v == "add" && len(c.sizes) != 1 && raceDetectorOn {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%v", v, d, c), func(t *testing.T) {
					in, p := c.inputs(t, v, d), c.plan(t, v, d)
					want := c.direct(t, in, v, p)
					got := run(t, in, func(in []*ir.Tensor) []*ir.Tensor {
						return []*ir.Tensor{c.op(in, v, p, false), in[0]}
					})
					if !sameBytes(got[0], want) {
						t.Errorf("%v, want %v", got[0], want)
					}
					if !sameBytes(got[1], in[0]) {
						t.Errorf("t has become %v, was %v", got[1], in[0])
					}
					if v == "slice" {
						return
					}
					got = run(t, in, func(in []*ir.Tensor) []*ir.Tensor {
						y := c.op(in, v, p, true)
						return []*ir.Tensor{y, in[0]} // read after it has changed
					})
					if !sameBytes(got[0], want) || !sameBytes(got[1], want) {
						t.Errorf("in place %v and %v, want %v", got[0], got[1], want)
					}
				})
			}
		}
	}
}

// apart makes a tensor's elements differ from those of others, by an eighth or more: ties have no derivative.
func apart(t *testing.T, x *tensor.Tensor, from int) {
	v := viewOf[float64](t, x)
	for i := range v {
		v[i] = float64((from+i*7)%101) / 8
	}
}

// TestGradients holds the gradient of each operation against differences.
func TestGradients(t *testing.T) {
	for _, c := range calls {
		for _, v := range c.verbs() {
			t.Run(fmt.Sprintf("%s/%v", v, c), func(t *testing.T) {
				in, p := c.inputs(t, v, tensor.F64), c.plan(t, v, tensor.F64)
				if v == "max" {
					apart(t, in[0], 0)
					apart(t, in[1], 7*in[0].Len())
				}
				checkGradients(t, v, func(in []*ir.Tensor) *ir.Tensor { return c.op(in, v, p, false) }, in...)
				if v == "slice" {
					return
				}
				checkGradients(t, v+" in place", func(in []*ir.Tensor) *ir.Tensor {
					own := ops.MulScalar(in[0], 1)
					c.op(append([]*ir.Tensor{own}, in[1:]...), v, p, true)
					return own
				}, in...)
			})
		}
	}
}

// TestGradientsByOnePlan has a plan that is for slices and for what adds, as a table that is trained has.
func TestGradientsByOnePlan(t *testing.T) {
	c := calls[0]
	p, err := popops.NewPlan(tensor.F64, 5, 3, []int{c.n}, popops.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"slice", "add"} {
		checkGradients(t, v, func(in []*ir.Tensor) *ir.Tensor {
			return c.op(in, v, p, false)
		}, c.inputs(t, v, tensor.F64)...)
	}
}

// TestGradientsOfGradients holds what Autodiff makes of the gradients against differences. That of the greatest has
// none.
func TestGradientsOfGradients(t *testing.T) {
	for _, c := range calls {
		for _, v := range c.verbs() {
			if v == "max" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", v, c), func(t *testing.T) {
				in, p := c.inputs(t, v, tensor.F64), c.plan(t, v, tensor.F64)
				f := func(in []*ir.Tensor) *ir.Tensor { return c.op(in, v, p, false) }
				checkGradients(t, v, func(in []*ir.Tensor) *ir.Tensor {
					var sum *ir.Tensor // of all gradients, so that all are looked at
					for _, g := range gradientOf(f)(in) {
						if s := ops.ReduceSum(ops.Square(g)); sum == nil {
							sum = s
						} else {
							sum = ops.Add(sum, s)
						}
					}
					return sum
				}, in...)
			})
		}
	}
}

// TestGradientTypes holds the gradients in other types of floats against those in float64: of quarters, so that all but
// the sums of products that are the gradient of scale are exact in 16 bits, and 1/64 of it is tolerated.
func TestGradientTypes(t *testing.T) {
	for _, c := range calls {
		for _, v := range c.verbs() {
			for _, d := range []tensor.DType{tensor.F16, tensor.BF16, tensor.F32} {
				for _, wideScale := range []bool{false, true} {
					if wideScale && (v != "add" || d == tensor.F32) {
						continue
					}
					t.Run(fmt.Sprintf("%s/%v/%v/%v", v, d, wideScale, c), func(t *testing.T) {
						wide, narrow := c.inputs(t, v, tensor.F64), c.inputs(t, v, d)
						if wideScale {
							narrow[3] = fill(t, tensor.F32, 4, 1)
						}
						p, q := c.plan(t, v, tensor.F64), c.plan(t, v, d)
						want := run(t, wide, gradientOf(func(in []*ir.Tensor) *ir.Tensor {
							return c.op(in, v, p, false)
						}))
						got := run(t, narrow, gradientOf(func(in []*ir.Tensor) *ir.Tensor {
							return c.op(in, v, q, false)
						}))
						for k, x := range got {
							w := floats(t, want[k])
							for i, f := range floats(t, x) {
								if !(math.Abs(f-w[i]) <= max(1, math.Abs(w[i]))/64) {
									t.Fatalf("gradient %d element %d is %v, want %v", k, i, f, w[i])
								}
							}
						}
					})
				}
			}
		}
	}
}

// TestMaxGradientWinners: of equal ones t is first, then look-ups in their order; +0 is greater than -0 and a NaN than
// all else; what is out of range takes no part.
func TestMaxGradientWinners(t *testing.T) {
	nan, negative := math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct {
		name       string
		t, s       []float64
		at         []int32
		wantT, own []bool // who has the gradient
	}{
		{"t first", []float64{2}, []float64{2, 2}, []int32{0, 0}, []bool{true}, []bool{false, false}},
		{"the first of s", []float64{1}, []float64{0, 2, 2}, []int32{0, 0, 0}, []bool{false}, []bool{false, true, false}},
		{"each its own", []float64{1, 5}, []float64{2, 4, 3, 6}, []int32{0, 1, 0, 1}, []bool{false, false}, []bool{false, false, true, true}},
		{"zeros", []float64{negative}, []float64{negative, 0, 0}, []int32{0, 0, 0}, []bool{false}, []bool{false, true, false}},
		{"t is NaN", []float64{nan}, []float64{3, nan}, []int32{0, 0}, []bool{true}, []bool{false, false}},
		{"s is NaN", []float64{1}, []float64{3, nan, nan}, []int32{0, 0, 0}, []bool{false}, []bool{false, true, false}},
		{"out of range", []float64{0, 1}, []float64{9, 0, -1, 9}, []int32{-1, 2, 1, 2}, []bool{true, true}, []bool{false, false, false, false}},
	} {
		for _, d := range []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64} {
			cast := func(v []float64, shape ...int) *tensor.Tensor {
				return run(t, []*tensor.Tensor{of(t, v, shape...)}, func(in []*ir.Tensor) []*ir.Tensor {
					return []*ir.Tensor{ops.Cast(in[0], d)}
				})[0]
			}
			in := []*tensor.Tensor{cast(c.t), cast(c.s, len(c.s), 1), of(t, c.at, len(c.at), 1)}
			got := run(t, in, func(in []*ir.Tensor) []*ir.Tensor {
				graph := in[0].Graph().Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
					return []*ir.Tensor{rows.UpdateMax(in[0], in[1], in[2])}
				}, in[0], in[1], in[2])
				info := ir.Autodiff(graph)
				forward := in[0].Graph().CallWithInfo(graph, nil, in...)
				by := info.By(forward)
				by[info.Grads[0]] = in[0].Graph().Constant(cast([]float64{3, 4}[:len(c.t)]))
				return in[0].Graph().CallWithInfo(info.Graph, by).Outputs()
			})
			for i, v := range floats(t, got[0]) {
				if want := []float64{0, float64(3 + i)}[index(c.wantT[i])]; v != want {
					t.Errorf("%s, %v: gradient of t has %v at %d, want %v", c.name, d, v, i, want)
				}
			}
			for i, v := range floats(t, got[1]) {
				if want := []float64{0, float64(3 + c.at[i])}[index(c.own[i])]; v != want {
					t.Errorf("%s, %v: gradient of s has %v at %d, want %v", c.name, d, v, i, want)
				}
			}
		}
	}
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestAt has offsets that are known when the program is built.
func TestAt(t *testing.T) {
	x, s := fill(t, tensor.F32, 1, 3, 4), fill(t, tensor.F32, 2, 3, 3, 1)
	offsets, scale := []int{3, 0, 3}, of(t, []float32{0.5})
	wantSlices, err := popops.MultiSliceAt(x, offsets, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := x.Clone()
	if err := popops.MultiUpdateAddAt(want, s, offsets, scale, 1); err != nil {
		t.Fatal(err)
	}
	got := run(t, []*tensor.Tensor{x, s, scale}, func(in []*ir.Tensor) []*ir.Tensor {
		f, at := slice.At(in[0], offsets, 1)
		return []*ir.Tensor{
			f.Slice(in[0], at),
			f.UpdateAdd(in[0], in[1], at, in[2]),
			f.UpdateAddInPlace(in[0], in[1], at, in[2]),
		}
	})
	for i, w := range []*tensor.Tensor{wantSlices, want, want} {
		if !sameBytes(got[i], w) {
			t.Errorf("output %d is %v, want %v", i, got[i], w)
		}
	}
	checkGradients(t, "slice", func(in []*ir.Tensor) *ir.Tensor {
		f, at := slice.At(in[0], offsets, 1)
		return f.Slice(in[0], at)
	}, fill(t, tensor.F64, 1, 3, 4))
	checkGradients(t, "add", func(in []*ir.Tensor) *ir.Tensor {
		f, at := slice.At(in[0], offsets, 1)
		return f.UpdateAdd(in[0], in[1], at, in[2])
	}, fill(t, tensor.F64, 1, 3, 4), fill(t, tensor.F64, 2, 3, 3, 1), fill(t, tensor.F64, 3, 1))
}

// TestGradientsOfWhatIsLeftOut: slices with an offset out of range have no part in any gradient, whatever they and
// scale are.
func TestGradientsOfWhatIsLeftOut(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, at := range []*tensor.Tensor{of(t, []int32{-1, 2, 4, 0}, 4, 1),
		of(t, []uint32{4, 2, math.MaxUint32, 0}, 4, 1)} {
		add := gradientOf(func(in []*ir.Tensor) *ir.Tensor {
			return rows.UpdateAdd(in[0], in[1], in[2], in[3])
		})
		x := fill(t, tensor.F64, 1, 4, 1)
		left := of(t, []float64{inf, 3, nan, 5}, 4, 1, 1)
		zeros := of(t, []float64{0, 3, 0, 5}, 4, 1, 1)
		got := run(t, []*tensor.Tensor{x, left, at, of(t, []float64{2})}, add)
		want := run(t, []*tensor.Tensor{x, zeros, at, of(t, []float64{2})}, add)
		for k := range want {
			if !sameBytes(got[k], want[k]) {
				t.Errorf("%v: gradient %d is %v, want %v", at.DType(), k, floats(t, got[k]), floats(t, want[k]))
			}
		}
		ds := floats(t, run(t, []*tensor.Tensor{x, zeros, at, of(t, []float64{inf})}, add)[1])
		if ds[0] != 0 || ds[2] != 0 || !math.IsInf(ds[1], 1) {
			t.Errorf("%v: gradient of s is %v with an infinite scale, want zeros first and third", at.DType(), ds)
		}
	}
	// Of several dimensions, and of groups, only the slice with an offset out of range.
	ones := func(shape ...int) *tensor.Tensor { // but for infinities second and third
		x := slices.Repeat([]float64{1}, 4)
		x[1], x[2] = inf, inf
		return of(t, x, shape...)
	}
	entries := slice.Form{Kind: slice.Multi, Dims: []int{0, 1}, Sizes: []int{1, 1}}
	got := run(t, []*tensor.Tensor{fill(t, tensor.F64, 1, 3, 3), ones(4, 1, 1),
		of(t, []int32{2, 2, 0, 3, -1, 0, 1, 1}, 4, 2), of(t, []float64{1})},
		gradientOf(func(in []*ir.Tensor) *ir.Tensor {
			return entries.UpdateAdd(in[0], in[1], in[2], in[3])
		}))
	if d := floats(t, got[2])[0]; math.IsNaN(d) || math.IsInf(d, 0) {
		t.Errorf("two dimensions: gradient of scale %v", d)
	}
	plan, err := popops.NewGroupedPlan(tensor.F64, 2, 3, 1, []int{2}, popops.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	groups := slice.Form{Kind: slice.GroupedMulti, Dims: []int{0}, Sizes: []int{1}, Plan: plan}
	got = run(t, []*tensor.Tensor{fill(t, tensor.F64, 1, 2, 3, 1), ones(2, 2, 1, 1),
		of(t, []int32{2, 3, -1, 0}, 2, 2, 1), of(t, []float64{1})},
		gradientOf(func(in []*ir.Tensor) *ir.Tensor {
			return groups.UpdateAdd(in[0], in[1], in[2], in[3])
		}))
	if d := floats(t, got[2])[0]; math.IsNaN(d) || math.IsInf(d, 0) {
		t.Errorf("groups: gradient of scale %v", d)
	}
}

// TestGradientOptions: options that slices take no notice of are no error of the gradient, which updates, and change it
// not.
func TestGradientOptions(t *testing.T) {
	plan, err := popops.NewPlan(tensor.F32, 4, 3, []int{2},
		popops.PlanOptions{NotForUpdate: true, PartialType: tensor.F16})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		dims    []int
		offsets *tensor.Tensor
		plan    *popops.Plan
		options popops.Options
	}{
		{"sorted blocks", []int{0, 1}, of(t, []int32{3, 2, 0, 1}, 2, 2), nil, popops.Options{IndicesAreSorted: true}},
		{"sums", []int{0}, of(t, []int32{3, 0}, 2, 1), nil, popops.Options{PartialType: tensor.F16}},
		{"sums of a plan", []int{0}, of(t, []int32{3, 0}, 2, 1), plan, popops.Options{PartialType: tensor.F16}},
	} {
		sizes := slices.Repeat([]int{1}, len(c.dims))
		in := []*tensor.Tensor{fill(t, tensor.F32, 1, 4, 3), c.offsets}
		gradient := func(p *popops.Plan, o popops.Options) buildFunc {
			return gradientOf(func(in []*ir.Tensor) *ir.Tensor {
				f := slice.Form{Kind: slice.Multi, Dims: c.dims, Sizes: sizes, Plan: p, Options: o}
				return f.Slice(in[0], in[1])
			})
		}
		if err := failure(in, gradient(c.plan, c.options)); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, want := run(t, in, gradient(c.plan, c.options)), run(t, in, gradient(nil, popops.Options{}))
		if !sameBytes(got[0], want[0]) {
			t.Errorf("%s: gradient %v, want %v", c.name, floats(t, got[0]), floats(t, want[0]))
		}
	}
}
