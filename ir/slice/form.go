package slice

import (
	"fmt"
	"slices"

	"gogcl.dev/ir"
	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// Kind is how many slices there are, and of what.
type Kind uint8

// The kinds. Offsets have an entry for each of the d dimensions that are sliced.
const (
	// Dynamic is one slice: offsets of shape (d) or (d, workers). One out of range is an error of the run. There is no
	// plan, and no options.
	Dynamic Kind = iota

	// Multi is n slices, with n as their leading dimension: offsets of shape (n, d). A look-up with one out of range
	// gives zeros, and an update leaves it out; with ValidateIndices it is an error of the run.
	Multi

	// GroupedMulti is Multi for each group on its own: the tensor, slices and offsets have the groups as first
	// dimension, and Dims count without it. It needs a plan.
	GroupedMulti
)

var kindNames = [...]string{"dynamic", "multi", "grouped multi"}

// String is the kind's name in programs as text.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Form says what slices are: Sizes[k] entries of dimension Dims[k], and all of the others. The zero value is one slice,
// of the whole tensor. A Form may be used by any number of operations; what its lists hold when one is built counts.
//
//	rows := slice.Form{Kind: slice.Multi, Dims: []int{0}, Sizes: []int{1}}
type Form struct {
	Kind        Kind
	Dims, Sizes []int
	Plan        *popops.Plan   // nil: none, for Multi made as needed
	Options     popops.Options // of each call
	err         error          // of At: reported by operations
}

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

// own is f with lists of its own.
func (f Form) own() Form {
	f.Dims, f.Sizes = slices.Clone(f.Dims), slices.Clone(f.Sizes)
	return f
}

// slices is the spec of slices of t, all checked that can be but for the plan.
func (f *Form) slices(t, offsets ir.Spec) (ir.Spec, error) {
	fail := func(format string, args ...any) (ir.Spec, error) { return ir.Spec{}, fmt.Errorf(format, args...) }
	switch {
	case f.err != nil:
		return ir.Spec{}, f.err
	case int(f.Kind) >= len(kindNames):
		return fail("Kind is %d, want Dynamic, Multi or GroupedMulti", f.Kind)
	case f.Kind == Dynamic && (f.Plan != nil || f.Options != popops.Options{}):
		return fail("Plan or Options of a Dynamic slice, want them of Multi or GroupedMulti")
	case f.Kind == GroupedMulti && len(t.Shape) == 0:
		return fail("t is a scalar, want a group dimension")
	}
	shape := f.within(t)
	if len(f.Dims) != len(f.Sizes) {
		return fail("%d dims and %d sizes, want one size for each dimension", len(f.Dims), len(f.Sizes))
	}
	for k, d := range f.Dims {
		if d < 0 || d >= len(shape) {
			return fail("dimension %d of what has rank %d, want 0 <= dimension < rank", d, len(shape))
		}
		if slices.Contains(f.Dims[:k], d) {
			return fail("dimension %d is given twice", d)
		}
		if size := f.Sizes[k]; size < 0 || size > shape[d] {
			return fail("size %d in dimension %d, want 0 <= size <= %d, its extent", size, d, shape[d])
		}
	}
	if offsets.DType != tensor.U32 && offsets.DType != tensor.I32 {
		return fail("offsets are %v, want uint32 or int32", offsets.DType)
	}
	out := tensor.Shape{}
	switch o, d := offsets.Shape, len(f.Dims); {
	case f.Kind == Dynamic:
		if len(o) < 1 || len(o) > 2 || o[0] != d || len(o) == 2 && o[1] == 0 && d > 0 {
			return fail("offset has shape %v, want (%d) or (%[2]d, workers), an entry for each dimension", o, d)
		}
	case f.Kind == Multi:
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
		if k := slices.Index(f.Dims, axis); k >= 0 {
			extent = f.Sizes[k]
		}
		out = append(out, extent)
	}
	return ir.Spec{Shape: out, DType: t.DType}, out.Validate()
}

// within is the shape of t, or of a group of it.
func (f *Form) within(t ir.Spec) tensor.Shape {
	if f.Kind == GroupedMulti {
		return t.Shape[1:]
	}
	return t.Shape
}

// lookUps is how many offsets there are, in each group.
func (f *Form) lookUps(offsets ir.Spec) int {
	switch f.Kind {
	case Multi:
		return offsets.Shape[0]
	case GroupedMulti:
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
func (f *Form) rows(t, offsets ir.Spec) (table, bool) {
	if f.Kind == Dynamic || len(f.Dims) != 1 || f.Sizes[0] != 1 {
		return table{}, false
	}
	r := table{dtype: t.DType, groups: 1, width: 1, n: f.lookUps(offsets)}
	if f.Kind == GroupedMulti {
		r.groups = t.Shape[0]
	}
	for axis, extent := range f.within(t) {
		if axis == f.Dims[0] {
			r.entries = extent
		} else {
			r.width *= extent
		}
	}
	return r, true
}

// checkPlan returns what is wrong with plan and options for a verb.
func (f *Form) checkPlan(v verb, t, offsets ir.Spec) error {
	if f.Kind == Dynamic {
		return nil
	}
	r, is := f.rows(t, offsets)
	if !is {
		if f.Plan != nil || f.Kind == GroupedMulti {
			return fmt.Errorf("dims %v and sizes %v with a plan, want one dimension and the size 1", f.Dims, f.Sizes)
		}
		if f.Options.IndicesAreSorted && v != take && len(f.Dims) != 1 {
			return fmt.Errorf("IndicesAreSorted with %d dims, want 1", len(f.Dims))
		}
		r = table{dtype: t.DType}
	}
	if f.Kind == GroupedMulti && f.Plan == nil {
		return fmt.Errorf("no plan, want one for %d groups", r.groups)
	}
	return r.check(f.Plan, v, f.Options)
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
func (f Form) bound(v verb, t, offsets *tensor.Tensor) (Form, error) {
	r, is := f.rows(ir.SpecOf(t), ir.SpecOf(offsets))
	if !is {
		return f, nil
	}
	if f.Plan == nil {
		var err error
		if f.Plan, err = r.newPlan(v, f.Options, popops.PlanOptions{Workers: 1}); err != nil {
			return Form{}, err
		}
	}
	f.Plan = f.Plan.Clone()
	return f, nil
}

// bindTake is a function that makes dst the slices of t.
func (f Form) bindTake(dst, t, offsets *tensor.Tensor) (func() error, error) {
	f, err := f.bound(take, t, offsets)
	if err != nil {
		return nil, err
	}
	call := popops.MultiSliceInto
	switch f.Kind {
	case Dynamic:
		return func() error { return popops.DynamicSliceInto(dst, t, offsets, f.Dims, f.Sizes) }, nil
	case GroupedMulti:
		call = popops.GroupedMultiSliceInto
	}
	return ready(func() error { return call(dst, t, offsets, f.Dims, f.Sizes, f.Plan, f.Options) }), nil
}

// ready has made a call once, so that it allocates nothing from now on. It has all the memory that it will have, of
// which nobody has yet written anything that matters: a session uploads variables after it has bound operations. What
// is wrong with offsets then does not matter either.
func ready(call func() error) func() error {
	_ = call()
	return call
}

// bindUpdate is a function that updates t with slices; scale is for addTo.
func (f Form) bindUpdate(v verb, t, s, offsets, scale *tensor.Tensor) (func() error, error) {
	f, err := f.bound(v, t, offsets)
	if err != nil {
		return nil, err
	}
	if f.Kind == Dynamic {
		return func() error { return popops.DynamicUpdate(t, s, offsets, f.Dims, f.Sizes) }, nil
	}
	if v == addTo {
		call := popops.MultiUpdateAdd
		if f.Kind == GroupedMulti {
			call = popops.GroupedMultiUpdateAdd
		}
		return ready(func() error { return call(t, s, offsets, scale, f.Dims, f.Sizes, f.Plan, f.Options) }), nil
	}
	call := map[verb][2]func(t, s, offsets *tensor.Tensor, dims, sizes []int, plan *popops.Plan,
		options popops.Options) error{
		put:   {popops.MultiUpdate, popops.GroupedMultiUpdate},
		maxTo: {popops.MultiUpdateMax, popops.GroupedMultiUpdateMax},
	}[v][f.Kind-Multi]
	return ready(func() error { return call(t, s, offsets, f.Dims, f.Sizes, f.Plan, f.Options) }), nil
}

// gradientForm is the form of an operation of a gradient: with the plan, if it is one for that too, or one like it made
// for it. Options that the operation takes no notice of, and that of the gradient would refuse, are left out.
func (f Form) gradientForm(b *ir.Backward, v verb, t, offsets ir.Spec) Form {
	r, is := f.rows(t, offsets)
	if sums := (table{dtype: t.DType}); v != addTo ||
		sums.check(nil, addTo, popops.Options{PartialType: f.Options.PartialType}) != nil {
		f.Options.PartialType = 0
	}
	if len(f.Dims) != 1 {
		f.Options.IndicesAreSorted = false
	}
	if f.Plan == nil || !is || r.check(f.Plan, v, f.Options) == nil {
		return f
	}
	var err error
	if f.Plan, err = r.newPlan(v, f.Options, f.Plan.Options()); err != nil {
		b.Fail(err)
	}
	return f
}

// text is what differs from operation to operation, for programs as text.
func (f *Form) text() string {
	text := fmt.Sprintf("dims %v sizes %v", f.Dims, f.Sizes)
	if f.Plan != nil {
		text += " planned"
	}
	return text
}
