package popops

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"gogcl.dev/tensor"
)

// Plan says how look-ups in a table, and updates of it, are carried out: by how many workers, what each of them does,
// and in which order. It changes no result. It serves the functions that take one, for the table and the numbers of
// look-ups that it was made for, with single entries of one dimension; several calls may use it at the same time. It
// keeps the memory that calls need, so that they allocate nothing once as many have run together.
type Plan struct {
	dtype           tensor.DType
	groups, entries int
	width           int
	lookUps         []int
	options         PlanOptions
	choices         []choice // for each of lookUps
	crews           crews
}

// NewPlan is a plan for a table of so many entries of width elements of dtype (a table of shape (entries, width), or
// any where the sliced dimension has as many entries and the others together width elements), and calls of so many
// look-ups. Errors: an invalid dtype, fewer than 0 entries, elements or look-ups, no number of look-ups at all;
// options that are out of range or do not go together.
func NewPlan(dtype tensor.DType, entries, width int, lookUps []int, options PlanOptions) (*Plan, error) {
	return newPlan("NewPlan", dtype, 1, entries, width, lookUps, options)
}

// NewGroupedPlan is NewPlan for the grouped functions: so many tables, and as many times the look-ups.
func NewGroupedPlan(dtype tensor.DType, groups, entries, width int, lookUps []int, options PlanOptions) (*Plan, error) {
	return newPlan("NewGroupedPlan", dtype, groups, entries, width, lookUps, options)
}

func newPlan(what string, dtype tensor.DType, groups, entries, width int, lookUps []int,
	options PlanOptions) (*Plan, error) {
	fail := func(err error) (*Plan, error) { return nil, fmt.Errorf("popops: %s: %w", what, err) }
	if !dtype.Valid() {
		return fail(fmt.Errorf("invalid dtype %v", dtype))
	}
	if groups < 1 {
		return fail(fmt.Errorf("%d groups, want 1 or more", groups))
	}
	if entries < 0 || width < 0 {
		return fail(fmt.Errorf("%d entries of %d elements, want 0 or more of both", entries, width))
	}
	if len(lookUps) == 0 {
		return fail(fmt.Errorf("no number of look-ups, want one or more"))
	}
	if n := slices.Min(lookUps); n < 0 {
		return fail(fmt.Errorf("%d look-ups, want 0 or more", n))
	}
	for _, shape := range []tensor.Shape{{groups, entries, width, dtype.Size()},
		{groups, slices.Max(lookUps), width, dtype.Size()}} {
		if err := shape.Validate(); err != nil {
			return fail(err)
		}
	}
	if err := options.check(dtype); err != nil {
		return fail(err)
	}
	p := &Plan{dtype: dtype, groups: groups, entries: entries, width: width, options: options}
	p.lookUps = slices.Compact(slices.Sorted(slices.Values(lookUps)))
	workers := options.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	for _, n := range p.lookUps {
		p.choices = append(p.choices, p.choose(n, workers))
	}
	p.crews.workers = workers
	p.crews.most = p.most()
	return p, nil
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

// run carries out a call that the plan is for.
func (p *Plan) run(c *rowCall) {
	i, _ := slices.BinarySearch(p.lookUps, c.n)
	how := p.choices[i].update
	if c.verb == take {
		how = p.choices[i].slice
	}
	crew := p.crews.take()
	crew.call = *c
	crew.call.sort = how.sorted
	for w := range how.workers {
		crew.parts[w] = how.part(&crew.call, w)
	}
	crew.run(how.workers)
	p.crews.give(crew)
}

// axis is what the work of a call is split by.
type axis uint8

const (
	byLookUps axis = iota
	byRows
	byColumns
)

// how is how a call is carried out.
type how struct {
	workers int
	by      axis
	sorted  bool
	seconds float64 // what it is thought to take
}

// part is what worker w does.
func (h *how) part(c *rowCall, w int) part {
	p := c.all()
	split := func(r *[2]int, unit int) {
		n := r[1] / unit
		r[0], r[1] = n*w/h.workers*unit, n*(w+1)/h.workers*unit
	}
	switch h.by {
	case byLookUps:
		split(&p.lookUps, 1)
	case byRows:
		split(&p.rows, 1)
	case byColumns:
		split(&p.columns, lineBytes)
		if w == h.workers-1 {
			p.columns[1] = c.inner
		}
	}
	return p
}

// lineBytes is a cache line, which no two workers should write to.
const lineBytes = 64

func (a axis) String() string { return [...]string{"look-ups", "rows", "columns"}[a] }
