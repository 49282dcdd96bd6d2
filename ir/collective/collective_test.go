package collective_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/ir/show"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

var operators = []gcl.Operator{gcl.Add, gcl.Mean, gcl.Mul, gcl.Min, gcl.Max, gcl.LogicalAnd, gcl.LogicalOr,
	gcl.SquareAdd, gcl.Local}

// values are such that every element differs by replica and index, unless the type is narrow, and sums are exact.
func values(d tensor.DType) func(replica, i int) float64 {
	if d.Size() <= 2 {
		return func(r, i int) float64 { return float64((r*5 + i*3) % 4) }
	}
	return func(r, i int) float64 { return float64(10*r + i + 1) }
}

// check is an output of a program, and what it must be.
type check struct {
	what string
	out  int
	want [][]float64
}

// everything adds every collective on inputs of one type to a program.
func everything(f *fixture, c collective.Comm, d tensor.DType) []check {
	layout := must(c.Group.Resolve(f.Replicas()))
	o, g, v := groups{layout, d}, layout.Size(), values(d)
	var checks []check
	add := func(what string, t *ir.Tensor, want [][]float64) {
		checks = append(checks, check{what, f.output(t), want})
	}
	input := func(shape ...int) (*ir.Tensor, [][]float64) {
		s := spec(d, shape...)
		data := make([][]float64, f.Replicas())
		for r := range data {
			data[r] = []float64{}
			for i := range s.Elements() {
				x := v(r, i)
				if d == tensor.Bool {
					x = float64(int(x) % 2)
				}
				data[r] = append(data[r], x)
			}
		}
		return f.input(s, v), data
	}
	for _, op := range operators {
		if op.Accepts(d) != nil {
			continue
		}
		x, data := input(2, 3)
		add(fmt.Sprintf("all-reduce %v", op), c.AllReduce(x, op), o.allReduce(data, op))
		y, more := input(7)
		many := c.AllReduceMany([]*ir.Tensor{x, y}, op)
		add(fmt.Sprintf("all-reduce many %v, first", op), many[0], o.allReduce(data, op))
		add(fmt.Sprintf("all-reduce many %v, second", op), many[1], o.allReduce(more, op))
		for _, n := range []int{0, 1, 4, 5, 7} {
			x, data := input(n)
			part := c.ReduceScatter(x, op)
			add(fmt.Sprintf("reduce-scatter %v of %d", op, n), part, o.reduceScatter(data, op))
			if op != gcl.Local {
				add(fmt.Sprintf("all-gather of parts %v of %d", op, n), c.AllGatherShards(part, n),
					o.allReduce(data, op))
			}
		}
		flat, fifth := input(5)
		scattered := c.ReduceScatterMany([]*ir.Tensor{y, flat}, op)
		add(fmt.Sprintf("reduce-scatter many %v, first", op), scattered[0], o.reduceScatter(more, op))
		add(fmt.Sprintf("reduce-scatter many %v, second", op), scattered[1], o.reduceScatter(fifth, op))
		add(fmt.Sprintf("reduce-scatter of any shape %v", op), c.ReduceScatterShards(x, op), o.reduceScatter(data, op))
		add(fmt.Sprintf("all-reduce in place %v", op), c.AllReduceInPlace(x, op), o.allReduce(data, op))
		z, third := input(3)
		many = c.AllReduceManyInPlace([]*ir.Tensor{z, y}, op)
		add(fmt.Sprintf("all-reduce many in place %v, first", op), many[0], o.allReduce(third, op))
		add(fmt.Sprintf("all-reduce many in place %v, second", op), many[1], o.allReduce(more, op))
	}
	x, data := input(2, 3)
	add("all-gather", c.AllGather(x), o.allGather(data))
	add("all-gather joined", c.AllGatherConcat(x), o.allGather(data))
	scalar, number := input()
	add("all-gather of a scalar", c.AllGather(scalar), o.allGather(number))
	y, parts := input(g, 3)
	add("all-to-all", c.AllToAll(y), o.allToAll(parts))
	add("all-to-all in place", c.AllToAllInPlace(y), o.allToAll(parts))
	add("broadcast from the first", c.Broadcast(x, 0), o.broadcast(data, 0))
	add("broadcast from the last", c.Broadcast(x, g-1), o.broadcast(data, g-1))
	several := []*ir.Tensor{x, scalar}
	gathered, sent := c.AllGatherMany(several), c.BroadcastMany(several, g-1)
	add("all-gather many, first", gathered[0], o.allGather(data))
	add("all-gather many, second", gathered[1], o.allGather(number))
	add("broadcast many, first", sent[0], o.broadcast(data, g-1))
	add("broadcast many, second", sent[1], o.broadcast(number, g-1))
	again, others := input(g, 2, 1)
	exchanged := c.AllToAllMany([]*ir.Tensor{again, again})
	add("all-to-all many, first", exchanged[0], o.allToAll(others))
	add("all-to-all many, second", exchanged[1], o.allToAll(others))
	add("broadcast in place", c.BroadcastInPlace(x, g-1), o.broadcast(data, g-1))
	return checks
}

func runChecks(t *testing.T, replicas int, c collective.Comm, d tensor.DType) {
	t.Helper()
	f := newFixture(t, replicas)
	checks := everything(f, c, d)
	s := f.session()
	for run := range 2 {
		got := f.runIn(s)
		for _, k := range checks {
			if !reflect.DeepEqual(got[k.out], k.want) {
				t.Errorf("run %d: %s: %v, want %v", run, k.what, got[k.out], k.want)
			}
		}
	}
}

// TestCollectives compares all collectives with package oracle: on one element type in all groups, and on every type in
// groups of neighbours but one.
func TestCollectives(t *testing.T) {
	try := func(n int, g commgroup.Group, d tensor.DType) {
		t.Run(fmt.Sprintf("n=%d/group=%v/dtype=%v", n, g, d), func(t *testing.T) {
			runChecks(t, n, collective.Comm{Group: g}, d)
		})
	}
	for _, n := range []int{1, 2, 4} {
		for _, g := range groupsOf(n) {
			try(n, g, tensor.F32)
		}
	}
	for _, d := range tensor.DTypes() {
		try(4, group(commgroup.Consecutive, 2, 2), d)
	}
}

// TestOptions compares them with options, which change nothing but the way, each in another group.
func TestOptions(t *testing.T) {
	all := []gcl.Options{{Reproducible: true}, {Implementation: gcl.Syncless}, {StageFragments: true},
		{MaxBytesPerTile: 1}}
	for _, m := range thinned.Methods(4) {
		all = append(all, gcl.Options{Method: m})
	}
	of := groupsOf(4)
	for i, o := range all {
		g := of[i%len(of)]
		t.Run(fmt.Sprintf("%+v/group=%v", o, g), func(t *testing.T) {
			runChecks(t, 4, collective.Comm{Group: g, Options: o}, tensor.F32)
		})
	}
}

// TestOptionsReachGCL looks at what gcl says it did.
func TestOptionsReachGCL(t *testing.T) {
	type chosen struct {
		method methods.Method
		name   string
	}
	got := make(chan chosen, 2)
	o := gcl.Options{Method: methods.AnticlockwiseRing, Trace: &gcl.Trace{
		MethodChosen: func(c gcl.TraceCall, _ gcl.TraceMethod) { got <- chosen{c.Method, c.Name} },
	}}
	f := newFixture(t, 2)
	x := f.input(spec(tensor.F32, 8), values(tensor.F32))
	f.output(collective.Comm{Options: o}.AllReduce(x, gcl.Add).Named("total"))
	f.run()
	for range 2 {
		if c := <-got; c != (chosen{methods.AnticlockwiseRing, "total"}) {
			t.Errorf("%+v", c)
		}
	}
}

// TestExamples are the numbers of the documentation.
func TestExamples(t *testing.T) {
	f := newFixture(t, 4)
	pairs, across := collective.Comm{Group: group(1, 2, 0)}, collective.Comm{Group: group(2, 2, 0)}
	x := f.input(spec(tensor.F32, 4), func(r, i int) float64 { return float64(10000*r + i) })
	part := pairs.ReduceScatter(x, gcl.Add)
	f.output(part)
	f.output(across.AllReduce(part, gcl.Add))
	want := [][][]float64{
		{{10000, 10002}, {10004, 10006}, {50000, 50002}, {50004, 50006}},
		{{60000, 60004}, {60008, 60012}, {60000, 60004}, {60008, 60012}},
	}
	if got := f.run(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestInGraphs has collectives in graphs that are called, repeated and chosen.
func TestInGraphs(t *testing.T) {
	f := newFixture(t, 2)
	var all collective.Comm
	sum := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{all.AllReduce(in[0], gcl.Add)}
	}, spec(tensor.F32, 2))
	most := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{all.AllReduce(in[0], gcl.Max)}
	}, spec(tensor.F32, 2))
	x := f.input(spec(tensor.F32, 2), func(r, i int) float64 { return float64(10*r + i) })
	yes := f.input(spec(tensor.Bool), func(int, int) float64 { return 1 })
	f.output(f.Main().Call(sum, x)[0])
	f.output(f.Main().Repeat(sum, 3, x)[0])
	f.output(f.Main().If(yes, ir.Branch{Graph: most, In: []*ir.Tensor{x}},
		ir.Branch{Graph: sum, In: []*ir.Tensor{x}})[0])
	want := [][][]float64{{{10, 12}, {10, 12}}, {{40, 48}, {40, 48}}, {{10, 11}, {10, 11}}}
	if got := f.run(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestConstant has an input whose memory all replicas share.
func TestConstant(t *testing.T) {
	f := newFixture(t, 4)
	x := f.Main().Constant(must(tensor.FromSlice([]float32{1, 2, 3}, 3)))
	var all collective.Comm
	f.output(all.AllReduce(x, gcl.Add))
	f.output(all.Broadcast(x, 3))
	got := f.run()
	for r := range 4 {
		if !reflect.DeepEqual(got[0][r], []float64{4, 8, 12}) || !reflect.DeepEqual(got[1][r], []float64{1, 2, 3}) {
			t.Errorf("replica %d: %v, %v", r, got[0][r], got[1][r])
		}
	}
}

// TestVariable has a variable's own memory reduced.
func TestVariable(t *testing.T) {
	f := newFixture(t, 2)
	v := f.Variable(must(tensor.FromSlice([]float32{1, 2, 3, 4}, 2, 2)), ir.VariableGroups(group(1, 1, 0)),
		ir.AllReplicas())
	collective.Comm{}.AllReduceInPlace(v.Tensor, gcl.Add)
	s := f.session()
	f.runIn(s)
	got := byReplica(must(s.Read(v)), 2)
	if want := [][]float64{{4, 6}, {4, 6}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestText looks at collectives in programs as text and in drawings.
func TestText(t *testing.T) {
	f := newFixture(t, 4)
	pairs := collective.Comm{Group: group(1, 2, 2)}
	x := f.input(spec(tensor.F32, 4), values(tensor.F32)).Named("x")
	pairs.AllReduce(x, gcl.SquareAdd).Named("sum")
	pairs.AllReduceInPlace(x, gcl.Max)
	collective.Comm{}.Broadcast(x, 2)
	collective.Comm{}.AllGather(x)
	text := f.Main().String()
	for _, want := range []string{
		"all-reduce SQUARE_ADD CONSECUTIVE(2, stride 2)",
		"all-reduce in place MAX CONSECUTIVE(2, stride 2)", "broadcast from 2", "all-gather",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var drawing strings.Builder
	if err := show.DOT(&drawing, f.Main()); err != nil || strings.Count(drawing.String(), "#fde0cc") < 4 {
		t.Errorf("collectives have no colour: %v\n%s", err, drawing.String())
	}
}
