package popops

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"gogcl.dev/tensor"
)

// CheckSlice returns the error that MultiSlice by single entries of one dimension has of its plan and options, given n
// look-ups in each of so many groups of entries of width elements: for who knows shapes before there are tensors. A nil
// plan is none. What depends on the offsets is not looked at.
func (p *Plan) CheckSlice(dtype tensor.DType, groups, entries, width, n int, options Options) error {
	return p.checkCall(take, &rowTable{dtype, groups, entries, width, n}, options)
}

// CheckUpdate is CheckSlice for the update with that operation.
func (p *Plan) CheckUpdate(operation UpdateOperation, dtype tensor.DType, groups, entries, width, n int,
	options Options) error {
	r := &rowTable{dtype, groups, entries, width, n}
	switch operation {
	case UpdateNone:
		return p.checkCall(put, r, options)
	case UpdateAdd:
		return p.checkCall(addTo, r, options)
	case UpdateMax:
		return p.checkCall(maxTo, r, options)
	}
	return fmt.Errorf("operation %v, want UpdateAdd, UpdateNone or UpdateMax", operation)
}

func (p *Plan) checkCall(v verb, r *rowTable, options Options) error {
	switch {
	case !r.dtype.Valid():
		return fmt.Errorf("invalid dtype %v", r.dtype)
	case r.groups < 0 || r.entries < 0 || r.width < 0:
		return fmt.Errorf("%d groups of %d entries of %d elements, want 0 or more of all", r.groups, r.entries, r.width)
	case r.n < 0:
		return fmt.Errorf("%d look-ups, want 0 or more", r.n)
	case v >= addTo && !r.dtype.IsNumber():
		return fmt.Errorf("elements are %v, want a number", r.dtype)
	}
	options.ValidateIndices, options.IndicesAreSorted = false, options.IndicesAreSorted && p != nil
	if p == nil {
		_, err := r.check(&offsets{}, v, nil, options)
		return err
	}
	if v == addTo {
		if err := checkPartial(options.PartialType, r.dtype); err != nil {
			return err
		}
	}
	return r.checkPlan(v, p, options)
}

// rowTable is what slices by single entries of one dimension are of.
type rowTable struct {
	dtype           tensor.DType
	groups, entries int
	width           int // elements of an entry
	n               int // look-ups, in each group
}

// check checks what a call says about offsets and sums against its plan, and the offsets against what it says. It
// returns the type that the call sums in.
func (r *rowTable) check(o *offsets, v verb, plan *Plan, options Options) (partial tensor.DType, err error) {
	if err := checkCount(r.n); err != nil {
		return 0, err
	}
	partial = options.PartialType
	validate := options.ValidateIndices
	if v == addTo {
		if err := checkPartial(partial, r.dtype); err != nil {
			return 0, err
		}
	}
	if plan != nil {
		if err := r.checkPlan(v, plan, options); err != nil {
			return 0, err
		}
		partial = plan.options.PartialType
		validate = validate || plan.options.ValidateIndices
	}
	if validate {
		if err := checkRange(o, r.entries); err != nil {
			return 0, err
		}
	}
	if options.IndicesAreSorted && v != take {
		return partial, checkSorted(o, r.n)
	}
	return partial, nil
}

// checkPlan returns an error when the plan is for something else.
func (r *rowTable) checkPlan(v verb, p *Plan, options Options) error {
	if err := p.checkTable(r.dtype, r.groups, r.entries, r.width); err != nil {
		return err
	}
	if err := p.checkLookUps(r.n); err != nil {
		return err
	}
	if err := p.checkVerb(v); err != nil {
		return err
	}
	if v != take {
		if err := p.checkSortedness(options); err != nil {
			return err
		}
	}
	if v == addTo {
		return p.checkPartial(options)
	}
	return nil
}

// checkTable returns an error for a table that the plan is not for.
func (p *Plan) checkTable(dtype tensor.DType, groups, entries, width int) error {
	if dtype != p.dtype || groups != p.groups || entries != p.entries || width != p.width {
		return fmt.Errorf("%d groups of %d entries of %d %v, the plan is for %d of %d of %d %v",
			groups, entries, width, dtype, p.groups, p.entries, p.width, p.dtype)
	}
	return nil
}

// checkVerb returns an error for an operation that the plan is not for.
func (p *Plan) checkVerb(v verb) error {
	if v == take {
		if p.options.NotForSlice {
			return fmt.Errorf("the plan is not for slices")
		}
		return nil
	}
	if p.options.NotForUpdate {
		return fmt.Errorf("the plan is not for updates")
	}
	of := UpdateNone
	switch v {
	case addTo:
		of = UpdateAdd
	case maxTo:
		of = UpdateMax
	}
	if of != p.options.Operation {
		return fmt.Errorf("operation %v, the plan is for %v", of, p.options.Operation)
	}
	return nil
}

// errNoPlan is for functions that cannot do without.
var errNoPlan = errors.New("no plan, want one")

// checkLookUps returns an error for a number of look-ups that the plan is not for.
func (p *Plan) checkLookUps(n int) error {
	if _, ok := slices.BinarySearch(p.lookUps, n); !ok {
		return fmt.Errorf("%d look-ups, the plan is for %v", n, p.lookUps)
	}
	return nil
}

// checkOptions returns an error for options that updates with the plan would refuse. Look-ups refuse none.
func (p *Plan) checkOptions(o Options) error {
	if p.options.NotForUpdate {
		return nil
	}
	if err := p.checkSortedness(o); err != nil {
		return err
	}
	if p.options.Operation != UpdateAdd {
		return nil
	}
	if err := checkPartial(o.PartialType, p.dtype); err != nil {
		return err
	}
	return p.checkPartial(o)
}

// checkSortedness returns an error unless offsets are sorted as the plan has it.
func (p *Plan) checkSortedness(o Options) error {
	if o.IndicesAreSorted != p.options.IndicesAreSorted {
		return fmt.Errorf("option IndicesAreSorted is %v, the plan was made with %v",
			o.IndicesAreSorted, p.options.IndicesAreSorted)
	}
	return nil
}

// checkPartial returns an error for sums in another type than the plan's.
func (p *Plan) checkPartial(o Options) error {
	partial, planned := o.PartialType, p.options.PartialType
	if partial != 0 && sumType(partial, p.dtype) != sumType(planned, p.dtype) {
		return fmt.Errorf("option PartialType is %v, the plan was made with %v", partial, sumType(planned, p.dtype))
	}
	return nil
}

// is16 reports whether a type is a float of 16 bits.
func is16(t tensor.DType) bool { return t == tensor.F16 || t == tensor.BF16 }

// checkPartial returns an error for a partial type that data of dtype cannot be summed in.
func checkPartial(partial, dtype tensor.DType) error {
	if partial == 0 || partial == dtype || is16(dtype) && partial == tensor.F32 {
		return nil
	}
	if is16(dtype) {
		return fmt.Errorf("option PartialType %v for %v, want float32 or %[2]v", partial, dtype)
	}
	return fmt.Errorf("option PartialType %v for %v, want %[2]v", partial, dtype)
}

// sumsWide reports whether sums of dtype are kept in float32 and rounded once.
func sumsWide(partial, dtype tensor.DType) bool { return is16(dtype) && partial != dtype }

// sumType is what sums of dtype are kept in.
func sumType(partial, dtype tensor.DType) tensor.DType {
	if sumsWide(partial, dtype) {
		return tensor.F32
	}
	return dtype
}

// checkThere returns an error for a tensor that was not made by package tensor.
func checkThere(name string, t *tensor.Tensor) error {
	if t == nil {
		return fmt.Errorf("%s is nil, want a tensor", name)
	}
	if !t.DType().Valid() {
		return fmt.Errorf("%s is the zero Tensor, want one of a type", name)
	}
	return nil
}

// checkApart returns an error when what is written shares memory with what is read.
func checkApart(written, read *tensor.Tensor, offsets []byte) error {
	if overlap(written.Bytes(), read.Bytes()) || overlap(written.Bytes(), offsets) {
		return errShared
	}
	return nil
}

// errShared is for a table that shares memory with slices or offsets.
var errShared = errors.New("what is written shares memory with what is read, want them apart")

// overlap reports whether two pieces of memory have a byte in common.
func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	x, y := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}

// failed is an error of a function.
func failed(what string, err error) error { return fmt.Errorf("popops: %s: %w", what, err) }
