package popops_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// TestExamples: the examples and rules that the semantics give in words.
func TestExamples(t *testing.T) {
	x := newTensor(t, tensor.I32, 3, 4, 2)
	for i := range x.Len() {
		store(x, i, uint64(100*(i/8+1)+10*(i/2%4+1)+i%2+1))
	}
	got, err := popops.DynamicSlice(x, of(t, []uint32{2}, 1), []int{0}, []int{2})
	must(t, err)
	if want := of(t, []int32{311, 312, 321, 322, 331, 332, 341, 342, 111, 112, 121, 122, 131, 132, 141, 142}, 2, 4,
		2); !got.Equal(want) {
		t.Errorf("%v, want %v", got, want)
	}
	got, err = popops.DynamicSlice(x, of(t, []int32{2, 3, 1}, 3), []int{0, 1, 2}, []int{1, 1, 1})
	must(t, err)
	if want := of(t, []int32{342}, 1, 1, 1); !got.Equal(want) {
		t.Errorf("%v, want %v", got, want)
	}
	got, err = popops.DynamicSlice(x, of(t, []uint32{}, 0), nil, nil)
	must(t, err)
	if !got.Equal(x) {
		t.Errorf("no dims: %v", got)
	}
	got, err = popops.DynamicSlice(x, of(t, []uint32{1}, 1), []int{1}, []int{0})
	must(t, err)
	if got.Len() != 0 || !got.Shape().Equal(tensor.Shape{3, 0, 2}) {
		t.Errorf("a zero size: %v", got)
	}
	got, err = popops.MultiSliceAt(x, []int{1, 0}, 2)
	must(t, err)
	if !got.Shape().Equal(tensor.Shape{2, 3, 4, 1}) || load(got, 0) != 112 || load(got, 12) != 111 {
		t.Errorf("host offsets: %v", got)
	}
}

// TestPartials: with sums in float32 an element is rounded once, with sums of 16 bits after each addition. 2048 is
// where a float16 has no fractions any more: 2048+1 is rounded to 2048, and 2048+1+1 is 2050.
func TestPartials(t *testing.T) {
	for partial, want := range map[tensor.DType]float32{0: 2050, tensor.F32: 2050, tensor.F16: 2048} {
		for _, planned := range []bool{false, true} {
			table := []tensor.Float16{tensor.Float16FromFloat32(2048)}
			one := tensor.Float16FromFloat32(1)
			var plan *popops.Plan
			options := popops.Options{PartialType: partial}
			if planned {
				var err error
				plan, err = popops.NewPlan(tensor.F16, 1, 1, []int{2}, popops.PlanOptions{PartialType: partial})
				must(t, err)
				options = popops.Options{}
			}
			must(t, popops.UpdateAddRows(table, []tensor.Float16{one, one}, 1, []uint32{0, 0}, one, plan, options))
			if got := table[0].Float32(); got != want {
				t.Errorf("partials of %v, plan %v: %v, want %v", partial, planned, got, want)
			}
		}
	}
}

// TestRows: the functions on slices do what those on tensors do.
func TestRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	testRows[tensor.Float16, uint32](t, rng)
	testRows[tensor.BFloat16, int32](t, rng)
	testRows[float32, int32](t, rng)
	testRows[float64, uint32](t, rng)
	testRows[int8, uint32](t, rng)
	testRows[uint64, int32](t, rng)
}

func testRows[T tensor.Element, I popops.Offset](t *testing.T, rng *rand.Rand) {
	dims, sizes := []int{0}, []int{1}
	for range 200 {
		entries, width, n := 1+rng.IntN(9), 1+rng.IntN(70), rng.IntN(12)
		offsets := make([]I, n)
		for i := range offsets {
			offsets[i] = I(rng.IntN(entries + 2))
		}
		table, rows, scale := newTensor(t, tensor.DTypeOf[T](), entries, width),
			newTensor(t, tensor.DTypeOf[T](), n, 1, width), newTensor(t, tensor.DTypeOf[T]())
		fill(rng, table)
		fill(rng, rows)
		fill(rng, scale)
		o := of(t, offsets, n, 1)
		var plan *popops.Plan
		verb := rng.IntN(4)
		if rng.IntN(2) == 0 {
			var err error
			plan, err = popops.NewPlan(table.DType(), entries, width, []int{n}, popops.PlanOptions{
				Operation: []popops.UpdateOperation{popops.UpdateNone, popops.UpdateNone, popops.UpdateAdd,
					popops.UpdateMax}[verb], Workers: 2,
			})
			must(t, err)
		}
		data := func(x *tensor.Tensor) []T {
			s, err := tensor.Of[T](x.Clone())
			must(t, err)
			return s
		}
		gotTable, gotRows, by := data(table), data(rows), data(scale)[0]
		var errs [2]error
		none := popops.Options{}
		switch verb {
		case 0:
			errs[0] = popops.SliceRows(gotRows, gotTable, width, offsets, plan, none)
			errs[1] = popops.MultiSliceInto(rows, table, o, dims, sizes, plan, none)
		case 1:
			errs[0] = popops.UpdateRows(gotTable, gotRows, width, offsets, plan, none)
			errs[1] = popops.MultiUpdate(table, rows, o, dims, sizes, plan, none)
		case 2:
			errs[0] = popops.UpdateAddRows(gotTable, gotRows, width, offsets, by, plan, none)
			errs[1] = popops.MultiUpdateAdd(table, rows, o, scale, dims, sizes, plan, none)
		case 3:
			errs[0] = popops.UpdateMaxRows(gotTable, gotRows, width, offsets, plan, none)
			errs[1] = popops.MultiUpdateMax(table, rows, o, dims, sizes, plan, none)
		}
		if errs[0] != nil || errs[1] != nil {
			t.Fatal(errs)
		}
		if !slices.Equal(tensor.Bytes(gotTable), table.Bytes()) || !slices.Equal(tensor.Bytes(gotRows), rows.Bytes()) {
			t.Fatalf("verb %d of %v, %d entries of %d, offsets %v: not what tensors give",
				verb, table.DType(), entries, width, offsets)
		}
	}
}

// TestRowsErrors: what is wrong is said, and nothing is written.
func TestRowsErrors(t *testing.T) {
	table, rows := []float32{1, 2, 3, 4}, []float32{5, 6}
	offsets := []uint32{1}
	none := popops.Options{}
	plan, err := popops.NewPlan(tensor.F32, 3, 2, []int{1}, popops.PlanOptions{})
	must(t, err)
	shared := make([]uint32, 4)
	for want, err := range map[string]error{
		"SliceRows: a table of 4 elements and rows of 3": popops.SliceRows(rows, table, 3, offsets, nil,
			none),
		"UpdateRows: a table of 4 elements and rows of 0": popops.UpdateRows(table, rows, 0, offsets, nil,
			none),
		"UpdateRows: a table of 4 elements and rows of -2": popops.UpdateRows(table, rows, -2, offsets, nil,
			none),
		"2 elements for 2 rows of 2, want 4": popops.UpdateRows(table, rows, 2, []uint32{0, 1},
			nil, none),
		"1 elements for 1 rows of 2, want 2": popops.UpdateAddRows(table, rows[:1], 2, offsets,
			1, nil, none),
		"elements are bool, want a number": popops.UpdateMaxRows([]bool{true}, []bool{true},
			1, []int32{0}, nil, none),
		"SliceRows: what is written shares memory": popops.SliceRows(table[:2], table, 2, offsets,
			nil, none),
		"UpdateRows: what is written shares memory": popops.UpdateRows(shared, []uint32{7}, 1,
			shared[2:3], nil, none),
		"offset of look-up 0 is 2, want 0 <= offset < 2": popops.UpdateMaxRows(table, rows, 2, []int32{2},
			nil, popops.Options{ValidateIndices: true}),
		"1 groups of 2 entries of 2 float32, the plan is for 1 of 3": popops.UpdateAddRows(table, rows, 2, offsets, 1,
			plan, none),
	} {
		wantError(t, want, err, want)
	}
	if !slices.Equal(table, []float32{1, 2, 3, 4}) || !slices.Equal(rows, []float32{5, 6}) {
		t.Error("written to")
	}
	// A table of no rows: all look-ups are out of range.
	must(t, popops.SliceRows(rows, nil, 2, offsets, nil, none))
	if !slices.Equal(rows, []float32{0, 0}) {
		t.Errorf("rows %v, want zeros", rows)
	}
	must(t, popops.UpdateRows(nil, rows, 2, offsets, nil, none))
}

// TestRowsFloatScale: floats of 16 bits with a scale of float32 that they cannot hold, as with tensors.
func TestRowsFloatScale(t *testing.T) {
	testFloatScale[tensor.Float16](t)
	testFloatScale[tensor.BFloat16](t)
}

func testFloatScale[T tensor.Float16 | tensor.BFloat16](t *testing.T) {
	const scale = 1.00045 // which floats of 16 bits have as 1
	dtype := tensor.DTypeOf[T]()
	table, rows := newTensor(t, dtype, 3, 5), newTensor(t, dtype, 4, 1, 5)
	for i := range rows.Len() {
		store(rows, i, narrowed(dtype, float32(1000+8*i)))
	}
	offsets := []uint32{2, 0, 2, 2}
	data := func(x *tensor.Tensor) []T {
		s, err := tensor.Of[T](x.Clone())
		must(t, err)
		return s
	}
	got, rounded, in := data(table), data(table), data(rows)
	must(t, popops.UpdateAddRows16(got, in, 5, offsets, scale, nil, popops.Options{}))
	must(t, popops.UpdateAddRows(rounded, in, 5, offsets, T(narrowed(dtype, scale)), nil, popops.Options{}))
	must(t, popops.MultiUpdateAdd(table, rows, of(t, offsets, 4, 1), tensor.Scalar[float32](scale), []int{0}, []int{1},
		nil, popops.Options{}))
	if want := data(table); !slices.Equal(got, want) {
		t.Errorf("%v: %v, want %v", dtype, got, want)
	}
	if slices.Equal(got, rounded) {
		t.Errorf("%v: the scale makes no difference", dtype)
	}
	wantError(t, "UpdateAddRows16", popops.UpdateAddRows16(got, in, 4, offsets, scale, nil, popops.Options{}),
		"UpdateAddRows16: a table of 15 elements and rows of 4")
}
