package collective_test

import (
	"fmt"
	"math"
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

// differentiables are the operations that have a gradient.
var differentiables = []struct {
	name       string
	shape      tensor.Shape // of the input, with -1 for the number of ranks
	replicated bool         // the output is the same on all ranks
	sameInput  bool         // with identical losses the input is too
	build      func(c collective.Comm, x *ir.Tensor, ranks int) *ir.Tensor
}{
	{"all-reduce ADD", tensor.Shape{2, 3}, true, false, allReduced(gcl.Add)},
	{"all-reduce MEAN", tensor.Shape{2, 3}, true, false, allReduced(gcl.Mean)},
	{"all-reduce SQUARE_ADD", tensor.Shape{2, 3}, true, false, allReduced(gcl.SquareAdd)},
	{"all-reduce MIN", tensor.Shape{2, 3}, true, false, allReduced(gcl.Min)},
	{"all-reduce MAX", tensor.Shape{2, 3}, true, false, allReduced(gcl.Max)},
	{"all-reduce LOCAL", tensor.Shape{2, 3}, false, false, allReduced(gcl.Local)},
	{"reduce-scatter ADD", tensor.Shape{5}, false, false, scattered(gcl.Add)},
	{"reduce-scatter ADD whole", tensor.Shape{8}, false, false, scattered(gcl.Add)},
	{"reduce-scatter MEAN", tensor.Shape{5}, false, false, scattered(gcl.Mean)},
	{"reduce-scatter SQUARE_ADD", tensor.Shape{5}, false, false, scattered(gcl.SquareAdd)},
	{"reduce-scatter MIN", tensor.Shape{5}, false, false, scattered(gcl.Min)},
	{"reduce-scatter MAX", tensor.Shape{5}, false, false, scattered(gcl.Max)},
	{"reduce-scatter LOCAL", tensor.Shape{5}, false, true, scattered(gcl.Local)},
	{"reduce-scatter LOCAL whole", tensor.Shape{8}, false, true, scattered(gcl.Local)},
	{"reduce-scatter LOCAL of any shape", tensor.Shape{3, 3}, false, true,
		func(c collective.Comm, x *ir.Tensor, _ int) *ir.Tensor {
			return c.ReduceScatterShards(x, gcl.Local)
		}},
	{"reduce-scatter ADD of any shape", tensor.Shape{3, 3}, false, false,
		func(c collective.Comm, x *ir.Tensor, _ int) *ir.Tensor {
			return c.ReduceScatterShards(x, gcl.Add)
		}},
	{"all-gather", tensor.Shape{2, 3}, true, false, func(c collective.Comm, x *ir.Tensor, _ int) *ir.Tensor { return c.AllGather(x) }},
	{"all-gather of scalars", nil, true, false, func(c collective.Comm, x *ir.Tensor, _ int) *ir.Tensor { return c.AllGather(x) }},
	{"all-gather joined", tensor.Shape{2, 3}, true, false, func(c collective.Comm, x *ir.Tensor, _ int) *ir.Tensor { return c.AllGatherConcat(x) }},
	{"all-gather of parts", tensor.Shape{2}, true, false, func(c collective.Comm, x *ir.Tensor, ranks int) *ir.Tensor {
		return c.AllGatherShards(x, 2*ranks-ranks/2)
	}},
	{"all-to-all", tensor.Shape{-1, 2}, false, false, func(c collective.Comm, x *ir.Tensor, _ int) *ir.Tensor { return c.AllToAll(x) }},
	{"all-reduce ADD in place", tensor.Shape{2, 3}, true, false, inPlace(func(c collective.Comm, x *ir.Tensor, _ int) {
		c.AllReduceInPlace(x, gcl.Add)
	})},
	{"all-reduce SQUARE_ADD in place", tensor.Shape{2, 3}, true, false,
		inPlace(func(c collective.Comm, x *ir.Tensor, _ int) { c.AllReduceInPlace(x, gcl.SquareAdd) })},
	{"all-reduce MAX in place", tensor.Shape{2, 3}, true, false, inPlace(func(c collective.Comm, x *ir.Tensor, _ int) {
		c.AllReduceManyInPlace([]*ir.Tensor{x}, gcl.Max)
	})},
	{"all-to-all in place", tensor.Shape{-1, 2}, false, false, inPlace(func(c collective.Comm, x *ir.Tensor, _ int) {
		c.AllToAllInPlace(x)
	})},
	{"broadcast in place", tensor.Shape{2, 3}, true, false, inPlace(func(c collective.Comm, x *ir.Tensor, ranks int) {
		c.BroadcastInPlace(x, ranks-1)
	})},
	{"broadcast", tensor.Shape{2, 3}, true, false, func(c collective.Comm, x *ir.Tensor, ranks int) *ir.Tensor { return c.Broadcast(x, ranks-1) }},
}

func allReduced(op gcl.Operator) func(c collective.Comm, x *ir.Tensor, ranks int) *ir.Tensor {
	return func(c collective.Comm, x *ir.Tensor, _ int) *ir.Tensor { return c.AllReduce(x, op) }
}

func scattered(op gcl.Operator) func(c collective.Comm, x *ir.Tensor, ranks int) *ir.Tensor {
	return func(c collective.Comm, x *ir.Tensor, _ int) *ir.Tensor { return c.ReduceScatter(x, op) }
}

// inPlace changes what is made of the input, and reads that by the handle from before.
func inPlace(change func(c collective.Comm, x *ir.Tensor, ranks int)) func(c collective.Comm, x *ir.Tensor,
	ranks int) *ir.Tensor {
	return func(c collective.Comm, x *ir.Tensor, ranks int) *ir.Tensor {
		y := ops.MulScalar(x, 0.5)
		change(c, y, ranks)
		return ops.MulScalar(y, 2)
	}
}

// point is where gradients are taken: no two replicas have the same.
func point(r, i int) float64 { return math.Sin(float64(7*r+3*i+1)) + float64((r+i)%4) }

// gradientOf adds a call of a graph of one tensor and of its gradient to a program. The loss of a replica is the sum of
// its outputs, each times its weight. It returns the numbers of the outputs for the output and the gradient.
func gradientOf(f *fixture, g *ir.Graph, x, weights *ir.Tensor, options ...ir.AutodiffOption) (out, grad int) {
	call := f.Main().CallWithInfo(g, nil, x)
	info := ir.Autodiff(g, options...)
	by := info.By(call)
	by[info.Grads[0]] = weights
	return f.output(call.Outputs()[0]), f.output(f.Main().CallWithInfo(info.Graph, by).Outputs()[0])
}

func weight(r, i int) float64 { return math.Cos(float64(5*r + 11*i)) }

// loss is the sum over some replicas of the sum of elements times weights.
func loss(y [][]float64, replicas int, weight func(r, i int) float64) float64 {
	sum := 0.0
	for r := range replicas {
		for i, v := range y[r] {
			sum += v * weight(r, i)
		}
	}
	return sum
}

// slopes are finite differences of a loss that a program has, by input: that of input i of replica r, or with together
// of input i of all replicas.
func slopes(t *testing.T, f *fixture, s *ir.Session, together bool, loss func(out [][][]float64) float64) [][]float64 {
	t.Helper()
	var x *tensor.Tensor
	for stream, data := range f.in {
		if stream.Name() == "in0" {
			x = data
		}
	}
	n, each := f.Replicas(), x.Len()/f.Replicas()
	at := func(r, i int, by float64) float64 {
		move := func(by float64) {
			for k := range n {
				if k == r || together {
					setElement(x, k*each+i, element(x, k*each+i)+by)
				}
			}
		}
		move(by)
		defer move(-by)
		return loss(f.runIn(s))
	}
	const step = 1e-5
	out := make([][]float64, n)
	for r := range n {
		for i := range each {
			out[r] = append(out[r], (at(r, i, step)-at(r, i, -step))/(2*step))
		}
	}
	return out
}

func near(a, b [][]float64) bool {
	for r := range a {
		for i := range a[r] {
			if !(math.Abs(a[r][i]-b[r][i]) < 1e-6) {
				return false
			}
		}
	}
	return len(a) == len(b)
}

func filled(shape tensor.Shape, ranks int) tensor.Shape {
	out := shape.Clone()
	for i, n := range out {
		if n < 0 {
			out[i] = ranks
		}
	}
	return out
}

// TestGradients compares gradients, and those of gradients where they are linear, with finite differences of the sum of
// the replicas' losses.
func TestGradients(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		for _, g := range groupsOf(n) {
			for _, k := range differentiables {
				for _, twice := range []bool{false, true} {
					if twice && (strings.Contains(k.name, "SQUARE") ||
						strings.Contains(k.name, "M") && !strings.Contains(k.name, "MEAN")) {
						continue
					}
					t.Run(fmt.Sprintf("n=%d/group=%v/%s/twice=%v", n, g, k.name, twice), func(t *testing.T) {
						f, c := newFixture(t, n), collective.Comm{Group: g}
						ranks := must(g.Resolve(n)).Size()
						graph := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
							return []*ir.Tensor{k.build(c, in[0], ranks)}
						}, spec(tensor.F64, filled(k.shape, ranks)...))
						if twice {
							graph = ir.Autodiff(graph).Graph
						}
						x := f.input(graph.Inputs()[0].Spec(), point)
						w := f.input(graph.Outputs()[0].Spec(), weight)
						out, grad := gradientOf(f, graph, x, w)
						s := f.session()
						got := f.runIn(s)[grad]
						want := slopes(t, f, s, false, func(y [][][]float64) float64 { return loss(y[out], n, weight) })
						if !near(got, want) {
							t.Errorf("%v\nwant %v", got, want)
						}
					})
				}
			}
		}
	}
}

// TestGradientsOfIdenticalLosses compares gradients with finite differences of the one loss that all replicas have
// computed: of an output that is the same on all, and otherwise of all outputs, all-reduced.
func TestGradientsOfIdenticalLosses(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		for _, k := range differentiables {
			t.Run(fmt.Sprintf("n=%d/%s", n, k.name), func(t *testing.T) {
				f := newFixture(t, n)
				graph := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
					return []*ir.Tensor{k.build(collective.Comm{}, in[0], n)}
				}, spec(tensor.F64, filled(k.shape, n)...))
				at, weight, parts := point, weight, n
				if k.sameInput {
					at = func(_, i int) float64 { return point(0, i) }
				}
				if k.replicated {
					weight, parts = func(_, i int) float64 { return math.Cos(float64(11 * i)) }, 1
				}
				x := f.input(graph.Inputs()[0].Spec(), at)
				w := f.input(graph.Outputs()[0].Spec(), weight)
				out, grad := gradientOf(f, graph, x, w, ir.IdenticalLosses())
				s := f.session()
				got := f.runIn(s)[grad]
				want := slopes(t, f, s, k.sameInput, func(y [][][]float64) float64 {
					return loss(y[out], parts, weight)
				})
				if !near(got, want) {
					t.Errorf("%v\nwant %v", got, want)
				}
			})
		}
	}
}

// TestGradientInLoop goes through a loop and a call with collectives in them.
func TestGradientInLoop(t *testing.T) {
	const n = 4
	f := newFixture(t, n)
	all, pairs := collective.Comm{}, collective.Comm{Group: group(commgroup.Consecutive, 2, 0)}
	body := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{all.AllReduce(pairs.AllReduce(in[0], gcl.SquareAdd), gcl.Mean)}
	}, spec(tensor.F64, 3))
	graph := f.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{all.AllGather(g.Repeat(body, 3, in[0])[0])}
	}, spec(tensor.F64, 3))
	x := f.input(spec(tensor.F64, 3), func(r, i int) float64 { return 0.3 + 0.1*float64(r)*float64(i) })
	w := f.input(spec(tensor.F64, n, 3), weight)
	out, grad := gradientOf(f, graph, x, w)
	s := f.session()
	got := f.runIn(s)[grad]
	want := slopes(t, f, s, false, func(y [][][]float64) float64 { return loss(y[out], n, weight) })
	if !near(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// TestGradientOfMany has tensors of several types, of which one is no float, and one has no gradient.
func TestGradientOfMany(t *testing.T) {
	f := newFixture(t, 2)
	graph := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return collective.Comm{}.AllReduceMany(in, gcl.Add)[:2]
	}, spec(tensor.F32, 2), spec(tensor.I32, 2), spec(tensor.F64, 1))
	info := ir.Autodiff(graph)
	w := f.input(spec(tensor.F32, 2), func(r, i int) float64 { return float64(10*r + i + 1) })
	for _, t := range f.Main().CallWithInfo(info.Graph, map[*ir.Tensor]*ir.Tensor{info.Grads[0]: w}).Outputs() {
		f.output(t)
	}
	want := [][][]float64{{{12, 14}, {12, 14}}, {{0}, {0}}}
	if got := f.run(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestGradientDTypes has all types of floats, of which sums are exact.
func TestGradientDTypes(t *testing.T) {
	for _, d := range []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64} {
		for op, want := range map[gcl.Operator][][]float64{
			gcl.Add:       {{4, 6}, {4, 6}},
			gcl.Mean:      {{2, 3}, {2, 3}},
			gcl.SquareAdd: {{8, 24}, {16, 24}}, // inputs 1, 2 and 2, 2
			gcl.Min:       {{4, 6}, {0, 0}},
			gcl.Max:       {{0, 6}, {4, 0}},
		} {
			for name, build := range map[string]func(c collective.Comm, x *ir.Tensor, ranks int) *ir.Tensor{
				"all-reduce": allReduced(op), "reduce-scatter": scattered(op),
			} {
				t.Run(fmt.Sprintf("dtype=%v/%s %v", d, name, op), func(t *testing.T) {
					f := newFixture(t, 2)
					graph := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
						return []*ir.Tensor{build(collective.Comm{}, in[0], 2)}
					}, spec(d, 2))
					x := f.input(spec(d, 2), func(r, i int) float64 { return []float64{1, 2, 2, 2}[2*r+i] })
					w := f.input(graph.Outputs()[0].Spec(), func(r, i int) float64 {
						if name == "reduce-scatter" {
							return []float64{4, 6}[r]
						}
						return []float64{1, 2, 3, 4}[2*r+i]
					})
					_, grad := gradientOf(f, graph, x, w)
					if got := f.run()[grad]; !reflect.DeepEqual(got, want) {
						t.Errorf("%v, want %v", got, want)
					}
				})
			}
		}
	}
}

// TestGradientOfNaN has the gradient of a maximum that is NaN go to the first that is.
func TestGradientOfNaN(t *testing.T) {
	f := newFixture(t, 4)
	graph := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{collective.Comm{}.AllReduce(in[0], gcl.Max)}
	}, spec(tensor.F32))
	x := f.input(spec(tensor.F32), func(r, _ int) float64 { return []float64{9, math.NaN(), math.NaN(), 3}[r] })
	w := f.input(spec(tensor.F32), func(int, int) float64 { return 1 })
	_, grad := gradientOf(f, graph, x, w)
	if got, want := f.run()[grad], [][]float64{{0}, {4}, {0}, {0}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNoGradient has operations without one.
func TestNoGradient(t *testing.T) {
	for name, build := range map[string]func(x *ir.Tensor) *ir.Tensor{
		"all-reduce: autodiff: the operator MUL has no gradient": func(x *ir.Tensor) *ir.Tensor {
			return collective.Comm{}.AllReduce(x, gcl.Mul)
		},
		"reduce-scatter: autodiff: the operator MUL has no gradient": func(x *ir.Tensor) *ir.Tensor {
			return collective.Comm{}.ReduceScatter(x, gcl.Mul)
		},
		"all-reduce in place: autodiff: the operator MUL has no gradient: it would divide by the inputs, and what it " +
			"changes, %0, is read by who calls graph TestNoGradient, built at gradient_test.go:": func(x *ir.Tensor) *ir.Tensor {
			return collective.Comm{}.AllReduceInPlace(x, gcl.Mul)
		},
	} {
		p := ir.New(2)
		ir.Autodiff(p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{build(in[0])}
		}, spec(tensor.F32, 4)))
		err := p.Err()
		op, why, _ := strings.Cut(name, ": ")
		if err == nil || !strings.HasPrefix(err.Error(), "ir: "+op+" at gradient_test.go:") ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %s", err, name)
		}
	}
	p := ir.New(2)
	square := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{collective.Comm{}.AllReduce(in[0], gcl.SquareAdd)}
	}, spec(tensor.F32, 4))
	ir.Autodiff(ir.Autodiff(square).Graph)
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "there is no gradient of that of SQUARE_ADD") {
		t.Error(err)
	}
}

// TestGradientAllocations runs gradients.
func TestGradientAllocations(t *testing.T) {
	f := newFixture(t, 2)
	for _, k := range differentiables {
		graph := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{k.build(collective.Comm{}, in[0], 2)}
		}, spec(tensor.F32, filled(k.shape, 2)...))
		gradientOf(f, graph, f.input(graph.Inputs()[0].Spec(), point), f.input(graph.Outputs()[0].Spec(), weight))
	}
	if allocs := allocations(f); allocs > 0 {
		t.Errorf("%v allocations in a run", allocs)
	}
}

// TestGradientsOfSeveral: each of several tensors has the gradient that it has alone.
func TestGradientsOfSeveral(t *testing.T) {
	c := collective.Comm{}
	type build = func(in []*ir.Tensor) []*ir.Tensor
	each := func(f func(t *ir.Tensor) *ir.Tensor) build {
		return func(in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{f(in[0]), f(in[1])} }
	}
	for name, both := range map[string][2]build{
		"reduce-scatter ADD": {func(in []*ir.Tensor) []*ir.Tensor {
			return c.ReduceScatterMany(in, gcl.Add)
		}, each(func(t *ir.Tensor) *ir.Tensor { return c.ReduceScatter(t, gcl.Add) })},
		"reduce-scatter MAX": {func(in []*ir.Tensor) []*ir.Tensor {
			return c.ReduceScatterMany(in, gcl.Max)
		}, each(func(t *ir.Tensor) *ir.Tensor { return c.ReduceScatter(t, gcl.Max) })},
		"all-gather": {c.AllGatherMany, each(c.AllGather)},
		"all-to-all": {c.AllToAllMany, each(c.AllToAll)},
		"broadcast": {func(in []*ir.Tensor) []*ir.Tensor {
			return c.BroadcastMany(in, 1)
		}, each(func(t *ir.Tensor) *ir.Tensor { return c.Broadcast(t, 1) })},
	} {
		var got [2][][][]float64
		for k, build := range both {
			f := newFixture(t, 2)
			graph := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				return build(in)
			}, spec(tensor.F64, 2), spec(tensor.F64, 2))
			v := func(r, i int) float64 { return float64((r+2)*(i+1)%4 + 10*r) }
			x, y := f.input(spec(tensor.F64, 2), v), f.input(spec(tensor.F64, 2), func(r, i int) float64 {
				return v(i, r)
			})
			fwd := f.Main().CallWithInfo(graph, nil, x, y)
			info := ir.Autodiff(graph)
			by := info.By(fwd)
			for i, g := range info.Grads {
				by[g] = f.input(graph.Outputs()[i].Spec(), func(r, k int) float64 {
					return float64(1 + r + 3*k + 10*i)
				})
			}
			for _, g := range f.Main().CallWithInfo(info.Graph, by).Outputs() {
				f.output(g)
			}
			got[k] = f.run()
		}
		if !reflect.DeepEqual(got[0], got[1]) {
			t.Errorf("%s: of several %v, of each %v", name, got[0], got[1])
		}
	}
	f := newFixture(t, 2)
	graph := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return c.ReduceScatterMany(in, gcl.Mul)
	}, spec(tensor.F64, 2))
	if ir.Autodiff(graph); f.Err() == nil {
		t.Error("a product has a gradient")
	}
}

// Every operator has a row, so that none gets the gradient of a sum by default.
func TestDerivatives(t *testing.T) {
	for op := gcl.Operator(0); ; op++ {
		if _, err := op.MarshalText(); err != nil {
			break
		}
		if !collective.HasDerivative(op) {
			t.Errorf("%v has no row", op)
		}
	}
	if collective.HasDerivative(200) {
		t.Error("Operator(200) has a row")
	}
}
