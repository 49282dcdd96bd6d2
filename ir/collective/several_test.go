package collective_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// shardCases are tensors of all kinds: with and without padding in groups of 2 and 4, empty ones, a scalar.
var shardCases = []ir.Spec{
	spec(tensor.F32, 3, 3), spec(tensor.I32, 8), spec(tensor.F64), spec(tensor.F16, 0, 2), spec(tensor.BF16, 5),
	spec(tensor.F32, 2, 2), spec(tensor.I8, 17),
}

// shards reduce-scatters tensors of any shape and gathers them again, all at once or one by one.
func shards(c collective.Comm, in []*ir.Tensor, operator gcl.Operator, together bool) (parts, whole []*ir.Tensor) {
	var shapes []tensor.Shape
	for _, t := range in {
		shapes = append(shapes, t.Shape())
	}
	if together {
		parts = c.ReduceScatterShardsMany(in, operator)
		return parts, c.AllGatherShardsMany(parts, shapes)
	}
	for i, t := range in {
		parts = append(parts, c.ReduceScatterShards(t, operator))
		whole = append(whole, c.AllGatherShards(parts[i], shapes[i]...))
	}
	return parts, whole
}

// TestShardsMany: several tensors at once give what each gives alone, in one call of gcl.
func TestShardsMany(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		for _, g := range groupsOf(n) {
			for _, op := range []gcl.Operator{gcl.Add, gcl.Max, gcl.Local} {
				t.Run(fmt.Sprintf("n=%d/group=%v/%v", n, g, op), func(t *testing.T) {
					var got [2][][][]float64
					var r recorder
					trace := r.trace()
					for k, together := range []bool{true, false} {
						f, c := newFixture(t, n), collective.Comm{Group: g}
						if together {
							c.Options.Trace = trace
						}
						var in []*ir.Tensor
						for i, s := range shardCases {
							in = append(in, f.input(s, func(r, j int) float64 { return values(s.DType)(r, i+j) }))
						}
						parts, whole := shards(c, in, op, together)
						for i := range in {
							f.output(parts[i])
							f.output(whole[i])
							if s := whole[i].Spec(); !s.Equal(shardCases[i]) {
								t.Errorf("tensor %d is gathered as %v", i, s)
							}
						}
						s := f.session()
						got[k] = f.runIn(s)
						if !reflect.DeepEqual(got[k], f.runIn(s)) {
							t.Error("a second run gives something else")
						}
					}
					if !reflect.DeepEqual(got[0], got[1]) {
						t.Errorf("of several %v, of each %v", got[0], got[1])
					}
					for replica := range n {
						if calls := len(r.names[replica]); calls != 4 { // two in each of two runs
							t.Errorf("replica %d makes %d calls", replica, calls)
						}
					}
				})
			}
		}
	}
}

// TestGradientsOfShards: gradients are those of each tensor alone, and those of all tensors of floats one call of gcl.
func TestGradientsOfShards(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		for _, g := range groupsOf(n) {
			for _, gather := range []bool{false, true} {
				for _, op := range []gcl.Operator{gcl.Add, gcl.Mean, gcl.SquareAdd, gcl.Max, gcl.Local} {
					for _, options := range [][]ir.AutodiffOption{nil, {ir.IdenticalLosses()}} {
						t.Run(fmt.Sprintf("n=%d/group=%v/gather=%v/%v/identical=%v", n, g, gather, op, options != nil),
							func(t *testing.T) {
								gradientsOfShards(t, n, g, gather, op, options)
							})
					}
				}
			}
		}
	}
}

func gradientsOfShards(t *testing.T, n int, g commgroup.Group, gather bool, op gcl.Operator,
	options []ir.AutodiffOption) {
	specs := []ir.Spec{spec(tensor.F64, 3, 3), spec(tensor.I32, 5), spec(tensor.F32, 4), spec(tensor.F64)}
	if op == gcl.Mean {
		specs[1].DType = tensor.F16 // which takes no integers
	}
	ranks := must(g.Resolve(n)).Size()
	var got [2][][][]float64
	var calls [2]int
	for k, together := range []bool{true, false} {
		f := newFixture(t, n)
		var r recorder
		c := collective.Comm{Group: g}
		c.Options.Trace = r.trace()
		inputs := specs
		if gather {
			inputs = nil
			for _, s := range specs {
				inputs = append(inputs, spec(s.DType, 1, (s.Elements()+ranks-1)/ranks)) // any shape will do
			}
		}
		var like []ir.Input
		for _, s := range inputs {
			like = append(like, s)
		}
		graph := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) (out []*ir.Tensor) {
			var shapes []tensor.Shape
			for _, s := range specs {
				shapes = append(shapes, s.Shape)
			}
			switch {
			case gather && together:
				return c.AllGatherShardsMany(in, shapes)
			case together:
				return c.ReduceScatterShardsMany(in, op)
			}
			for i, t := range in {
				if gather {
					out = append(out, c.AllGatherShards(t, shapes[i]...))
				} else {
					out = append(out, c.ReduceScatterShards(t, op))
				}
			}
			return out
		}, like...)
		var in []*ir.Tensor
		for i, s := range inputs {
			in = append(in, f.input(s, func(r, j int) float64 { return float64((r+2)*(i+j+1)%7 + 10*r) }))
		}
		call := f.Main().CallWithInfo(graph, nil, in...)
		info := ir.Autodiff(graph, options...)
		by := info.By(call)
		for i, grad := range info.Grads {
			if grad == nil { // of integers
				continue
			}
			by[grad] = f.input(grad.Spec(), func(r, j int) float64 { return float64(1 + r + 3*j + 10*i) })
		}
		for _, t := range f.Main().CallWithInfo(info.Graph, by).Outputs() {
			f.output(t)
		}
		s := f.session()
		before := len(r.names[0])
		got[k] = f.runIn(s)
		calls[k] = len(r.names[0]) - before
	}
	if !reflect.DeepEqual(got[0], got[1]) {
		t.Errorf("of several %v, of each %v", got[0], got[1])
	}
	if want := 3; len(got[0]) < want {
		t.Errorf("%d gradients, want %d or more", len(got[0]), want)
	}
	// Forward 1. Backward 1 for all of them where something is sent; the others' claims are each one's.
	if want := 2; (gather || op == gcl.Add || op == gcl.Mean || op == gcl.SquareAdd) && calls[0] != want {
		t.Errorf("%d calls, want %d; one by one %d", calls[0], want, calls[1])
	}
}

// TestShardsManyOfOne: one tensor is no exception, and none gives none.
func TestShardsManyOfOne(t *testing.T) {
	f := newFixture(t, 2)
	var c collective.Comm
	parts, whole := shards(c, []*ir.Tensor{f.input(spec(tensor.F32, 3), values(tensor.F32))}, gcl.Add, true)
	f.output(parts[0])
	f.output(whole[0])
	if got, want := f.run(), [][][]float64{{{12, 14}, {16, 0}}, {{12, 14, 16}, {12, 14, 16}}}; !reflect.DeepEqual(got,
		want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := append(c.AllGatherShardsMany(nil, nil), c.ReduceScatterShardsMany(nil, gcl.Add)...); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

// TestShardsManyErrors has one error in each program.
func TestShardsManyErrors(t *testing.T) {
	var c collective.Comm
	for _, k := range []struct {
		build func(x *ir.Tensor)
		want  string
	}{
		{func(x *ir.Tensor) { c.AllGatherShardsMany([]*ir.Tensor{x, x}, []tensor.Shape{{10}}) }, "all-gather at several_test.go:LINE in graph main of \"in0\" float32 (5,), \"in0\" float32 (5,): 1 shapes for 2 tensors"},
		{func(x *ir.Tensor) { c.AllGatherShardsMany([]*ir.Tensor{x}, nil) }, "all-gather at several_test.go:LINE in graph main of \"in0\" float32 (5,): 0 shapes for 1 tensors"},
		{func(x *ir.Tensor) { c.AllGatherShardsMany([]*ir.Tensor{x, x}, []tensor.Shape{{10}, {11}}) }, "tensor 1: parts of 5 elements, want 6: 11 elements of shape (11,) over 2 ranks"},
		{func(x *ir.Tensor) { c.AllGatherShardsMany([]*ir.Tensor{x, x}, []tensor.Shape{{10}, {-1}}) }, "tensor 1: tensor: shape (-1,): dimension 0 is negative"},
		{func(x *ir.Tensor) { c.ReduceScatterShardsMany([]*ir.Tensor{x, x}, gcl.LogicalAnd) }, "reduce-scatter at several_test.go:LINE in graph main of \"in0\" float32 (5,), \"in0\" float32 (5,): tensor 0: operator LOGICAL_AND takes bool, not float32"},
		{func(x *ir.Tensor) { c.ReduceScatterMany([]*ir.Tensor{x, ops.Reshape(x, 5, 1)}, gcl.Add) }, "tensor 1: a reduce-scatter takes one dimension, not the shape (5, 1)"},
	} {
		f := newFixture(t, 2)
		k.build(f.input(spec(tensor.F32, 5), values(tensor.F32)))
		_, err := ir.NewSession(f.Program)
		before, after, _ := strings.Cut(k.want, "LINE")
		if err == nil || !strings.Contains(err.Error(), before) || !strings.Contains(err.Error(), after) {
			t.Errorf("%v, want %s", err, k.want)
		}
	}
}

// TestShardsManyAllocations runs them often.
func TestShardsManyAllocations(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		f := newFixture(t, n)
		for range 20 {
			var in []*ir.Tensor
			for _, s := range shardCases {
				in = append(in, f.input(s, values(s.DType)))
			}
			parts, whole := shards(collective.Comm{}, in, gcl.Add, true)
			for _, t := range append(parts, whole...) {
				f.output(t)
			}
		}
		if allocs := allocations(f); allocs > 0 {
			t.Errorf("n=%d: %v allocations in a run", n, allocs)
		}
	}
}
