package popops

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

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

// String explains the plan: what it is for, how it splits each call, what it thinks that takes, and what temporaries
// there are.
//
//	plan for 1000000 entries of 64 float32, up to 2 workers
//	65536 look-ups
//	  slice: 2 workers, by look-ups; about 1.52ms (1 worker: 2.74ms)
//	  add: 2 workers, by rows, in the order of the offsets; about 2.19ms (1 worker: 2.79ms)
//	temporaries of a worker: 8192 bytes
func (p *Plan) String() string {
	if p == nil {
		return "no plan"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "plan for ")
	if p.groups > 1 {
		fmt.Fprintf(&b, "%d groups of ", p.groups)
	}
	fmt.Fprintf(&b, "%d entries of %d %v, up to %d workers\n", p.entries, p.width, p.dtype, p.crews.workers)
	for i, n := range p.lookUps {
		fmt.Fprintf(&b, "%d look-ups\n", n)
		if !p.options.NotForSlice {
			p.explain(&b, "slice", p.choices[i].slice, n, true)
		}
		if !p.options.NotForUpdate {
			name := p.options.Operation.String()
			if p.options.Operation == UpdateNone {
				name = "update"
			}
			p.explain(&b, name, p.choices[i].update, n, false)
		}
	}
	fmt.Fprintf(&b, "temporaries of a worker: %d bytes", p.temporaries())
	if p.sorts() {
		fmt.Fprintf(&b, ", and %d to sort, of %d allowed", p.sortBytes(), int(p.options.proportion()*WorkerBytes))
	}
	b.WriteString("\n")
	return b.String()
}

// explain writes how calls of an operation are carried out.
func (p *Plan) explain(b *strings.Builder, name string, h how, n int, slice bool) {
	fmt.Fprintf(b, "  %s: ", name)
	if h.workers == 1 {
		b.WriteString("1 worker")
	} else {
		fmt.Fprintf(b, "%d workers, by %v", h.workers, h.by)
	}
	if !slice {
		order := "in the order of the offsets"
		switch {
		case p.options.IndicesAreSorted:
			order = "each finds its own by bisection"
		case h.sorted:
			order = "sorted by rows"
		}
		fmt.Fprintf(b, ", %s", order)
		if p.options.Operation == UpdateAdd && is16(p.dtype) {
			fmt.Fprintf(b, ", sums in %v", sumType(p.options.PartialType, p.dtype))
		}
	}
	fmt.Fprintf(b, "; about %v", seconds(p.seconds(&h, n, slice)))
	if h.workers > 1 {
		one := how{workers: 1, by: h.by, sorted: h.sorted}
		fmt.Fprintf(b, " (1 worker: %v)", seconds(p.seconds(&one, n, slice)))
	}
	b.WriteString("\n")
}

// maxSeconds is more than any call takes, and still a time.Duration.
const maxSeconds = 9e9

// seconds is a time to three digits or so, maxSeconds at most.
func seconds(s float64) time.Duration {
	d := time.Duration(min(s, maxSeconds) * float64(time.Second))
	for unit := time.Duration(1); ; unit *= 10 {
		if d/unit < 1000 {
			return d.Round(unit)
		}
	}
}

// sortBytes is the bytes that a worker takes at most to sort.
func (p *Plan) sortBytes() int {
	return sortedAtOnce(p.crews.most, p.lookUps[len(p.lookUps)-1]) * pairBytes
}

// temporaries is the bytes that a worker takes at most, beside the room to sort.
func (p *Plan) temporaries() int {
	bytes := rowsAtOnce * 8
	if p.sorts() {
		bytes += digits * 4
	}
	if !p.options.NotForUpdate && p.options.Operation == UpdateAdd && sumsWide(p.options.PartialType, p.dtype) {
		bytes += 4 * p.width
	}
	return bytes
}
