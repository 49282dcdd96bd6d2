package popops

import (
	"fmt"

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

// Options are those that the plan was made with, with Workers as many as there are: for who makes one like it. Those of
// no plan are the zero value.
func (p *Plan) Options() PlanOptions {
	if p == nil {
		return PlanOptions{}
	}
	options := p.options
	options.Workers = p.crews.workers
	return options
}

// Clone is the same plan with memory of its own, for one call at a time to begin with: whoever calls with a clone that
// nobody else has allocates nothing once a call like it has been made, whatever others do with p. That of
// no plan is none, and that of a plan that NewPlan has not made is like it for nothing.
func (p *Plan) Clone() *Plan {
	if p == nil {
		return nil
	}
	if len(p.lookUps) == 0 {
		return &Plan{}
	}
	clone, err := newPlan("Clone", p.dtype, p.groups, p.entries, p.width, p.lookUps, p.Options())
	if err != nil {
		panic(err) // p was made of the same
	}
	clone.crews.give(clone.crews.take())
	return clone
}
