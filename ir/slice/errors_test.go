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

// with is rows, with a plan and options.
func with(p *popops.Plan, o popops.Options) slice.Form {
	f := rows
	f.Plan, f.Options = p, o
	return f
}

func sliceAt(t *ir.Tensor, offsets []int, dim int) *ir.Tensor {
	f, at := slice.At(t, offsets, dim)
	return f.Slice(t, at)
}

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
	s := fill(t, tensor.F32, 2, 2, 1, 3)
	one, d0, s1 := of(t, []float32{1}), []int{0}, []int{1}
	none := popops.Options{}
	by := func(f slice.Form) buildFunc {
		return func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{f.Slice(in[0], in[1])} }
	}
	multi := func(dims, sizes []int, p *popops.Plan, o popops.Options) buildFunc {
		return by(slice.Form{Kind: slice.Multi, Dims: dims, Sizes: sizes, Plan: p, Options: o})
	}
	add := func(p *popops.Plan, o popops.Options) buildFunc {
		return func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{with(p, o).UpdateAdd(in[0], in[1], in[2], in[3])}
		}
	}
	groups := func(p *popops.Plan) buildFunc {
		return by(slice.Form{Kind: slice.GroupedMulti, Dims: d0, Sizes: s1, Plan: p})
	}
	dynamic := by(slice.Form{Dims: d0, Sizes: s1})
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
		{"plan for slices", list(x, s, at, one), add(plan(tensor.F32, 1, 4, 3, 2, popops.PlanOptions{NotForUpdate: true}), none), "the plan is not for updates"},
		{"plan for the greatest", list(x, s, at, one), add(plan(tensor.F32, 1, 4, 3, 2, popops.PlanOptions{Operation: popops.UpdateMax}), none), "operation add, the plan is for max"},
		{"plan for sorted ones", list(x, s, at, one), add(plan(tensor.F32, 1, 4, 3, 2, popops.PlanOptions{IndicesAreSorted: true}), none), "IndicesAreSorted is false, the plan was made with true"},
		{"partial type", list(x, s, at, one), add(nil, popops.Options{PartialType: tensor.F16}), "PartialType float16 for float32, want float32"},
		{"partial type and plan", list(x, s, at, one), add(plan(tensor.F32, 1, 4, 3, 2, popops.PlanOptions{}), popops.Options{PartialType: tensor.F16}), "PartialType float16 for float32, want float32"},
		{"sorted blocks", list(x, s, of(t, []int32{0, 0, 0, 0}, 2, 2)), func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{slice.Form{Kind: slice.Multi, Dims: []int{0, 1}, Sizes: []int{1, 3},
				Options: popops.Options{IndicesAreSorted: true}}.Update(in[0], in[1], in[2])}
		}, "IndicesAreSorted with 2 dims, want 1"},
		{"slices", list(x, fill(t, tensor.F32, 1, 2, 3), at, one), add(nil, none), "s is float32 (2, 3), want float32 (2, 1, 3)"},
		{"slices of another type", list(x, fill(t, tensor.F64, 1, 2, 1, 3), at, one), add(nil, none), "s is float64 (2, 1, 3), want float32 (2, 1, 3)"},
		{"scale", list(x, s, at, of(t, []float64{1})), add(nil, none), "scale is float64, want float32"},
		{"scale of half", list(fill(t, tensor.F16, 1, 4, 3), fill(t, tensor.F16, 1, 2, 1, 3), at, of(t, []float64{1})), add(nil, none), "scale is float64, want float16 or float32"},
		{"scales", list(x, s, at, of(t, []float32{1, 2})), add(nil, none), "scale has shape (2,), want one element"},
		{"bools", list(fill(t, tensor.Bool, 1, 4, 3), fill(t, tensor.Bool, 1, 2, 1, 3), at, fill(t, tensor.Bool, 1)), add(nil, none), "t is bool, want a number"},
		{"at", list(x), func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{sliceAt(in[0], []int{0, 4}, 0)} }, "offset 1 is 4, want 0 <= offset < 4"},
		{"at less", list(x), func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{sliceAt(in[0], []int{-1}, 0)} }, "offset 0 is -1, want 0 <= offset < 4"},
		{"at no dimension", list(x), func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{sliceAt(in[0], []int{0}, 2)} }, "dimension 2 of what has rank 2"},
		{"a kind", list(x, at), by(slice.Form{Kind: 3}), "Kind is 3, want Dynamic, Multi or GroupedMulti"},
		{"a plan of one", list(x, of(t, []int32{0})), by(slice.Form{Dims: d0, Sizes: s1, Plan: plan(tensor.F32, 1, 4, 3, 2, popops.PlanOptions{})}), "Plan or Options of a Dynamic slice"},
		{"options of one", list(x, of(t, []int32{0})), by(slice.Form{Dims: d0, Sizes: s1, Options: popops.Options{ValidateIndices: true}}), "Plan or Options of a Dynamic slice"},
		{"one that adds", list(x, fill(t, tensor.F32, 2, 1, 3), of(t, []int32{0}), one), func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{slice.Form{Dims: d0, Sizes: s1}.UpdateAdd(in[0], in[1], in[2], in[3])}
		}, "a form of Kind Dynamic, want Multi or GroupedMulti"},
		{"one for the greatest", list(x, fill(t, tensor.F32, 2, 1, 3), of(t, []int32{0})), func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{slice.Form{Dims: d0, Sizes: s1}.UpdateMaxInPlace(in[0], in[1], in[2])}
		}, "a form of Kind Dynamic, want Multi or GroupedMulti"},
		{"add at", list(x, s, one), func(in []*ir.Tensor) []*ir.Tensor {
			f, at := slice.At(in[0], []int{0, 4}, 0)
			return []*ir.Tensor{f.UpdateAdd(in[0], in[1], at, in[2])}
		}, "offset 1 is 4, want 0 <= offset < 4"},
		{"in place of a constant", list(x, s, at, one), func(in []*ir.Tensor) []*ir.Tensor {
			c := in[0].Graph().Constant(x)
			return []*ir.Tensor{rows.UpdateAddInPlace(c, in[1], in[2], in[3])}
		}, "is a constant and cannot be changed in place"},
		{"in place of itself", list(fill(t, tensor.F32, 1, 2, 1), at), func(in []*ir.Tensor) []*ir.Tensor {
			y := ops.Reshape(in[0], 2, 1)
			return []*ir.Tensor{slice.Form{Dims: []int{0, 1}, Sizes: []int{2, 1}}.UpdateInPlace(y, y,
				in[0].Graph().Constant(of(t, []uint32{0, 0}, 2)))}
		}, "which is changed, shares memory with %"},
		{"gradient of a gradient of the greatest", list(x, s, at), func(in []*ir.Tensor) []*ir.Tensor {
			return gradientOf(func(in []*ir.Tensor) *ir.Tensor {
				return gradientOf(func(in []*ir.Tensor) *ir.Tensor {
					return rows.UpdateMax(in[0], in[1], in[2])
				})(in)[0]
			})(in)
		}, "the operation has no gradient"},
	} {
		wantError(t, c.name, failure(c.in, c.f), c.want, "_test.go:")
	}
}

// TestNoTensors: operations on no tensor are no panic.
func TestNoTensors(t *testing.T) {
	slice.Form{}.Slice(nil, nil)
	f, at := slice.At(nil, []int{0}, 0)
	f.Slice(nil, at)
	f.UpdateAdd(nil, nil, at, nil)
	x := fill(t, tensor.F32, 1, 4, 3)
	wantError(t, "no offsets", failure([]*tensor.Tensor{x}, func(in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{rows.Slice(in[0], nil)}
	}), "input 1 is nil")
	wantError(t, "of a broken one", failure([]*tensor.Tensor{x}, func(in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{sliceAt(ops.Reshape(in[0], 5), []int{7}, 3)}
	}), "reshape")
}

// TestRunErrors: what depends on offsets is said when it runs, with the line of the operation.
func TestRunErrors(t *testing.T) {
	x, s, one := fill(t, tensor.F32, 1, 4, 3), fill(t, tensor.F32, 2, 2, 1, 3), of(t, []float32{1})
	for _, c := range []struct {
		name string
		at   *tensor.Tensor
		f    buildFunc
		want string
	}{
		{"dynamic", of(t, []int32{4}), func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{slice.Form{Dims: []int{0}, Sizes: []int{1}}.Slice(in[0], in[2])}
		}, "offset 4 in dimension 0, want 0 <= offset < 4"},
		{"validated", of(t, []int32{0, -1}, 2, 1), func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{with(nil, popops.Options{ValidateIndices: true}).Slice(in[0], in[2])}
		}, "offset of look-up 1 is -1, want 0 <= offset < 4"},
		{"sorted", of(t, []int32{1, 0}, 2, 1), func(in []*ir.Tensor) []*ir.Tensor {
			f := with(nil, popops.Options{IndicesAreSorted: true})
			return []*ir.Tensor{f.UpdateAddInPlace(in[0], in[1], in[2], in[3])}
		}, "offsets are not sorted"},
	} {
		wantError(t, c.name, runFailure(t, []*tensor.Tensor{x, s, c.at, one}, c.f), c.want, "errors_test.go:")
	}
}

// TestText has the operations as a program's text has them.
func TestText(t *testing.T) {
	p := build(1, []*tensor.Tensor{fill(t, tensor.F32, 1, 4, 3), of(t, []uint32{0, 1}, 2, 1)},
		func(in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{rows.UpdateInPlace(in[0], rows.Slice(in[0], in[1]), in[1])}
		})
	for _, want := range []string{"multi slice dims [0] sizes [1](", "multi update in place dims [0] sizes " +
		"[1](modified "} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("no %q in\n%v", want, p)
		}
	}
}
