package popops_test

import (
	"maps"
	"math"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// TestPlanErrors: plans that are not made.
func TestPlanErrors(t *testing.T) {
	ok := popops.PlanOptions{}
	for _, c := range []struct {
		want            string
		dtype           tensor.DType
		groups, entries int
		width           int
		lookUps         []int
		options         popops.PlanOptions
	}{
		{"invalid dtype", 0, 1, 4, 3, []int{2}, ok},
		{"0 groups", tensor.F32, 0, 4, 3, []int{2}, ok},
		{"-1 entries of 3 elements", tensor.F32, 1, -1, 3, []int{2}, ok},
		{"4 entries of -3 elements", tensor.F32, 1, 4, -3, []int{2}, ok},
		{"no number of look-ups", tensor.F32, 1, 4, 3, nil, ok},
		{"-2 look-ups", tensor.F32, 1, 4, 3, []int{1, -2}, ok},
		{"has more than", tensor.F32, 1, math.MaxInt / 2, 3, []int{2}, ok},
		{"has more than", tensor.F32, 1, 4, 3, []int{math.MaxInt / 2}, ok},
		{"NotForSlice and NotForUpdate", tensor.F32, 1, 4, 3, []int{2}, popops.PlanOptions{NotForSlice: true, NotForUpdate: true}},
		{"Operation UpdateOperation(3)", tensor.F32, 1, 4, 3, []int{2}, popops.PlanOptions{Operation: 3}},
		{"Distribution Distribution(2)", tensor.F32, 1, 4, 3, []int{2}, popops.PlanOptions{Distribution: 2}},
		{"AvailableMemoryProportion 1.5", tensor.F32, 1, 4, 3, []int{2}, popops.PlanOptions{AvailableMemoryProportion: 1.5}},
		{"AvailableMemoryProportion -0.5", tensor.F32, 1, 4, 3, []int{2}, popops.PlanOptions{AvailableMemoryProportion: -0.5}},
		{"AvailableMemoryProportion NaN", tensor.F32, 1, 4, 3, []int{2}, popops.PlanOptions{AvailableMemoryProportion: math.NaN()}},
		{"Workers -1", tensor.F32, 1, 4, 3, []int{2}, popops.PlanOptions{Workers: -1}},
		{"Workers 65537", tensor.F32, 1, 4, 3, []int{2}, popops.PlanOptions{Workers: 1<<16 + 1}},
		{"PartialType float32 for float64, want float64", tensor.F64, 1, 4, 3, []int{2}, popops.PlanOptions{PartialType: tensor.F32}},
		{"PartialType float16 for float32, want float32", tensor.F32, 1, 4, 3, []int{2}, popops.PlanOptions{PartialType: tensor.F16}},
		{"PartialType float16 for bfloat16", tensor.BF16, 1, 4, 3, []int{2}, popops.PlanOptions{PartialType: tensor.F16}},
		{"Operation add on bool", tensor.Bool, 1, 4, 3, []int{2}, ok},
		{"Operation max on bool", tensor.Bool, 1, 4, 3, []int{2}, popops.PlanOptions{Operation: popops.UpdateMax}},
	} {
		_, err := popops.NewGroupedPlan(c.dtype, c.groups, c.entries, c.width, c.lookUps, c.options)
		wantError(t, c.want, err, c.want)
	}
	_, err := popops.NewPlan(tensor.F32, -1, 3, []int{2}, ok)
	wantError(t, "NewPlan", err, "popops: NewPlan: -1 entries")
	// Where it does not matter, it is not looked at; bools may be sliced and written.
	for _, o := range []popops.PlanOptions{{NotForUpdate: true, PartialType: tensor.F16},
		{Operation: popops.UpdateMax, PartialType: tensor.F16}} {
		_, err := popops.NewPlan(tensor.F32, 4, 3, []int{2}, o)
		must(t, err)
	}
	_, err = popops.NewPlan(tensor.Bool, 4, 3, []int{2}, popops.PlanOptions{Operation: popops.UpdateNone})
	must(t, err)
}

// TestPlanOptionsText: the interface's keys and values, and back.
func TestPlanOptionsText(t *testing.T) {
	for _, c := range []struct {
		text map[string]string
		want popops.PlanOptions
	}{
		{map[string]string{}, popops.PlanOptions{}},
		{map[string]string{"usedForSlice": "false"}, popops.PlanOptions{NotForSlice: true}},
		{map[string]string{"usedForUpdate": "false"}, popops.PlanOptions{NotForUpdate: true}},
		{map[string]string{"operationForUpdate": "none"}, popops.PlanOptions{Operation: popops.UpdateNone}},
		{map[string]string{"operationForUpdate": "max"}, popops.PlanOptions{Operation: popops.UpdateMax}},
		{map[string]string{"availableMemoryProportion": "0.25"}, popops.PlanOptions{AvailableMemoryProportion: 0.25}},
		{map[string]string{"availableMemoryProportion": "0"}, popops.PlanOptions{AvailableMemoryProportion: popops.NoMemory}},
		{map[string]string{"availableMemoryProportion": "1"}, popops.PlanOptions{AvailableMemoryProportion: 1}},
		{map[string]string{"indicesDistribution": "onePoint"}, popops.PlanOptions{Distribution: popops.OnePoint}},
		{map[string]string{"indicesAreSorted": "true"}, popops.PlanOptions{IndicesAreSorted: true}},
		{map[string]string{"validateIndices": "true"}, popops.PlanOptions{ValidateIndices: true}},
		{map[string]string{"partialType": "half"}, popops.PlanOptions{PartialType: tensor.F16}},
		{map[string]string{"partialType": "float"}, popops.PlanOptions{PartialType: tensor.F32}},
		{map[string]string{"partialType": "bfloat16", "workers": "3"}, popops.PlanOptions{PartialType: tensor.BF16, Workers: 3}},
	} {
		got, err := popops.ParsePlanOptions(c.text)
		must(t, err)
		if got != c.want {
			t.Errorf("%v: %+v, want %+v", c.text, got, c.want)
		}
		if text := got.Map(); !maps.Equal(text, c.text) {
			t.Errorf("%+v: %v, want %v", got, text, c.text)
		}
	}
	got, err := popops.ParsePlanOptions(map[string]string{
		"usedForSlice": "true", "usedForUpdate": "true", "operationForUpdate": "add", "indicesDistribution": "uniform",
		"indicesAreSorted": "false", "validateIndices": "false",
	})
	must(t, err)
	if got != (popops.PlanOptions{}) {
		t.Errorf("the defaults, said: %+v", got)
	}
	for want, text := range map[string]map[string]string{
		`no option "sorted", want one of availableMemoryProportion, indicesAreSorted`: {"sorted": "true"},
		`usedForSlice is "yes", want true or false`:                                   {"usedForSlice": "yes"},
		`indicesAreSorted is "", want true or false`:                                  {"indicesAreSorted": ""},
		`operationForUpdate is "mul", want add, none, max`:                            {"operationForUpdate": "mul"},
		`indicesDistribution is "zipf", want uniform, onePoint`:                       {"indicesDistribution": "zipf"},
		`availableMemoryProportion is "-1", want a number from 0 to 1`:                {"availableMemoryProportion": "-1"},
		`availableMemoryProportion is "NaN"`:                                          {"availableMemoryProportion": "NaN"},
		`availableMemoryProportion is "2"`:                                            {"availableMemoryProportion": "2"},
		`partialType is "double", want half, float`:                                   {"partialType": "double"},
		`workers is "0", want 1 to 65536`:                                             {"workers": "0"},
		`workers is "65537"`:                                                          {"workers": "65537"},
	} {
		_, err := popops.ParsePlanOptions(text)
		wantError(t, want, err, want)
	}
}

// TestPlanString: a plan says what it does, and decides by what it is told.
func TestPlanString(t *testing.T) {
	for _, c := range []struct {
		entries, width, n int
		dtype             tensor.DType
		options           popops.PlanOptions
		want              []string
	}{
		{1_000_000, 64, 65536, tensor.F32, popops.PlanOptions{Workers: 2}, []string{
			"plan for 1000000 entries of 64 float32, up to 2 workers\n65536 look-ups\n",
			"slice: 2 workers, by look-ups; about 1.5",
			"add: 2 workers, by rows, in the order of the offsets; about ", "(1 worker: 2.7",
			"temporaries of a worker: 8192 bytes\n",
		}},
		{1_000_000, 64, 65536, tensor.F32, popops.PlanOptions{Workers: 1}, []string{"slice: 1 worker; about 2.7", "add: 1 worker, in the order"}},
		{1000, 64, 100, tensor.F32, popops.PlanOptions{Workers: 2}, []string{"slice: 1 worker; ", "add: 1 worker, in"}},
		{1_000_000, 4096, 65536, tensor.F32, popops.PlanOptions{Workers: 2, Distribution: popops.OnePoint}, []string{"add: 2 workers, by columns"}},
		{1_000_000, 64, 65536, tensor.F16, popops.PlanOptions{Workers: 2}, []string{"by rows, sorted by rows, sums in float32", "temporaries of a worker: 16640 bytes, and 629136 to sort, of 629145 allowed"}},
		{1_000_000, 64, 65536, tensor.F16, popops.PlanOptions{Workers: 2, AvailableMemoryProportion: popops.NoMemory}, []string{"and 131072 to sort, of 0 allowed"}},
		{1_000_000, 64, 65536, tensor.F16, popops.PlanOptions{PartialType: tensor.F16}, []string{"in the order of the offsets, sums in float16"}},
		{1_000_000, 64, 65536, tensor.F32, popops.PlanOptions{IndicesAreSorted: true}, []string{"each finds its own by bisection"}},
		{512, 64, 65536, tensor.F32, popops.PlanOptions{Workers: 2}, []string{"add: 1 worker, in"}},
		{8192, 64, 65536, tensor.F32, popops.PlanOptions{Workers: 2}, []string{"add: 1 worker, in"}},
		{10, 4, 3, tensor.F32, popops.PlanOptions{Operation: popops.UpdateMax, NotForSlice: true}, []string{"3 look-ups\n  max: 1 worker"}},
		{10, 4, 3, tensor.F32, popops.PlanOptions{Operation: popops.UpdateNone}, []string{"  update: 1 worker"}},
		{10, 4, 0, tensor.F32, popops.PlanOptions{NotForUpdate: true}, []string{"0 look-ups\n  slice: 1 worker; about 0s\ntemporaries"}},
	} {
		p, err := popops.NewPlan(c.dtype, c.entries, c.width, []int{c.n}, c.options)
		// where an int has 32 bits
		if bytes := int64(c.entries) * int64(c.width) * int64(c.dtype.Size()); bytes > math.MaxInt {
			wantError(t, "NewPlan", err, "has more than 2147483647 elements")
			continue
		}
		must(t, err)
		for _, want := range c.want {
			if got := p.String(); !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	}
	p, err := popops.NewGroupedPlan(tensor.F32, 3, 10, 4, []int{7, 5, 7}, popops.PlanOptions{})
	must(t, err)
	if got := p.String(); !strings.Contains(got, "plan for 3 groups of 10 entries") ||
		strings.Index(got, "5 look-ups") > strings.Index(got, "7 look-ups") || strings.Count(got, "look-ups\n") != 2 {
		t.Errorf("%s", got)
	}
}

// TestPlanTogether: several calls with one plan at the same time.
func TestPlanTogether(t *testing.T) {
	p, err := popops.NewPlan(tensor.F16, 300, 3, []int{1000}, popops.PlanOptions{Workers: 3})
	must(t, err)
	p.Force(3, 1, true)
	offsets := make([]uint32, 1000)
	for i := range offsets {
		offsets[i] = uint32(i * 7 % 311)
	}
	var want []tensor.Float16
	run := func() []tensor.Float16 {
		table, rows := make([]tensor.Float16, 900), make([]tensor.Float16, 3000)
		for i := range rows {
			rows[i] = tensor.Float16FromFloat32(float32(i%97) / 8)
		}
		if err := popops.UpdateAddRows(table, rows, 3, offsets, tensor.Float16FromFloat32(0.5), p,
			popops.Options{}); err != nil {
			t.Error(err)
		}
		if err := popops.SliceRows(rows, table, 3, offsets, p, popops.Options{}); err != nil {
			t.Error(err)
		}
		return rows
	}
	want = run()
	var working sync.WaitGroup
	for range 8 {
		working.Go(func() {
			got := run()
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("element %d is %v, want %v", i, got[i], want[i])
					return
				}
			}
		})
	}
	working.Wait()
}

// TestPlanStringEnds: no plan, and one of calls that take longer than a time.Duration can be.
func TestPlanStringEnds(t *testing.T) {
	if got := (*popops.Plan)(nil).String(); got != "no plan" {
		t.Errorf("%q, want no plan", got)
	}
	for _, n := range []int{math.MaxInt / 1024, math.MaxInt / 512} {
		p, err := popops.NewPlan(tensor.F32, 1, 128, []int{n},
			popops.PlanOptions{Workers: 1, Distribution: popops.OnePoint})
		must(t, err)
		if got := p.String(); strings.Contains(got, "about -") ||
			!strings.Contains(got, "add: 1 worker, in the order of the offsets; about ") {
			t.Errorf("%s", got)
		}
	}
	if got := popops.Seconds(1e300); got <= 0 {
		t.Errorf("%v, want a long time", got)
	}
}

// TestTooLarge: what takes more memory than there can be is an error that says how much.
func TestTooLarge(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("no shape is too large")
	}
	large := math.MaxInt / 8192 // some 2^50
	const want = "bytes, want at most 17592186044416"
	none := popops.Options{}
	_, err := popops.CreateSliceableTensor(2, tensor.F32, tensor.Shape{large}, []int{0}, []int{1}, 1)
	wantError(t, "CreateSliceableTensor", err, want)
	table, err := popops.CreateSliceableTensor(2, tensor.U8, tensor.Shape{4, 1024}, []int{0}, []int{1}, 1)
	must(t, err)
	_, err = popops.CreateSliceTensor(table, []int{0}, []int{1}, large/1024)
	wantError(t, "CreateSliceTensor", err, want)
	_, err = popops.CreateSliceableTensorFromSlice(table, []int{0}, []int{large / 4096})
	wantError(t, "CreateSliceableTensorFromSlice", err, want)
	p, err := popops.NewPlan(tensor.U8, large, 1, []int{large}, popops.PlanOptions{Workers: 2})
	must(t, err)
	_, err = popops.CreateSliceableTensorByPlan(tensor.U8, tensor.Shape{large}, []int{0}, []int{1}, p, none)
	wantError(t, "CreateSliceableTensorByPlan", err, want)
	_, err = popops.CreateSliceTensorByPlan(tensor.U8, tensor.Shape{large}, []int{0}, []int{1}, large, p, none)
	wantError(t, "CreateSliceTensorByPlan", err, want)
	_, err = popops.CreateIndicesTensor([]int{0}, large, p, none)
	wantError(t, "CreateIndicesTensor", err, want)
	wide, err := popops.CreateSliceableTensor(1, tensor.U8, tensor.Shape{1, 1 << 20}, nil, nil, 1)
	must(t, err)
	_, err = popops.MultiSlice(wide.Tensor, newTensor(t, tensor.U32, 1<<25, 1), []int{0}, []int{1}, nil, none)
	wantError(t, "MultiSlice", err, want)
}

// TestClone: a clone is for the same calls, and says the same of itself.
func TestClone(t *testing.T) {
	p, err := popops.NewGroupedPlan(tensor.F32, 2, 4, 3, []int{2, 7},
		popops.PlanOptions{Operation: popops.UpdateMax, Workers: 3})
	must(t, err)
	if c := p.Clone(); c == p || c.String() != p.String() {
		t.Errorf("clone %v of %v", c, p)
	}
	if c := (*popops.Plan)(nil).Clone(); c != nil {
		t.Errorf("clone %v of no plan", c)
	}
	if c := (&popops.Plan{}).Clone(); c == nil || c.CheckSlice(tensor.F32, 1, 4, 3, 2, popops.Options{}) == nil {
		t.Errorf("clone %v of a plan for nothing", c)
	}
	if o := p.Options(); o != (popops.PlanOptions{Operation: popops.UpdateMax, Workers: 3}) {
		t.Errorf("options %+v", o)
	}
	if o := (*popops.Plan)(nil).Options(); o != (popops.PlanOptions{}) {
		t.Errorf("options %+v of no plan", o)
	}
}
