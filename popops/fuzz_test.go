package popops_test

import (
	"encoding/binary"
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	table, err := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	offsets, err := tensor.FromSlice([]uint32{0, 1}, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tensor.New(tensor.F32, 2, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := popops.NewPlan(tensor.F32, 2, 3, []int{2}, popops.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := popops.CreateSliceableTensor(2, tensor.F32, tensor.Shape{4, 3}, []int{0}, []int{1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"DynamicSlice": popops.DynamicSlice, "DynamicSliceInto": popops.DynamicSliceInto,
			"DynamicUpdate": popops.DynamicUpdate, "GroupedMultiSlice": popops.GroupedMultiSlice,
			"GroupedMultiSliceInto": popops.GroupedMultiSliceInto,
			"GroupedMultiUpdate":    popops.GroupedMultiUpdate,
			"GroupedMultiUpdateAdd": popops.GroupedMultiUpdateAdd,
			"GroupedMultiUpdateMax": popops.GroupedMultiUpdateMax, "MultiSlice": popops.MultiSlice,
			"MultiSliceAt": popops.MultiSliceAt, "MultiSliceAtInto": popops.MultiSliceAtInto,
			"MultiSliceInto": popops.MultiSliceInto, "MultiUpdate": popops.MultiUpdate,
			"MultiUpdateAdd": popops.MultiUpdateAdd, "MultiUpdateAddAt": popops.MultiUpdateAddAt,
			"MultiUpdateMax": popops.MultiUpdateMax, "SliceRows": popops.SliceRows[float32, int32],
			"UpdateAddRows":                popops.UpdateAddRows[float32, int32],
			"UpdateAddRows16":              popops.UpdateAddRows16[tensor.BFloat16, int32],
			"UpdateMaxRows":                popops.UpdateMaxRows[float32, int32],
			"UpdateRows":                   popops.UpdateRows[float32, int32],
			"CreateGroupedIndicesTensor":   popops.CreateGroupedIndicesTensor,
			"CreateGroupedSliceTensor":     popops.CreateGroupedSliceTensor,
			"CreateGroupedSliceableTensor": popops.CreateGroupedSliceableTensor,
			"CreateIndicesTensor":          popops.CreateIndicesTensor, "CreateSliceTensor": popops.CreateSliceTensor,
			"CreateSliceTensorByPlan":        popops.CreateSliceTensorByPlan,
			"CreateSliceableTensor":          popops.CreateSliceableTensor,
			"CreateSliceableTensorByPlan":    popops.CreateSliceableTensorByPlan,
			"CreateSliceableTensorFromSlice": popops.CreateSliceableTensorFromSlice,
			"SliceMapping":                   popops.SliceMapping, "NewGroupedPlan": popops.NewGroupedPlan,
			"NewPlan": popops.NewPlan, "ParsePlanOptions": popops.ParsePlanOptions,
		},
		Types: []any{
			popops.Distribution(0), popops.Interval{}, popops.Mapped{}, popops.Mapping{}, popops.Options{},
			popops.Plan{}, popops.PlanOptions{}, popops.UpdateOperation(0),
		},
		Values: []any{
			table, offsets, rows, plan, mapped, tensor.Scalar(float32(1)), tensor.F32, &popops.Plan{}, &popops.Mapped{},
			&tensor.Tensor{},
			[]int{0}, []int{1}, tensor.Shape{4, 3}, 0, 1, 2, 3, []float32{1, 2, 3, 4, 5, 6}, []int32{0, 1},
			[]int32{1, 1},
		},
		Skip: map[string]string{"Mapped.Dim": "an index out of range panics, as in Go", "Plan.Force": "of the tests",
			"Plan.SortedAtOnce": "of the tests", "Plan.UpdateSeconds": "of the tests"},
	})
}

// fuzzed is numbers from a fuzzer's bytes.
type fuzzed []byte

// small is a number from -1 to 5, most of them from 0 on.
func (f *fuzzed) small() int {
	if len(*f) == 0 {
		return 1
	}
	b := (*f)[0]
	*f = (*f)[1:]
	return int(b%7) - 1
}

// ints is up to 4 small numbers.
func (f *fuzzed) ints() []int {
	all := make([]int, max(0, min(4, f.small())))
	for i := range all {
		all[i] = f.small()
	}
	return all
}

// fuzzTensor is a tensor of a shape of small numbers, negative ones made 0.
func fuzzTensor(t *testing.T, dtype tensor.DType, shape []int) *tensor.Tensor {
	for i := range shape {
		shape[i] = max(0, shape[i])
	}
	return newTensor(t, dtype, shape...)
}

// FuzzShapes makes calls with tensors of all shapes, and any dims and sizes: nothing panics, and what is refused is
// refused by slices and updates alike.
func FuzzShapes(f *testing.F) {
	f.Add([]byte{3, 4, 4, 3, 2, 2, 1, 1, 2, 2, 2, 4, 3, 2, 2, 1})
	f.Add([]byte{3, 4, 4, 2, 1, 2, 2, 3, 2, 2, 3, 2, 3, 2, 2, 5})
	f.Add([]byte{2, 2, 2, 1, 1, 3, 1, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		in := fuzzed(data)
		x, dims, sizes := fuzzTensor(t, tensor.F32, in.ints()), in.ints(), in.ints()
		o, s := fuzzTensor(t, tensor.U32, in.ints()), fuzzTensor(t, tensor.F32, in.ints())
		scale := tensor.Scalar[float32](1)
		err := popops.DynamicSliceInto(s, x, o, dims, sizes)
		if err2 := popops.DynamicUpdate(x, s, o, dims, sizes); (err == nil) != (err2 == nil) {
			t.Errorf("slice: %v, update: %v", err, err2)
		}
		if _, err2 := popops.DynamicSlice(x, o, dims, sizes); err2 != nil && err == nil {
			t.Errorf("slice into: none, slice: %v", err2)
		}
		options := popops.Options{ValidateIndices: in.small() < 2}
		err = popops.MultiSliceInto(s, x, o, dims, sizes, nil, options)
		for _, err2 := range []error{
			popops.MultiUpdate(x, s, o, dims, sizes, nil, options),
			popops.MultiUpdateAdd(x, s, o, scale, dims, sizes, nil, options),
			popops.MultiUpdateMax(x, s, o, dims, sizes, nil, options),
		} {
			if (err == nil) != (err2 == nil) {
				t.Errorf("slice: %v, update: %v", err, err2)
			}
		}
		if got, err2 := popops.MultiSlice(x, o, dims, sizes, nil, options); err2 == nil && err == nil && !got.Equal(s) {
			t.Errorf("%v, into: %v", got, s)
		}
		if m, err := popops.CreateSliceableTensor(1+max(0, in.small()), tensor.U8, x.Shape(), dims, sizes,
			max(0, in.small())); err == nil {
			must(t, m.Mapping.Check(m.Len()))
			if _, err := popops.CreateSliceTensor(m, dims, sizes, 2); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzOffsets looks up any offsets, with and without a plan: what is in range is taken, the rest is zeros.
func FuzzOffsets(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 4, 0, 0, 0, 255, 255, 255, 255, 2, 0, 0, 0}, false, uint8(2))
	f.Add([]byte{0, 0, 0, 128, 1, 0, 0, 0, 1, 0, 0, 0}, true, uint8(5))
	f.Fuzz(func(t *testing.T, data []byte, signed bool, by uint8) {
		const entries, width = 5, 3
		n := len(data) / 4
		table := make([]int16, entries*width)
		for i := range table {
			table[i] = int16(i + 1)
		}
		unsignedOffsets, signedOffsets := make([]uint32, n), make([]int32, n)
		for i := range n {
			unsignedOffsets[i] = binary.LittleEndian.Uint32(data[4*i:])
			if by&8 != 0 {
				unsignedOffsets[i] %= entries + 1
			}
			signedOffsets[i] = int32(unsignedOffsets[i])
		}
		var plan *popops.Plan
		if by&1 != 0 {
			var err error
			plan, err = popops.NewPlan(tensor.I16, entries, width, []int{n},
				popops.PlanOptions{Workers: 3, IndicesAreSorted: by&4 != 0})
			must(t, err)
			plan.Force(1+int(by>>4)%3, int(by>>6)%3, by&2 != 0)
		}
		options := popops.Options{IndicesAreSorted: by&4 != 0, ValidateIndices: by&32 != 0}
		rows := make([]int16, n*width)
		sums := make([]int16, len(table))
		ones := make([]int16, n*width)
		for i := range ones {
			ones[i] = 1
		}
		var err, errAdd error
		if signed {
			err = popops.SliceRows(rows, table, width, signedOffsets, plan, options)
			errAdd = popops.UpdateAddRows(sums, ones, width, signedOffsets, 1, plan, options)
		} else {
			err = popops.SliceRows(rows, table, width, unsignedOffsets, plan, options)
			errAdd = popops.UpdateAddRows(sums, ones, width, unsignedOffsets, 1, plan, options)
		}
		valid, sorted := true, true
		count := make([]int16, entries)
		for i, o := range unsignedOffsets {
			in := o < entries
			valid = valid && in
			if i > 0 && (signed && signedOffsets[i-1] > signedOffsets[i] || !signed && unsignedOffsets[i-1] > o) {
				sorted = false
			}
			if in {
				count[o]++
			}
			for j := range width {
				want := int16(0)
				if in {
					want = table[int(o)*width+j]
				}
				if err == nil && rows[i*width+j] != want {
					t.Fatalf("look-up %d of %d: element %d is %d, want %d", i, o, j, rows[i*width+j], want)
				}
			}
		}
		if (err == nil) != (valid || !options.ValidateIndices) {
			t.Errorf("slice of %v: %v", unsignedOffsets, err)
		}
		if (errAdd == nil) != ((valid || !options.ValidateIndices) && (sorted || !options.IndicesAreSorted)) {
			t.Errorf("update of %v: %v", unsignedOffsets, errAdd)
		}
		for i, sum := range sums {
			if errAdd == nil && sum != count[i/width] {
				t.Errorf("row %d has %d updates, want %d", i/width, sum, count[i/width])
			}
		}
	})
}
