package popops_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// numbers are the types that all operations take.
var numbers = []tensor.DType{
	tensor.F16, tensor.BF16, tensor.F32, tensor.F64, tensor.I8, tensor.I16, tensor.I32, tensor.I64, tensor.U8,
	tensor.U16, tensor.U32, tensor.U64,
}

// trial is one random call and what is needed to say which.
type trial struct {
	rng     *rand.Rand
	naive   naive
	grouped bool
	groups  int
	n       int
	offsets [][]int64 // of all groups' look-ups
	signed  bool
	plan    *popops.Plan
	options popops.Options
	what    string
}

// fill gives a tensor random elements: bits of any kind, or small numbers, which add up to something.
func fill(rng *rand.Rand, t *tensor.Tensor) {
	any := rng.IntN(3) == 0
	for i := range t.Len() {
		v := rng.Uint64()
		if !any {
			f := float32(rng.IntN(2001)-1000) / 64
			switch d := t.DType(); {
			case is16(d):
				v = narrowed(d, f)
			case d == tensor.F32:
				v = nan32(f)
			case d == tensor.F64:
				v = nan64(float64(f) / 3)
			}
		}
		if t.DType() == tensor.Bool {
			v &= 1
		}
		store(t, i, v)
	}
}

// newTrial makes up a table and look-ups; rows are of single entries of one dimension, as plans want it.
func newTrial(rng *rand.Rand, rows bool) *trial {
	c := &trial{rng: rng, groups: 1}
	c.naive.dtype = numbers[rng.IntN(len(numbers))]
	rank := 1 + rng.IntN(4)
	for range rank {
		c.naive.shape = append(c.naive.shape, rng.IntN(6))
	}
	c.n = rng.IntN(13)
	many := rows && rng.IntN(200) == 0
	if many { // now and then enough for the sort by digits, and for the smallest memory to be too little
		c.naive.shape = []int{1 + rng.IntN(5000), 1 + rng.IntN(3)}
		c.n = rng.IntN(900)
	}
	if rows {
		d := rng.IntN(len(c.naive.shape))
		if many {
			d = 0
		}
		c.naive.shape[d] = max(1, c.naive.shape[d])
		if !many && rng.IntN(10) == 0 {
			c.naive.shape = append(c.naive.shape, 70) // several cache lines
		}
		c.naive.dims, c.naive.sizes = []int{d}, []int{1}
		return c
	}
	for _, d := range rng.Perm(len(c.naive.shape))[:rng.IntN(len(c.naive.shape)+1)] {
		c.naive.dims = append(c.naive.dims, d)
		c.naive.sizes = append(c.naive.sizes, rng.IntN(c.naive.shape[d]+1))
	}
	return c
}

// lookUp makes up the offsets, some of them out of range unless valid.
func (c *trial) lookUp(valid bool) {
	for range c.groups {
		group := make([][]int64, c.n)
		for i := range group {
			for _, d := range c.naive.dims {
				extent := c.naive.shape[d]
				v := int64(c.rng.IntN(max(extent, 1)))
				if !valid && c.rng.IntN(8) == 0 {
					v = []int64{int64(extent), int64(extent) + 1, 1<<31 - 1}[c.rng.IntN(3)]
					if c.signed && c.rng.IntN(2) == 0 {
						v = -1 - int64(c.rng.IntN(3))
					} else if !c.signed && c.rng.IntN(2) == 0 {
						v = 1<<32 - 1
					}
				}
				group[i] = append(group[i], v)
			}
		}
		if c.options.IndicesAreSorted {
			sort.Slice(group, func(a, b int) bool { return group[a][0] < group[b][0] })
		}
		c.offsets = append(c.offsets, group...)
	}
}

// offsetsTensor is the offsets as a tensor.
func (c *trial) offsetsTensor(t *testing.T) *tensor.Tensor {
	shape := []int{c.n, len(c.naive.dims)}
	if c.grouped {
		shape = []int{c.groups, c.n, len(c.naive.dims)}
	}
	var u []uint32
	for _, o := range c.offsets {
		for _, v := range o {
			u = append(u, uint32(v))
		}
	}
	if !c.signed {
		return offsetsTensor(t, u, shape...)
	}
	s := make([]int32, len(u))
	for i := range u {
		s[i] = int32(u[i])
	}
	return offsetsTensor(t, s, shape...)
}

// makePlan makes up a plan, or none.
func (c *trial) makePlan(t *testing.T, operation popops.UpdateOperation) {
	if !c.grouped && c.rng.IntN(4) == 0 {
		return
	}
	entries := c.naive.shape[c.naive.dims[0]]
	width := 1
	for d, x := range c.naive.shape {
		if d != c.naive.dims[0] {
			width *= x
		}
	}
	o := popops.PlanOptions{
		Operation:                 operation,
		AvailableMemoryProportion: []float64{0, popops.NoMemory, 0.001, 1}[c.rng.IntN(4)],
		Distribution:              popops.Distribution(c.rng.IntN(2)),
		IndicesAreSorted:          c.options.IndicesAreSorted,
		PartialType:               c.options.PartialType,
		Workers:                   c.rng.IntN(6),
	}
	p, err := popops.NewGroupedPlan(c.naive.dtype, c.groups, entries, width, []int{c.n, c.n + 1}, o)
	must(t, err)
	if c.rng.IntN(4) > 0 {
		p.Force(1+c.rng.IntN(5), c.rng.IntN(3), c.rng.IntN(2) == 0)
	}
	if c.rng.IntN(2) == 0 {
		c.options.PartialType = 0 // the plan's
	}
	c.plan = p
	c.what = p.String()
}

// shapes are those of the table and of slices.
func (c *trial) shapes() (table, slices []int) {
	if c.grouped {
		table, slices = []int{c.groups}, []int{c.groups}
	}
	return append(table, c.naive.shape...), append(append(slices, c.n), c.naive.sliceShape()...)
}

func newTensor(t *testing.T, dtype tensor.DType, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.New(dtype, shape...)
	must(t, err)
	return x
}

func (c *trial) String() string {
	return fmt.Sprintf("%v %v dims %v sizes %v groups %d n %d offsets %v options %+v plan %s",
		c.naive.dtype, c.naive.shape, c.naive.dims, c.naive.sizes, c.groups, c.n, c.offsets[:min(30, len(c.offsets))],
		c.options, c.what)
}

// TestRandomMulti holds the functions for several slices against the definition, on random shapes, dims, sizes,
// offsets in and out of range, groups, types, options and plans.
func TestRandomMulti(t *testing.T) {
	cases := 24000
	if testing.Short() {
		cases = 4000
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range cases {
		if !tryMulti(t, rng) {
			t.Fatalf("case %d", i)
		}
	}
}

func tryMulti(t *testing.T, rng *rand.Rand) bool {
	rows := rng.IntN(3) > 0
	c := newTrial(rng, rows)
	c.grouped = rows && rng.IntN(3) == 0
	if c.grouped {
		c.groups = 1 + rng.IntN(4)
	}
	c.signed = rng.IntN(2) == 0
	c.options.IndicesAreSorted = len(c.naive.dims) == 1 && rng.IntN(4) == 0
	verb := rng.IntN(4)
	if is16(c.naive.dtype) && rng.IntN(3) == 0 {
		c.options.PartialType = []tensor.DType{c.naive.dtype, tensor.F32}[rng.IntN(2)]
	}
	if verb < 2 && rng.IntN(10) == 0 {
		c.naive.dtype, c.options.PartialType = tensor.Bool, 0
	}
	partial := c.options.PartialType
	if rows {
		operation := []popops.UpdateOperation{popops.UpdateAdd, popops.UpdateNone, popops.UpdateAdd,
			popops.UpdateMax}[verb]
		if c.naive.dtype == tensor.Bool {
			operation = popops.UpdateNone
		}
		c.makePlan(t, operation)
	}
	host := c.plan == nil && rows && (verb == 0 || verb == 2) && !c.options.IndicesAreSorted && partial == 0 &&
		rng.IntN(2) == 0
	c.options.ValidateIndices = rng.IntN(6) == 0 && !slices.ContainsFunc(c.naive.dims, func(d int) bool {
		return c.naive.shape[d] == 0
	})
	c.lookUp(host || c.options.ValidateIndices)

	tableShape, sliceShape := c.shapes()
	table, slice := newTensor(t, c.naive.dtype, tableShape...), newTensor(t, c.naive.dtype, sliceShape...)
	fill(rng, table)
	fill(rng, slice)
	wantTable, wantSlice := table.Clone(), slice.Clone()
	each, entry := product(c.naive.sliceShape()), product(c.naive.shape)
	scaleType := c.naive.dtype
	if is16(scaleType) && rng.IntN(2) == 0 {
		scaleType = tensor.F32
	}
	scale := newTensor(t, scaleType)
	fill(rng, scale)
	if verb == 0 {
		clear(wantSlice.Bytes())
	}
	for g := range c.groups {
		o := c.offsets[g*c.n : (g+1)*c.n]
		from := g * c.n * each
		switch verb {
		case 0:
			for i := range o {
				c.naive.slice(wantSlice, from+i*each, table, g*entry, o[i])
			}
		case 1, 3:
			c.naive.update(wantTable, g*entry, slice, from, o, verb == 3)
		case 2:
			c.naive.add(wantTable, g*entry, slice, from, o, load(scale, 0), scaleType, partial)
		}
	}
	dims, sizes := slices.Clone(c.naive.dims), slices.Clone(c.naive.sizes)
	err := c.call(t, verb, host, table, slice, scale, dims, sizes)
	if err != nil || !table.Equal(wantTable) || !slice.Equal(wantSlice) {
		t.Errorf("verb %d host %v %v\nerror %v\ntable %v\nwant  %v\nslice %v\nwant  %v",
			verb, host, c, err, table, wantTable, slice, wantSlice)
		return false
	}
	return true
}

// call makes the call: 0 to 3 are slice, update, add, maximum.
func (c *trial) call(t *testing.T, verb int, host bool, table, slice, scale *tensor.Tensor, dims, sizes []int) error {
	if host {
		all := make([]int, c.n)
		for i := range all {
			all[i] = int(c.offsets[i][0])
		}
		if verb == 0 {
			return popops.MultiSliceAtInto(slice, table, all, dims[0])
		}
		return popops.MultiUpdateAddAt(table, slice, all, scale, dims[0])
	}
	o := c.offsetsTensor(t)
	if c.grouped {
		switch verb {
		case 0:
			return popops.GroupedMultiSliceInto(slice, table, o, dims, sizes, c.plan, c.options)
		case 1:
			return popops.GroupedMultiUpdate(table, slice, o, dims, sizes, c.plan, c.options)
		case 2:
			return popops.GroupedMultiUpdateAdd(table, slice, o, scale, dims, sizes, c.plan, c.options)
		}
		return popops.GroupedMultiUpdateMax(table, slice, o, dims, sizes, c.plan, c.options)
	}
	switch verb {
	case 0:
		return popops.MultiSliceInto(slice, table, o, dims, sizes, c.plan, c.options)
	case 1:
		return popops.MultiUpdate(table, slice, o, dims, sizes, c.plan, c.options)
	case 2:
		return popops.MultiUpdateAdd(table, slice, o, scale, dims, sizes, c.plan, c.options)
	}
	return popops.MultiUpdateMax(table, slice, o, dims, sizes, c.plan, c.options)
}

// TestRandomDynamic holds DynamicSlice and DynamicUpdate against the definition.
func TestRandomDynamic(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for i := range 6000 {
		c := newTrial(rng, false)
		if rng.IntN(10) == 0 {
			c.naive.dtype = tensor.Bool
		}
		c.n, c.signed = 1, rng.IntN(2) == 0
		c.lookUp(true)
		workers := 1 + rng.IntN(3)
		shape := []int{len(c.naive.dims)}
		if workers > 1 || rng.IntN(2) == 0 {
			shape = append(shape, workers)
		}
		all := make([]int32, product(shape))
		for j := range all {
			all[j] = int32(c.offsets[0][j*len(c.naive.dims)/len(all)])
		}
		offset := offsetsTensor(t, all, shape...)
		table := newTensor(t, c.naive.dtype, c.naive.shape...)
		slice := newTensor(t, c.naive.dtype, c.naive.sliceShape()...)
		fill(rng, table)
		want := slice.Clone()
		c.naive.slice(want, 0, table, 0, c.offsets[0])
		got, err := popops.DynamicSlice(table, offset, c.naive.dims, c.naive.sizes)
		if err != nil || !got.Equal(want) {
			t.Fatalf("case %d, %v: slice %v, %v, want %v", i, c, got, err, want)
		}
		fill(rng, slice)
		wantTable := table.Clone()
		c.naive.update(wantTable, 0, slice, 0, c.offsets, false)
		if err := popops.DynamicUpdate(table, slice, offset, c.naive.dims, c.naive.sizes); err != nil ||
			!table.Equal(wantTable) {
			t.Fatalf("case %d, %v: update %v, %v, want %v", i, c, table, err, wantTable)
		}
		if err := popops.DynamicSliceInto(slice, table, offset, c.naive.dims, c.naive.sizes); err != nil {
			t.Fatal(err)
		}
	}
}
