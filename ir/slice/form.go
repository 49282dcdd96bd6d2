package slice

import (
	"fmt"
	"slices"

	"gogcl.dev/ir"
	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// kind is how many slices there are.
type kind uint8

const (
	single  kind = iota // one, of DynamicSlice and DynamicUpdate
	several             // a leading dimension of look-ups
	grouped             // before it one of groups, which the table has too
)

func (k kind) String() string { return [...]string{"dynamic", "multi", "grouped multi"}[k] }

// verb is what is done with slices.
type verb uint8

const (
	take verb = iota
	put       // updates, as the next two
	addTo
	maxTo
)

func (v verb) String() string { return [...]string{"slice", "update", "update add", "update max"}[v] }

// operation is popops' name for an update.
func (v verb) operation() popops.UpdateOperation {
	return [...]popops.UpdateOperation{take: popops.UpdateNone, put: popops.UpdateNone, addTo: popops.UpdateAdd,
		maxTo: popops.UpdateMax}[v]
}

// form says what slices are.
type form struct {
	kind        kind
	dims, sizes []int // of a group
	plan        *popops.Plan
	options     popops.Options
}

func newForm(k kind, dims, sizes []int, plan *popops.Plan, options popops.Options) form {
	return form{k, slices.Clone(dims), slices.Clone(sizes), plan, options}
}

// slices is the spec of slices of t, all checked that can be but for the plan.
func (f *form) slices(t, offsets ir.Spec) (ir.Spec, error) {
	fail := func(format string, args ...any) (ir.Spec, error) { return ir.Spec{}, fmt.Errorf(format, args...) }
	if f.kind == grouped && len(t.Shape) == 0 {
		return fail("t is a scalar, want a group dimension")
	}
	shape := f.within(t)
	if len(f.dims) != len(f.sizes) {
		return fail("%d dims and %d sizes, want one size for each dimension", len(f.dims), len(f.sizes))
	}
	for k, d := range f.dims {
		if d < 0 || d >= len(shape) {
			return fail("dimension %d of what has rank %d, want 0 <= dimension < rank", d, len(shape))
		}
		if slices.Contains(f.dims[:k], d) {
			return fail("dimension %d is given twice", d)
		}
		if size := f.sizes[k]; size < 0 || size > shape[d] {
			return fail("size %d in dimension %d, want 0 <= size <= %d, its extent", size, d, shape[d])
		}
	}
	if offsets.DType != tensor.U32 && offsets.DType != tensor.I32 {
		return fail("offsets are %v, want uint32 or int32", offsets.DType)
	}
	out := tensor.Shape{}
	switch o, d := offsets.Shape, len(f.dims); {
	case f.kind == single:
		if len(o) < 1 || len(o) > 2 || o[0] != d || len(o) == 2 && o[1] == 0 && d > 0 {
			return fail("offset has shape %v, want (%d) or (%[2]d, workers), an entry for each dimension", o, d)
		}
	case f.kind == several:
		if len(o) != 2 || o[1] != d {
			return fail("offsets have shape %v, want (n, %d): look-ups, dimensions", o, d)
		}
		out = append(out, o[0])
	default:
		if len(o) != 3 || o[0] != t.Shape[0] || o[2] != d {
			return fail("offsets have shape %v, want (%d, n, %d): groups, look-ups, dimensions", o, t.Shape[0], d)
		}
		out = append(out, o[:2]...)
	}
	for axis, extent := range shape {
		if k := slices.Index(f.dims, axis); k >= 0 {
			extent = f.sizes[k]
		}
		out = append(out, extent)
	}
	return ir.Spec{Shape: out, DType: t.DType}, out.Validate()
}

// within is the shape of t, or of a group of it.
func (f *form) within(t ir.Spec) tensor.Shape {
	if f.kind == grouped {
		return t.Shape[1:]
	}
	return t.Shape
}

// lookUps is how many offsets there are, in each group.
func (f *form) lookUps(offsets ir.Spec) int {
	switch f.kind {
	case several:
		return offsets.Shape[0]
	case grouped:
		return offsets.Shape[1]
	}
	return 1
}

// table is what a plan has to know.
type table struct {
	dtype                     tensor.DType
	groups, entries, width, n int
}

// rows is the table of t and its offsets; false if slices are not single entries of one dimension.
func (f *form) rows(t, offsets ir.Spec) (table, bool) {
	if f.kind == single || len(f.dims) != 1 || f.sizes[0] != 1 {
		return table{}, false
	}
	r := table{dtype: t.DType, groups: 1, width: 1, n: f.lookUps(offsets)}
	if f.kind == grouped {
		r.groups = t.Shape[0]
	}
	for axis, extent := range f.within(t) {
		if axis == f.dims[0] {
			r.entries = extent
		} else {
			r.width *= extent
		}
	}
	return r, true
}

// checkPlan returns what is wrong with plan and options for a verb.
func (f *form) checkPlan(v verb, t, offsets ir.Spec) error {
	if f.kind == single {
		return nil
	}
	r, is := f.rows(t, offsets)
	if !is {
		if f.plan != nil || f.kind == grouped {
			return fmt.Errorf("dims %v and sizes %v with a plan, want one dimension and the size 1", f.dims, f.sizes)
		}
		if f.options.IndicesAreSorted && v != take && len(f.dims) != 1 {
			return fmt.Errorf("IndicesAreSorted with %d dims, want 1", len(f.dims))
		}
		r = table{dtype: t.DType}
	}
	if f.kind == grouped && f.plan == nil {
		return fmt.Errorf("no plan, want one for %d groups", r.groups)
	}
	return r.check(f.plan, v, f.options)
}

func (r table) check(p *popops.Plan, v verb, options popops.Options) error {
	if v == take {
		return p.CheckSlice(r.dtype, r.groups, r.entries, r.width, r.n, options)
	}
	return p.CheckUpdate(v.operation(), r.dtype, r.groups, r.entries, r.width, r.n, options)
}

// newPlan is a plan for nothing but a verb, and the options of a call; what they do not say is as like has it.
func (r table) newPlan(v verb, options popops.Options, like popops.PlanOptions) (*popops.Plan, error) {
	like.NotForSlice, like.NotForUpdate, like.Operation = v != take, v == take, v.operation()
	like.IndicesAreSorted, like.PartialType = options.IndicesAreSorted, options.PartialType
	return popops.NewGroupedPlan(r.dtype, r.groups, r.entries, r.width, []int{r.n}, like)
}

// bound is form with a plan that belongs to one place of one replica.
func (f form) bound(v verb, t, offsets *tensor.Tensor) (form, error) {
	r, is := f.rows(ir.SpecOf(t), ir.SpecOf(offsets))
	if !is {
		return f, nil
	}
	if f.plan == nil {
		var err error
		if f.plan, err = r.newPlan(v, f.options, popops.PlanOptions{Workers: 1}); err != nil {
			return form{}, err
		}
	}
	f.plan = f.plan.Clone()
	return f, nil
}

// bindTake is a function that makes dst the slices of t.
func (f form) bindTake(dst, t, offsets *tensor.Tensor) (func() error, error) {
	f, err := f.bound(take, t, offsets)
	if err != nil {
		return nil, err
	}
	call := popops.MultiSliceInto
	switch f.kind {
	case single:
		return func() error { return popops.DynamicSliceInto(dst, t, offsets, f.dims, f.sizes) }, nil
	case grouped:
		call = popops.GroupedMultiSliceInto
	}
	return ready(func() error { return call(dst, t, offsets, f.dims, f.sizes, f.plan, f.options) }), nil
}

// ready has made a call once, so that it allocates nothing from now on. It has all the memory that it will have, of
// which nobody has yet written anything that matters: a session uploads variables after it has bound operations. What
// is wrong with offsets then does not matter either.
func ready(call func() error) func() error {
	_ = call()
	return call
}

// bindUpdate is a function that updates t with slices; scale is for addTo.
func (f form) bindUpdate(v verb, t, s, offsets, scale *tensor.Tensor) (func() error, error) {
	f, err := f.bound(v, t, offsets)
	if err != nil {
		return nil, err
	}
	if f.kind == single {
		return func() error { return popops.DynamicUpdate(t, s, offsets, f.dims, f.sizes) }, nil
	}
	if v == addTo {
		call := popops.MultiUpdateAdd
		if f.kind == grouped {
			call = popops.GroupedMultiUpdateAdd
		}
		return ready(func() error { return call(t, s, offsets, scale, f.dims, f.sizes, f.plan, f.options) }), nil
	}
	call := map[verb][2]func(t, s, offsets *tensor.Tensor, dims, sizes []int, plan *popops.Plan,
		options popops.Options) error{
		put:   {popops.MultiUpdate, popops.GroupedMultiUpdate},
		maxTo: {popops.MultiUpdateMax, popops.GroupedMultiUpdateMax},
	}[v][f.kind-several]
	return ready(func() error { return call(t, s, offsets, f.dims, f.sizes, f.plan, f.options) }), nil
}

// gradientForm is the form of an operation of a gradient: with the plan, if it is one for that too, or one like it made
// for it. Options that the operation takes no notice of, and that of the gradient would refuse, are left out.
func (f form) gradientForm(b *ir.Backward, v verb, t, offsets ir.Spec) form {
	r, is := f.rows(t, offsets)
	if sums := (table{dtype: t.DType}); v != addTo ||
		sums.check(nil, addTo, popops.Options{PartialType: f.options.PartialType}) != nil {
		f.options.PartialType = 0
	}
	if len(f.dims) != 1 {
		f.options.IndicesAreSorted = false
	}
	if f.plan == nil || !is || r.check(f.plan, v, f.options) == nil {
		return f
	}
	var err error
	if f.plan, err = r.newPlan(v, f.options, f.plan.Options()); err != nil {
		b.Fail(err)
	}
	return f
}

// String is what differs from operation to operation, for programs as text.
func (f *form) String() string {
	text := fmt.Sprintf("dims %v sizes %v", f.dims, f.sizes)
	if f.plan != nil {
		text += " planned"
	}
	return text
}
