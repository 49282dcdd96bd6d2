package slice_test

import (
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/ir/slice"
	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// TestBuildErrors: what is wrong is said when the program is built, with the line here.
func TestBuildErrors(t *testing.T) {
	plan := func(d tensor.DType, groups, entries, width, n int, o popops.PlanOptions) *popops.Plan {
		p, err := popops.NewGroupedPlan(d, groups, entries, width, []int{n}, o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	x, at := fill(t, tensor.F32, 1, 4, 3), of(t, []uint32{0, 1}, 2, 1)
	rows := fill(t, tensor.F32, 2, 2, 1, 3)
	one, d0, s1 := of(t, []float32{1}), []int{0}, []int{1}
	none := popops.Options{}
	multi := func(dims, sizes []int, p *popops.Plan, o popops.Options) buildFunc {
		return func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{slice.MultiSlice(in[0], in[1], dims, sizes, p, o)}
		}
	}
	add := func(p *popops.Plan, o popops.Options) buildFunc {
		return func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{slice.MultiUpdateAdd(in[0], in[1], in[2], in[3], d0, s1, p, o)}
		}
	}
	groups := func(p *popops.Plan) buildFunc {
		return func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{slice.GroupedMultiSlice(in[0], in[1], d0, s1, p, none)}
		}
	}
	dynamic := func(in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{slice.DynamicSlice(in[0], in[1], d0, s1)}
	}
	list := func(in ...*tensor.Tensor) []*tensor.Tensor { return in }
	for _, c := range []struct {
		name string
		in   []*tensor.Tensor
		f    buildFunc
		want string
	}{
		{"lengths", list(x, at), multi([]int{0}, []int{1, 1}, nil, none), "1 dims and 2 sizes, want one size for each dimension"},
		{"no dimension", list(x, at), multi([]int{2}, s1, nil, none), "dimension 2 of what has rank 2, want 0 <= dimension < rank"},
		{"negative dimension", list(x, at), multi([]int{-1}, s1, nil, none), "dimension -1 of what has rank 2"},
		{"twice", list(x, at), multi([]int{0, 0}, []int{1, 1}, nil, none), "dimension 0 is given twice"},
		{"size", list(x, at), multi(d0, []int{5}, nil, none), "size 5 in dimension 0, want 0 <= size <= 4, its extent"},
		{"negative size", list(x, at), multi(d0, []int{-1}, nil, none), "size -1 in dimension 0"},
		{"offset type", list(x, of(t, []int64{0}, 1, 1)), multi(d0, s1, nil, none), "offsets are int64, want uint32 or int32"},
		{"offset rank", list(x, of(t, []int32{0}, 1)), multi(d0, s1, nil, none), "offsets have shape (1,), want (n, 1): look-ups, dimensions"},
		{"offset width", list(x, of(t, []int32{0, 0}, 1, 2)), multi(d0, s1, nil, none), "offsets have shape (1, 2), want (n, 1)"},
		{"dynamic offset", list(x, of(t, []int32{0, 0}, 2)), dynamic, "offset has shape (2,), want (1) or (1, workers), an entry for each dimension"},
		{"dynamic offset of no worker", list(x, fill(t, tensor.U32, 1, 1, 0)), dynamic, "offset has shape (1, 0), want (1) or (1, workers)"},
		{"dynamic offset rank", list(x, fill(t, tensor.U32, 1, 1, 1, 1)), dynamic, "offset has shape (1, 1, 1), want (1) or (1, workers)"},
		{"groups of a scalar", list(tensor.Scalar(float32(1)), at), groups(nil), "t is a scalar, want a group dimension"},
		{"grouped offsets", list(fill(t, tensor.F32, 1, 2, 4, 3), at), groups(nil), "offsets have shape (2, 1), want (2, n, 1): groups, look-ups, dimensions"},
		{"other groups", list(fill(t, tensor.F32, 1, 2, 4, 3), fill(t, tensor.U32, 1, 3, 2, 1)), groups(nil), "offsets have shape (3, 2, 1), want (2, n, 1)"},
		{"no plan", list(fill(t, tensor.F32, 1, 2, 4, 3), fill(t, tensor.U32, 1, 2, 2, 1)), groups(nil), "no plan, want one for 2 groups"},
		{"plan of one group", list(fill(t, tensor.F32, 1, 2, 4, 3), fill(t, tensor.U32, 1, 2, 2, 1)), groups(plan(tensor.F32, 1, 4, 3, 2, popops.PlanOptions{})), "the plan is for 1 of 4 of 3 float32"},
		{"plan of another table", list(x, at), multi(d0, s1, plan(tensor.F32, 1, 5, 3, 2, popops.PlanOptions{}), none), "the plan is for 1 of 5 of 3 float32"},
		{"plan of another type", list(x, at), multi(d0, s1, plan(tensor.F16, 1, 4, 3, 2, popops.PlanOptions{}), none), "the plan is for 1 of 4 of 3 float16"},
		{"plan of other look-ups", list(x, at), multi(d0, s1, plan(tensor.F32, 1, 4, 3, 3, popops.PlanOptions{}), none), "2 look-ups, the plan is for [3]"},
		{"plan for updates", list(x, at), multi(d0, s1, plan(tensor.F32, 1, 4, 3, 2, popops.PlanOptions{NotForSlice: true}), none), "the plan is not for slices"},
		{"plan of blocks", list(x, at), multi(d0, []int{2}, plan(tensor.F32, 1, 4, 3, 2, popops.PlanOptions{}), none), "dims [0] and sizes [2] with a plan, want one dimension and the size 1"},
		{"plan for slices", list(x, rows, at, one), add(plan(tensor.F32, 1, 4, 3, 2, popops.PlanOptions{NotForUpdate: true}), none), "the plan is not for updates"},
		{"plan for the greatest", list(x, rows, at, one), add(plan(tensor.F32, 1, 4, 3, 2, popops.PlanOptions{Operation: popops.UpdateMax}), none), "operation add, the plan is for max"},
		{"plan for sorted ones", list(x, rows, at, one), add(plan(tensor.F32, 1, 4, 3, 2, popops.PlanOptions{IndicesAreSorted: true}), none), "IndicesAreSorted is false, the plan was made with true"},
		{"partial type", list(x, rows, at, one), add(nil, popops.Options{PartialType: tensor.F16}), "PartialType float16 for float32, want float32"},
		{"partial type and plan", list(x, rows, at, one), add(plan(tensor.F32, 1, 4, 3, 2, popops.PlanOptions{}), popops.Options{PartialType: tensor.F16}), "PartialType float16 for float32, want float32"},
		{"sorted blocks", list(x, rows, of(t, []int32{0, 0, 0, 0}, 2, 2)), func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{slice.MultiUpdate(in[0], in[1], in[2], []int{0, 1}, []int{1, 3}, nil,
				popops.Options{IndicesAreSorted: true})}
		}, "IndicesAreSorted with 2 dims, want 1"},
		{"slices", list(x, fill(t, tensor.F32, 1, 2, 3), at, one), add(nil, none), "s is float32 (2, 3), want float32 (2, 1, 3)"},
		{"slices of another type", list(x, fill(t, tensor.F64, 1, 2, 1, 3), at, one), add(nil, none), "s is float64 (2, 1, 3), want float32 (2, 1, 3)"},
		{"scale", list(x, rows, at, of(t, []float64{1})), add(nil, none), "scale is float64, want float32"},
		{"scale of half", list(fill(t, tensor.F16, 1, 4, 3), fill(t, tensor.F16, 1, 2, 1, 3), at, of(t, []float64{1})), add(nil, none), "scale is float64, want float16 or float32"},
		{"scales", list(x, rows, at, of(t, []float32{1, 2})), add(nil, none), "scale has shape (2,), want one element"},
		{"bools", list(fill(t, tensor.Bool, 1, 4, 3), fill(t, tensor.Bool, 1, 2, 1, 3), at, fill(t, tensor.Bool, 1)), add(nil, none), "t is bool, want a number"},
		{"at", list(x), func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{slice.MultiSliceAt(in[0], []int{0, 4}, 0)} }, "offset 1 is 4, want 0 <= offset < 4"},
		{"at less", list(x), func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{slice.MultiSliceAt(in[0], []int{-1}, 0)} }, "offset 0 is -1, want 0 <= offset < 4"},
		{"at no dimension", list(x), func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{slice.MultiSliceAt(in[0], []int{0}, 2)} }, "dimension 2 of what has rank 2"},
		{"add at", list(x, rows, one), func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{slice.MultiUpdateAddAt(in[0], in[1], []int{0, 4}, in[2], 0)}
		}, "offset 1 is 4, want 0 <= offset < 4"},
		{"in place of a constant", list(x, rows, at, one), func(in []*ir.Tensor) []*ir.Tensor {
			c := in[0].Graph().Constant(x)
			return []*ir.Tensor{slice.MultiUpdateAddInPlace(c, in[1], in[2], in[3], d0, s1, nil, none)}
		}, "is a constant and cannot be changed in place"},
		{"in place of itself", list(fill(t, tensor.F32, 1, 2, 1), at), func(in []*ir.Tensor) []*ir.Tensor {
			y := ops.Reshape(in[0], 2, 1)
			return []*ir.Tensor{slice.DynamicUpdateInPlace(y, y, in[0].Graph().Constant(of(t, []uint32{0, 0}, 2)),
				[]int{0, 1}, []int{2, 1})}
		}, "which is changed, shares memory with %"},
		{"gradient of a gradient of the greatest", list(x, rows, at), func(in []*ir.Tensor) []*ir.Tensor {
			return gradientOf(func(in []*ir.Tensor) *ir.Tensor {
				return gradientOf(func(in []*ir.Tensor) *ir.Tensor {
					return slice.MultiUpdateMax(in[0], in[1], in[2], d0, s1, nil, none)
				})(in)[0]
			})(in)
		}, "the operation has no gradient"},
	} {
		wantError(t, c.name, failure(c.in, c.f), c.want, "_test.go:")
	}
}

// TestNoTensors: operations on no tensor are no panic.
func TestNoTensors(t *testing.T) {
	none := popops.Options{}
	slice.MultiSlice(nil, nil, nil, nil, nil, none)
	slice.MultiSliceAt(nil, []int{0}, 0)
	slice.MultiUpdateAddAt(nil, nil, []int{0}, nil, 0)
	x := fill(t, tensor.F32, 1, 4, 3)
	wantError(t, "no offsets", failure([]*tensor.Tensor{x}, func(in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{slice.MultiSlice(in[0], nil, []int{0}, []int{1}, nil, none)}
	}), "input 1 is nil")
	wantError(t, "of a broken one", failure([]*tensor.Tensor{x}, func(in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{slice.MultiSliceAt(ops.Reshape(in[0], 5), []int{7}, 3)}
	}), "reshape")
}

// TestRunErrors: what depends on offsets is said when it runs, with the line of the operation.
func TestRunErrors(t *testing.T) {
	x, rows, one := fill(t, tensor.F32, 1, 4, 3), fill(t, tensor.F32, 2, 2, 1, 3), of(t, []float32{1})
	d0, s1 := []int{0}, []int{1}
	for _, c := range []struct {
		name string
		at   *tensor.Tensor
		f    buildFunc
		want string
	}{
		{"dynamic", of(t, []int32{4}), func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{slice.DynamicSlice(in[0], in[2], d0, s1)} }, "offset 4 in dimension 0, want 0 <= offset < 4"},
		{"validated", of(t, []int32{0, -1}, 2, 1), func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{slice.MultiSlice(in[0], in[2], d0, s1, nil, popops.Options{ValidateIndices: true})}
		}, "offset of look-up 1 is -1, want 0 <= offset < 4"},
		{"sorted", of(t, []int32{1, 0}, 2, 1), func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{slice.MultiUpdateAddInPlace(in[0], in[1], in[2], in[3], d0, s1, nil,
				popops.Options{IndicesAreSorted: true})}
		}, "offsets are not sorted"},
	} {
		wantError(t, c.name, runFailure(t, []*tensor.Tensor{x, rows, c.at, one}, c.f), c.want, "errors_test.go:")
	}
}

// TestText has the operations as a program's text has them.
func TestText(t *testing.T) {
	p := build(1, []*tensor.Tensor{fill(t, tensor.F32, 1, 4, 3), of(t, []uint32{0, 1}, 2, 1)},
		func(in []*ir.Tensor) []*ir.Tensor {
			rows := slice.MultiSlice(in[0], in[1], []int{0}, []int{1}, nil, popops.Options{})
			return []*ir.Tensor{slice.MultiUpdateInPlace(in[0], rows, in[1], []int{0}, []int{1}, nil, popops.Options{})}
		})
	for _, want := range []string{"multi slice dims [0] sizes [1](", "multi update in place dims [0] sizes " +
		"[1](modified "} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("no %q in\n%v", want, p)
		}
	}
}
