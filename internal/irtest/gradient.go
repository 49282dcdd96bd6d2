package irtest

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// CheckGradient holds the gradients of f, as Autodiff has them, against central differences, for every element of every
// input of float64. The loss is the sum of the output's elements, each times a random weight. The step is 1e-5, whose
// error is about 1e-10 for functions that bend as much as they rise; 1e-7 of the gradient (or of 1) is tolerated.
// Inputs must keep farther than the step from where f has no derivative.
func CheckGradient(t *testing.T, name string, inputs []*tensor.Tensor,
	f func(g *ir.Graph, in []*ir.Tensor) *ir.Tensor) {
	t.Helper()
	const step, tolerance = 1e-5, 1e-7
	p := ir.New(1)
	var specs []ir.Input
	for _, x := range inputs {
		specs = append(specs, ir.SpecOf(x))
	}
	graph := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{f(g, in)} }, specs...)
	if err := p.Err(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	info := ir.Autodiff(graph)
	main, feed := p.Main(), map[*ir.Stream]*tensor.Tensor{}
	load := func(name string, x *tensor.Tensor) *ir.Tensor {
		s := p.HostToDevice(name, ir.SpecOf(x))
		feed[s] = x
		return main.HostLoad(s)
	}
	store := func(name string, x *ir.Tensor) *ir.Stream {
		s := p.DeviceToHost(name, x.Spec())
		main.HostStore(s, x)
		return s
	}
	var in []*ir.Tensor
	for _, x := range inputs {
		in = append(in, load("input", x))
	}
	out := graph.Outputs()[0]
	weights := RandomFloats(out.Shape())
	fwd := main.CallWithInfo(graph, nil, in...)
	result := store("result", fwd.Outputs()[0])
	by := info.By(fwd)
	by[info.Grads[0]] = load("weights", weights)
	var grads []*ir.Stream
	for _, x := range main.CallWithInfo(info.Graph, by).Outputs() {
		grads = append(grads, store("gradient", x))
	}
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer s.Close()
	run := func() map[*ir.Stream]*tensor.Tensor {
		t.Helper()
		got, err := s.Run(context.Background(), feed)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return got
	}
	first := run()
	of, w := Float64s(t, first[result]), Float64s(t, weights)
	lossChange := func(minus, plus []float64) (change float64) {
		for i := range w {
			change += w[i] * (plus[i] - minus[i])
		}
		return change
	}
	if len(of) == 0 {
		t.Fatalf("%s: no output", name)
	}
	checked := 0
	for k, g := range info.Inputs {
		i := slices.Index(graph.Inputs(), g)
		x, got := Float64s(t, inputs[i]), Float64s(t, first[grads[k]])
		if len(got) != len(x) {
			t.Fatalf("%s: gradient of input %d has %d elements, want %d", name, i, len(got), len(x))
		}
		for j, was := range x {
			x[j] = was + step
			plus := Float64s(t, run()[result])
			x[j] = was - step
			minus := Float64s(t, run()[result])
			x[j] = was
			want := lossChange(minus, plus) / (2 * step)
			if !(math.Abs(got[j]-want) <= tolerance*max(1, math.Abs(want))) {
				t.Errorf("%s: gradient of input %d element %d is %v, want %v by differences", name, i, j, got[j], want)
			}
			checked++
		}
	}
	if checked == 0 {
		t.Fatalf("%s: nothing to check", name)
	}
}

// Float64s is the elements of a tensor of float64, a view.
func Float64s(t *testing.T, x *tensor.Tensor) []float64 {
	t.Helper()
	out, err := tensor.Of[float64](x)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// RandomFloats is a tensor of float64 of numbers between 0.5 and 2 with any sign, the same for the same shape.
func RandomFloats(shape tensor.Shape) *tensor.Tensor {
	x, err := tensor.New(tensor.F64, shape...)
	if err != nil {
		panic(err)
	}
	v, _ := tensor.Of[float64](x)
	r := rand.New(rand.NewPCG(1, uint64(len(v))))
	for i := range v {
		v[i] = 0.5 + 1.5*r.Float64()
		if r.IntN(2) == 0 {
			v[i] = -v[i]
		}
	}
	return x
}
