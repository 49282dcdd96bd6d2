package popops_test

import (
	"math"
	"slices"
	"testing"

	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// TestDynamicErrors: what is wrong is said, and nothing is written.
func TestDynamicErrors(t *testing.T) {
	table, s := newTensor(t, tensor.F32, 4, 3), newTensor(t, tensor.F32, 2, 3)
	at := of(t, []uint32{0}, 1)
	dims, sizes := []int{0}, []int{2}
	for want, c := range map[string]struct {
		t, s, at    *tensor.Tensor
		dims, sizes []int
	}{
		"t is nil":                       {nil, s, at, dims, sizes},
		"t is the zero Tensor":           {&tensor.Tensor{}, s, at, dims, sizes},
		"s is nil":                       {table, nil, at, dims, sizes},
		"offset is nil":                  {table, s, nil, dims, sizes},
		"1 dims and 2 sizes":             {table, s, at, dims, []int{1, 1}},
		"dimension 2 of what has rank 2": {table, s, at, []int{2}, sizes},
		"dimension -1":                   {table, s, at, []int{-1}, sizes},
		"dimension 0 is given twice":     {table, s, of(t, []uint32{0, 0}, 2), []int{0, 0}, []int{1, 1}},
		"size 5 in dimension 0, want 0 <= size <= 4": {table, s, at, dims, []int{5}},
		"size -1 in dimension 0":                     {table, s, at, dims, []int{-1}},
		"offset has shape (2,), want (1)":            {table, s, of(t, []uint32{0, 0}, 2), dims, sizes},
		"offset has shape (1, 0)":                    {table, s, of(t, []uint32{}, 1, 0), dims, sizes},
		"offset has shape ()":                        {table, s, tensor.Scalar[uint32](0), dims, sizes},
		"offset has shape (1, 1, 1)":                 {table, s, of(t, []uint32{0}, 1, 1, 1), dims, sizes},
		"offsets are int64":                          {table, s, of(t, []int64{0}, 1), dims, sizes},
		"offset 4 in dimension 0":                    {table, s, of(t, []uint32{4}, 1), dims, sizes},
		"offset -1 in dimension 0":                   {table, s, of(t, []int32{-1}, 1), dims, sizes},
		"is 1 for worker 0 and 2 for worker 2":       {table, s, of(t, []uint32{1, 1, 2}, 1, 3), dims, sizes},
		"s is float64 and t is float32":              {table, newTensor(t, tensor.F64, 2, 3), at, dims, sizes},
		"s has shape (2, 4), want (2, 3)":            {table, newTensor(t, tensor.F32, 2, 4), at, dims, sizes},
		"s has shape (6,), want (2, 3)":              {table, newTensor(t, tensor.F32, 6), at, dims, sizes},
		"shares memory":                              {table, table, at, dims, []int{4}},
	} {
		wantError(t, "DynamicUpdate", popops.DynamicUpdate(c.t, c.s, c.at, c.dims, c.sizes), want)
		into := popops.DynamicSliceInto(c.s, c.t, c.at, c.dims, c.sizes)
		if want[:2] == "s " {
			want = "dst" + want[1:]
		} else if _, err := popops.DynamicSlice(c.t, c.at, c.dims, c.sizes); err == nil && want != "shares memory" {
			t.Errorf("DynamicSlice: no error, want %q", want)
		}
		wantError(t, "DynamicSliceInto", into, want)
	}
	// What is written may be the offsets' memory.
	same := of(t, []uint32{0, 1, 0}, 3)
	offset := of(t, []uint32{0}, 1)
	inside, err := tensor.View(tensor.U32, tensor.Shape{1}, same.Bytes()[:4])
	must(t, err)
	wantError(t, "offset in t", popops.DynamicUpdate(same, of(t, []uint32{7}, 1), inside, dims, []int{1}),
		"shares memory")
	must(t, popops.DynamicUpdate(same, of(t, []uint32{7}, 1), offset, dims, []int{1}))
	// A dimension of 0 has no offset but the first place.
	empty := newTensor(t, tensor.F32, 0, 3)
	must(t, popops.DynamicUpdate(empty, empty.Clone(), at, dims, []int{0}))
	wantError(t, "empty", popops.DynamicUpdate(empty, empty, of(t, []uint32{1}, 1), dims, []int{0}),
		"offset 1 in dimension 0")
}

// multiCase is a call with one thing wrong.
type multiCase struct {
	t, s, o, scale *tensor.Tensor
	dims, sizes    []int
	plan           *popops.Plan
	options        popops.Options
}

func newCase(t *testing.T) *multiCase {
	return &multiCase{
		t: newTensor(t, tensor.F16, 4, 3), s: newTensor(t, tensor.F16, 2, 1, 3), o: of(t, []uint32{3, 1}, 2, 1),
		scale: tensor.Scalar[float32](1), dims: []int{0}, sizes: []int{1},
	}
}

func testPlan(t *testing.T, groups int, o popops.PlanOptions) *popops.Plan {
	p, err := popops.NewGroupedPlan(tensor.F16, groups, 4, 3, []int{2}, o)
	must(t, err)
	return p
}

// TestMultiErrors: what is wrong is said by every function that it is wrong for, and nothing is written.
func TestMultiErrors(t *testing.T) {
	const slices1, updates, adds, maxes = 1, 2, 4, 8
	const all = slices1 | updates | adds | maxes
	for _, c := range []struct {
		want  string
		verbs int
		spoil func(c *multiCase)
	}{
		{"t is nil", all, func(c *multiCase) { c.t = nil }},
		{"offsets is nil", all, func(c *multiCase) { c.o = nil }},
		{" is nil, want a tensor", all, func(c *multiCase) { c.s = nil }},
		{"scale is nil", adds, func(c *multiCase) { c.scale = nil }},
		{"1 dims and 0 sizes", all, func(c *multiCase) { c.sizes = nil }},
		{"offsets have shape (2,), want (n, 1)", all, func(c *multiCase) { c.o = of(t, []uint32{0, 0}, 2) }},
		{"offsets have shape (1, 2), want (n, 1)", all, func(c *multiCase) { c.o = of(t, []uint32{0, 0}, 1, 2) }},
		{"offsets are float32", all, func(c *multiCase) { c.o = newTensor(t, tensor.F32, 2, 1) }},
		{" has shape (2, 3), want (2, 1, 3)", all, func(c *multiCase) { c.s = newTensor(t, tensor.F16, 2, 3) }},
		{" has shape (3, 1, 3), want (2, 1, 3)", all, func(c *multiCase) { c.s = newTensor(t, tensor.F16, 3, 1, 3) }},
		{" is float32 and t is float16", all, func(c *multiCase) { c.s = newTensor(t, tensor.F32, 2, 1, 3) }},
		{"t is bool, want a number", adds | maxes, func(c *multiCase) {
			c.t, c.s = newTensor(t, tensor.Bool, 4, 3), newTensor(t, tensor.Bool, 2, 1, 3)
		}},
		{"scale is float64, want float16 or float32", adds, func(c *multiCase) { c.scale = tensor.Scalar(1.0) }},
		{"scale is float32, want int32", adds, func(c *multiCase) {
			c.t, c.s = newTensor(t, tensor.I32, 4, 3), newTensor(t, tensor.I32, 2, 1, 3)
		}},
		{"scale has shape (2,), want one element", adds, func(c *multiCase) { c.scale = newTensor(t, tensor.F32, 2) }},
		{"t and scale share memory", adds, func(c *multiCase) {
			x, err := tensor.View(tensor.F16, nil, c.t.Bytes()[2:4])
			must(t, err)
			c.scale = x
		}},
		{"shares memory", all, func(c *multiCase) {
			x, err := tensor.View(tensor.F16, tensor.Shape{2, 1, 3}, c.t.Bytes()[12:])
			must(t, err)
			c.s = x
		}},
		{"shares memory", updates | adds | maxes, func(c *multiCase) { // t and offsets
			c.t = newTensor(t, tensor.U32, 4, 3)
			c.s, c.scale = newTensor(t, tensor.U32, 2, 1, 3), tensor.Scalar[uint32](1)
			x, err := tensor.View(tensor.U32, tensor.Shape{2, 1}, c.t.Bytes()[40:])
			must(t, err)
			c.o = x
		}},
		{"shares memory", slices1, func(c *multiCase) { // dst and offsets
			c.t, c.s = newTensor(t, tensor.U32, 4, 1), newTensor(t, tensor.U32, 2, 1, 1)
			x, err := tensor.View(tensor.U32, tensor.Shape{2, 1}, c.s.Bytes())
			must(t, err)
			c.o = x
		}},
		{"offset of look-up 1 is 4, want 0 <= offset < 4", all, func(c *multiCase) {
			c.o, c.options.ValidateIndices = of(t, []uint32{0, 4}, 2, 1), true
		}},
		{"offset of look-up 0 is -1", all, func(c *multiCase) {
			c.o, c.options.ValidateIndices = of(t, []int32{-1, 0}, 2, 1), true
		}},
		{"offset of look-up 1 in dimension 1 is 3", all, func(c *multiCase) {
			c.dims, c.sizes, c.s = []int{0, 1}, []int{1, 2}, newTensor(t, tensor.F16, 2, 1, 2)
			c.o, c.options.ValidateIndices = of(t, []uint32{0, 2, 3, 3}, 2, 2), true
		}},
		{"offset 0 is 3 and offset 1 is 1", updates | adds | maxes, func(c *multiCase) { c.options.IndicesAreSorted = true }},
		{"offset 0 is 3 and offset 1 is 1", updates | adds | maxes, func(c *multiCase) {
			c.options.IndicesAreSorted, c.sizes, c.s = true, []int{2}, newTensor(t, tensor.F16, 2, 2, 3)
		}},
		{"IndicesAreSorted with 2 dims", updates | adds | maxes, func(c *multiCase) {
			c.dims, c.sizes, c.s = []int{0, 1}, []int{1, 3}, newTensor(t, tensor.F16, 2, 1, 3)
			c.o, c.options.IndicesAreSorted = of(t, []uint32{0, 0, 1, 0}, 2, 2), true
		}},
		{"PartialType bfloat16 for float16, want float32 or float16", adds, func(c *multiCase) { c.options.PartialType = tensor.BF16 }},
		{"PartialType float64 for float16", adds, func(c *multiCase) {
			c.options.PartialType = tensor.F64
			c.sizes, c.s = []int{2}, newTensor(t, tensor.F16, 2, 2, 3)
		}},
		{"the plan is for 1 of 4 of 3 float16", all, func(c *multiCase) {
			c.plan, c.t, c.s = testPlan(t, 1, popops.PlanOptions{}), newTensor(t, tensor.F16, 4, 2),
				newTensor(t, tensor.F16, 2, 1, 2)
		}},
		{"the plan is for 1 of 4 of 3 float16", all, func(c *multiCase) {
			c.plan, c.t = testPlan(t, 1, popops.PlanOptions{}), newTensor(t, tensor.F16, 5, 3)
		}},
		{"the plan is for 1 of 4 of 3 float16", all, func(c *multiCase) {
			c.plan = testPlan(t, 1, popops.PlanOptions{})
			c.t, c.s = newTensor(t, tensor.BF16, 4, 3), newTensor(t, tensor.BF16, 2, 1, 3)
		}},
		{"the plan is for 2 of 4 of 3 float16", all, func(c *multiCase) { c.plan = testPlan(t, 2, popops.PlanOptions{}) }},
		{"1 look-ups, the plan is for [2]", all, func(c *multiCase) {
			c.plan, c.o, c.s = testPlan(t, 1, popops.PlanOptions{}), of(t, []uint32{0}, 1, 1),
				newTensor(t, tensor.F16, 1, 1, 3)
		}},
		{"with a plan, want one dimension and the size 1", all, func(c *multiCase) {
			c.plan, c.sizes, c.s = testPlan(t, 1, popops.PlanOptions{}), []int{2}, newTensor(t, tensor.F16, 2, 2, 3)
		}},
		{"the plan is not for slices", slices1, func(c *multiCase) { c.plan = testPlan(t, 1, popops.PlanOptions{NotForSlice: true}) }},
		{"the plan is not for updates", updates | adds | maxes, func(c *multiCase) { c.plan = testPlan(t, 1, popops.PlanOptions{NotForUpdate: true}) }},
		{"the plan is for add", updates | maxes, func(c *multiCase) { c.plan = testPlan(t, 1, popops.PlanOptions{}) }},
		{"the plan is for none", adds | maxes, func(c *multiCase) { c.plan = testPlan(t, 1, popops.PlanOptions{Operation: popops.UpdateNone}) }},
		{"the plan is for max", adds | updates, func(c *multiCase) { c.plan = testPlan(t, 1, popops.PlanOptions{Operation: popops.UpdateMax}) }},
		{"IndicesAreSorted is false, the plan was made with true", adds, func(c *multiCase) {
			c.plan = testPlan(t, 1, popops.PlanOptions{IndicesAreSorted: true})
		}},
		{"IndicesAreSorted is true, the plan was made with false", adds, func(c *multiCase) {
			c.plan, c.options.IndicesAreSorted = testPlan(t, 1, popops.PlanOptions{}), true
		}},
		{"PartialType is float16, the plan was made with float32", adds, func(c *multiCase) {
			c.plan, c.options.PartialType = testPlan(t, 1, popops.PlanOptions{}), tensor.F16
		}},
		{"offset of look-up 1 is 4", slices1 | adds, func(c *multiCase) { // the call's ValidateIndices, with a plan
			c.plan, c.o, c.options.ValidateIndices = testPlan(t, 1, popops.PlanOptions{}), of(t, []uint32{0, 4}, 2, 1),
				true
		}},
		{"offset of look-up 1 is 4", slices1 | adds, func(c *multiCase) { // the plan's ValidateIndices
			c.plan, c.o = testPlan(t, 1, popops.PlanOptions{ValidateIndices: true}), of(t, []uint32{0, 4}, 2, 1)
		}},
	} {
		for verb := range 4 {
			if c.verbs>>verb&1 == 0 {
				continue
			}
			m := newCase(t)
			c.spoil(m)
			if m.t != nil && m.s != nil {
				for i := range m.s.Bytes() {
					m.s.Bytes()[i] = 1
				}
			}
			var before []byte
			if m.t != nil {
				before = slices.Clone(m.t.Bytes())
			}
			err := m.call(verb)
			wantError(t, []string{"MultiSlice", "MultiUpdate", "MultiUpdateAdd", "MultiUpdateMax"}[verb], err, c.want)
			if m.t != nil && !slices.Equal(before, m.t.Bytes()) {
				t.Errorf("%s: t was written to", c.want)
			}
		}
	}
}

// call makes the call: 0 to 3 are slice, update, add, maximum.
func (c *multiCase) call(verb int) error {
	switch verb {
	case 0:
		return popops.MultiSliceInto(c.s, c.t, c.o, c.dims, c.sizes, c.plan, c.options)
	case 1:
		return popops.MultiUpdate(c.t, c.s, c.o, c.dims, c.sizes, c.plan, c.options)
	case 2:
		return popops.MultiUpdateAdd(c.t, c.s, c.o, c.scale, c.dims, c.sizes, c.plan, c.options)
	}
	return popops.MultiUpdateMax(c.t, c.s, c.o, c.dims, c.sizes, c.plan, c.options)
}

// TestMultiResultErrors: the forms that return a result find the same.
func TestMultiResultErrors(t *testing.T) {
	c := newCase(t)
	_, err := popops.MultiSlice(c.t, c.o, c.dims, []int{9}, nil, c.options)
	wantError(t, "MultiSlice", err, "size 9 in dimension 0")
	_, err = popops.MultiSliceAt(c.t, []int{0, 4}, 0)
	wantError(t, "MultiSliceAt", err, "offset 1 is 4, want 0 <= offset < 4")
	_, err = popops.MultiSliceAt(c.t, []int{-1}, 0)
	wantError(t, "MultiSliceAt", err, "offset 0 is -1")
	_, err = popops.MultiSliceAt(c.t, nil, 2)
	wantError(t, "MultiSliceAt", err, "dimension 2 of what has rank 2")
	wantError(t, "MultiUpdateAddAt", popops.MultiUpdateAddAt(c.t, c.s, []int{0, 4}, c.scale, 0), "offset 1 is 4")
	wantError(t, "MultiSliceAtInto", popops.MultiSliceAtInto(c.s, c.t, []int{9, 0}, 0), "offset 0 is 9")
	if math.MaxInt > math.MaxUint32 {
		long := newTensor(t, tensor.F16, math.MaxInt/1024, 0)
		large := math.MaxInt / 1025
		_, err = popops.MultiSliceAt(long, []int{large}, 0)
		wantError(t, "MultiSliceAt", err, "more than the 32 bits of an offset")
		wantError(t, "count", popops.CheckCount(large), "2^32 look-ups or more")
	}
}

// TestGroupedErrors: what the grouped functions want beyond the others.
func TestGroupedErrors(t *testing.T) {
	c := newCase(t)
	c.t, c.s, c.o = newTensor(t, tensor.F16, 2, 4, 3), newTensor(t, tensor.F16, 2, 2, 1, 3),
		of(t, []uint32{0, 1, 2, 3}, 2, 2, 1)
	for want, o := range map[string]struct {
		plan *popops.Plan
		t, o *tensor.Tensor
		dims []int
	}{
		"no plan, want one for 2 groups": {nil, c.t, c.o, c.dims},
		"2 groups of 4 entries of 3 float16, the plan is for 1 of": {testPlan(t, 1, popops.PlanOptions{}), c.t, c.o,
			c.dims},
		"offsets have shape (2, 2), want (2, n, 1)": {testPlan(t, 2, popops.PlanOptions{}), c.t,
			of(t, []uint32{0, 0, 0, 0}, 2, 2), c.dims},
		"offsets have shape (1, 4, 1), want (2, n, 1)": {testPlan(t, 2, popops.PlanOptions{}), c.t,
			of(t, []uint32{0, 0, 0, 0}, 1, 4, 1), c.dims},
		"t is a scalar": {testPlan(t, 2, popops.PlanOptions{}), tensor.Scalar[float32](1), c.o,
			c.dims},
		"dimension 2 of what has rank 2": {testPlan(t, 2, popops.PlanOptions{}), c.t, c.o, []int{2}},
	} {
		_, err := popops.GroupedMultiSlice(o.t, o.o, o.dims, c.sizes, o.plan, c.options)
		wantError(t, "GroupedMultiSlice", err, want)
		wantError(t, "GroupedMultiSliceInto",
			popops.GroupedMultiSliceInto(c.s, o.t, o.o, o.dims, c.sizes, o.plan, c.options), want)
		wantError(t, "GroupedMultiUpdate", popops.GroupedMultiUpdate(o.t, c.s, o.o, o.dims, c.sizes, o.plan, c.options),
			want)
		wantError(t, "GroupedMultiUpdateAdd",
			popops.GroupedMultiUpdateAdd(o.t, c.s, o.o, c.scale, o.dims, c.sizes, o.plan, c.options), want)
		wantError(t, "GroupedMultiUpdateMax",
			popops.GroupedMultiUpdateMax(o.t, c.s, o.o, o.dims, c.sizes, o.plan, c.options), want)
	}
	// Slices of several entries have no plan, hence no grouped form.
	_, err := popops.GroupedMultiSlice(c.t, c.o, c.dims, []int{2}, nil, c.options)
	wantError(t, "GroupedMultiSlice", err, "dims [0] and sizes [2] of groups, want one dimension and the size 1, and "+
		"a plan")
	must(t, popops.GroupedMultiUpdateAdd(c.t, c.s, c.o, c.scale, c.dims, c.sizes, testPlan(t, 2, popops.PlanOptions{}),
		c.options))
}
