package popops

import "gogcl.dev/tensor"

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
