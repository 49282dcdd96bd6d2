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
	"gogcl.dev/tensor"
)

// unevenGroups are groups of two and three of five replicas.
func unevenGroups() commgroup.Group {
	return must(commgroup.Lists([][]int{{0, 3}, {1, 2, 4}}))
}

// TestGroupsOfDifferentSizes: collectives whose output is of one shape in all groups.
func TestGroupsOfDifferentSizes(t *testing.T) {
	const n = 5
	g := unevenGroups()
	c := collective.Comm{Group: g}
	o := groups{must(g.Resolve(n)), tensor.F32}
	f := newFixture(t, n)
	input := func(shape ...int) (*ir.Tensor, [][]float64) {
		v, s := values(tensor.F32), spec(tensor.F32, shape...)
		data := make([][]float64, n)
		for r := range data {
			data[r] = []float64{}
			for i := range s.Elements() {
				data[r] = append(data[r], v(r, i))
			}
		}
		return f.input(s, v), data
	}
	var checks []check
	add := func(what string, t *ir.Tensor, want [][]float64) {
		checks = append(checks, check{what, f.output(t), want})
	}
	x, data := input(2, 3)
	one, ones := input(1)
	none, nothing := input(0)
	for _, op := range []gcl.Operator{gcl.Add, gcl.Mean, gcl.Max, gcl.SquareAdd} {
		add(fmt.Sprintf("all-reduce %v", op), c.AllReduce(x, op), o.allReduce(data, op))
	}
	add("all-reduce many", c.AllReduceMany([]*ir.Tensor{x, one}, gcl.Add)[1], o.allReduce(ones, gcl.Add))
	add("broadcast", c.Broadcast(x, 1), o.broadcast(data, 1))
	part := c.ReduceScatter(one, gcl.Add) // of 1 element in groups of 2 and of 3
	add("reduce-scatter", part, o.reduceScatter(ones, gcl.Add))
	add("all-gather of shards", c.AllGatherShards(part, 1), o.allReduce(ones, gcl.Add))
	add("reduce-scatter of nothing", c.ReduceScatter(none, gcl.Add), o.reduceScatter(nothing, gcl.Add))
	add("all-reduce in place", c.AllReduceInPlace(x, gcl.Min), o.allReduce(data, gcl.Min))
	s := f.session()
	got := f.runIn(s)
	for _, k := range checks {
		if !reflect.DeepEqual(got[k.out], k.want) {
			t.Errorf("%s: %v, want %v", k.what, got[k.out], k.want)
		}
	}
}

// TestGroupsOfDifferentSizesErrors: collectives whose output would be of several shapes, or that a smaller group cannot
// do.
func TestGroupsOfDifferentSizesErrors(t *testing.T) {
	c := collective.Comm{Group: unevenGroups()}
	const groups = "LISTS({0 3} {1 2 4})"
	for _, k := range []struct {
		name  string
		build func(x *ir.Tensor) *ir.Tensor
		want  string
	}{
		{"all-gather", func(x *ir.Tensor) *ir.Tensor { return c.AllGather(x) },
			"the output in group [0 3] is [float32 (2, 3)], and in group [1 2 4] it is [float32 (3, 3)]: want groups of " +
				"equal size, not " + groups},
		{"all-gather joined", func(x *ir.Tensor) *ir.Tensor { return c.AllGatherConcat(x) }, "want groups of equal size"},
		{"reduce-scatter", func(x *ir.Tensor) *ir.Tensor { return c.ReduceScatter(x, gcl.Add) }, "is [float32 (2,)], and"},
		{"shards", func(x *ir.Tensor) *ir.Tensor { return c.AllGatherShards(x, 6) },
			"in group [1 2 4] of " + groups + ": parts of 3 elements, want 2"},
		{"all-to-all", func(x *ir.Tensor) *ir.Tensor { return c.AllToAll(x) },
			"in group [0 3] of " + groups + ": the first dimension of an all-to-all is that of the ranks, 2"},
		{"root", func(x *ir.Tensor) *ir.Tensor { return c.Broadcast(x, 2) },
			"in group [0 3] of " + groups + ": root 2 is not a rank of the group, 0 to 1"},
		{"replicas", func(x *ir.Tensor) *ir.Tensor {
			return collective.Comm{Group: must(commgroup.Lists([][]int{{0, 3}, {1, 2}}))}.AllReduce(x, gcl.Add)
		}, "replica 4 is in no group of LISTS({0 3} {1 2})"},
	} {
		t.Run(k.name, func(t *testing.T) {
			f := newFixture(t, 5)
			k.build(f.input(spec(tensor.F32, 3), values(tensor.F32)))
			if err := f.Program.Err(); err == nil || !strings.Contains(err.Error(), k.want) {
				t.Errorf("%v, want %q", err, k.want)
			}
		})
	}
}
