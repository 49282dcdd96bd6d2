package slice_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// buildFunc adds operations to a graph.
type buildFunc func(in []*ir.Tensor) []*ir.Tensor

// built is a program that loads inputs, adds operations and stores their results.
type built struct {
	*ir.Program
	in, out []*ir.Stream
}

func build(replicas int, in []*tensor.Tensor, f buildFunc) *built {
	p := &built{Program: ir.New(replicas)}
	var ts []*ir.Tensor
	for i, x := range in {
		p.in = append(p.in, p.HostToDevice(fmt.Sprint("in", i), ir.SpecOf(x)))
		ts = append(ts, p.Main().HostLoad(p.in[i]))
	}
	for i, t := range f(ts) {
		p.out = append(p.out, p.DeviceToHost(fmt.Sprint("out", i), t.Spec()))
		p.Main().HostStore(p.out[i], t)
	}
	return p
}

// run runs operations on one replica and on two with the same data, which must give the same bits, as further runs
// must. From the second on they must allocate nothing.
func run(t *testing.T, in []*tensor.Tensor, f buildFunc) []*tensor.Tensor {
	t.Helper()
	var first []*tensor.Tensor
	for _, replicas := range []int{1, 2} {
		p := build(replicas, in, f)
		s, err := ir.NewSession(p.Program)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		give, take := map[*ir.Stream]*tensor.Tensor{}, map[*ir.Stream]*tensor.Tensor{}
		for i, x := range in {
			h := newTensor(t, s.HostSpec(p.in[i]))
			for r := range replicas {
				copy(h.Bytes()[r*len(x.Bytes()):], x.Bytes())
			}
			give[p.in[i]] = h
		}
		for _, stream := range p.out {
			take[stream] = newTensor(t, s.HostSpec(stream))
		}
		err = s.Within(func() error {
			for range 2 {
				if err := s.RunTo(context.Background(), take, give); err != nil {
					return err
				}
			}
			if n := testing.AllocsPerRun(2, func() {
				if err := s.RunTo(context.Background(), take, give); err != nil {
					t.Error(err)
				}
			}); n > 0 && !raceDetectorOn {
				t.Errorf("%v allocations a run, want 0", n)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, stream := range p.out {
			b := take[stream].Bytes()
			size := len(b) / replicas
			for r := range replicas {
				x, err := tensor.View(stream.Spec().DType, stream.Spec().Shape, b[r*size:][:size])
				if err != nil {
					t.Fatal(err)
				}
				if len(first) == i {
					first = append(first, x)
				}
				if !sameBytes(x, first[i]) {
					t.Errorf("output %d: replica %d of %d has %v, want %v", i, r, replicas, x, first[i])
				}
			}
		}
	}
	return first
}

func sameBytes(a, b *tensor.Tensor) bool {
	return a.DType() == b.DType() && a.Shape().Equal(b.Shape()) && slices.Equal(a.Bytes(), b.Bytes())
}

// failure is the error of building, or of making a session.
func failure(in []*tensor.Tensor, f buildFunc) error {
	p := build(1, in, f)
	s, err := ir.NewSession(p.Program)
	if err == nil {
		s.Close()
	}
	return err
}

// runFailure is the error of a run.
func runFailure(t *testing.T, in []*tensor.Tensor, f buildFunc) error {
	t.Helper()
	p := build(1, in, f)
	s, err := ir.NewSession(p.Program)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	give := map[*ir.Stream]*tensor.Tensor{}
	for i, x := range in {
		give[p.in[i]] = x
	}
	_, err = s.Run(context.Background(), give)
	return err
}

func wantError(t *testing.T, name string, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: error %v, want one with %q", name, err, w)
		}
	}
}

func newTensor(t testing.TB, s ir.Spec) *tensor.Tensor {
	t.Helper()
	x, err := tensor.New(s.DType, s.Shape...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func of[T tensor.Element](t testing.TB, data []T, shape ...int) *tensor.Tensor {
	t.Helper()
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	x, err := tensor.FromSlice(data, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func viewOf[T tensor.Element](t testing.TB, x *tensor.Tensor) []T {
	t.Helper()
	v, err := tensor.Of[T](x)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// fill gives a tensor small quarters, which every float holds exactly, or small integers; the same for the same seed.
func fill(t testing.TB, d tensor.DType, seed uint64, shape ...int) *tensor.Tensor {
	t.Helper()
	x := newTensor(t, ir.Spec{Shape: shape, DType: d})
	r := rand.New(rand.NewPCG(seed, uint64(len(shape))))
	for i := range x.Len() {
		v := r.IntN(33) - 16
		switch d {
		case tensor.F64:
			viewOf[float64](t, x)[i] = float64(v) / 4
		case tensor.F32:
			viewOf[float32](t, x)[i] = float32(v) / 4
		case tensor.F16:
			viewOf[tensor.Float16](t, x)[i] = tensor.Float16FromFloat32(float32(v) / 4)
		case tensor.BF16:
			viewOf[tensor.BFloat16](t, x)[i] = tensor.BFloat16FromFloat32(float32(v) / 4)
		default:
			x.Bytes()[i*d.Size()] = byte(v & 1) // fits bools too
		}
	}
	return x
}

// floats is the elements of a tensor of floats.
func floats(t testing.TB, x *tensor.Tensor) []float64 {
	t.Helper()
	out := make([]float64, x.Len())
	for i := range out {
		switch x.DType() {
		case tensor.F64:
			out[i] = viewOf[float64](t, x)[i]
		case tensor.F32:
			out[i] = float64(viewOf[float32](t, x)[i])
		case tensor.F16:
			out[i] = float64(viewOf[tensor.Float16](t, x)[i].Float32())
		case tensor.BF16:
			out[i] = float64(viewOf[tensor.BFloat16](t, x)[i].Float32())
		default:
			t.Fatalf("no floats: %v", x.DType())
		}
	}
	return out
}

// gradientOf adds an operation in a graph of its own, and returns the gradients of its floats, given that of its
// output: half the output, plus an eighth. So the loss is the sum of y*y/4 + y/8.
func gradientOf(f func(in []*ir.Tensor) *ir.Tensor) buildFunc {
	return func(in []*ir.Tensor) []*ir.Tensor {
		g := in[0].Graph()
		var inputs []ir.Input
		for _, x := range in {
			inputs = append(inputs, x)
		}
		graph := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{f(in)}
		}, inputs...)
		info := ir.Autodiff(graph)
		forward := g.CallWithInfo(graph, nil, in...)
		by := info.By(forward)
		if len(info.Grads) == 0 || len(forward.Outputs()) == 0 {
			return nil
		}
		by[info.Grads[0]] = ops.AddScalar(ops.MulScalar(forward.Outputs()[0], 0.5), 0.125)
		return g.CallWithInfo(info.Graph, by).Outputs()
	}
}

// lossOf is the loss whose gradients gradientOf has.
func lossOf(f func(in []*ir.Tensor) *ir.Tensor) buildFunc {
	return func(in []*ir.Tensor) []*ir.Tensor {
		y := f(in)
		return []*ir.Tensor{ops.ReduceSum(ops.Add(ops.MulScalar(ops.Square(y), 0.25), ops.MulScalar(y, 0.125)))}
	}
}

// checkGradients holds the gradients of a function of tensors of float64 against differences of lossOf at two steps on
// either side, which are exact for polynomials of degree 4; beyond that their error is of the order of step^4, 2e-10. A
// millionth of the gradient (or of 1) is tolerated. Greatest ones must be farther apart than two steps.
func checkGradients(t *testing.T, name string, f func(in []*ir.Tensor) *ir.Tensor, in ...*tensor.Tensor) {
	t.Helper()
	const step, tolerance = 1.0 / 256, 1e-6
	got := run(t, in, gradientOf(f))
	p := build(1, in, lossOf(f))
	s, err := ir.NewSession(p.Program)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer s.Close()
	give := map[*ir.Stream]*tensor.Tensor{}
	for i, x := range in {
		give[p.in[i]] = x
	}
	loss := func() float64 {
		out, err := s.Run(context.Background(), give)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return floats(t, out[p.out[0]])[0]
	}
	k := 0
	for i, x := range in {
		if x.DType() != tensor.F64 {
			continue
		}
		v, g := viewOf[float64](t, x), floats(t, got[k])
		k++
		if len(g) != len(v) {
			t.Fatalf("%s: gradient of input %d has %d elements, want %d", name, i, len(g), len(v))
		}
		for j, was := range v {
			change := func(by float64) float64 {
				v[j] = was + by
				plus := loss()
				v[j] = was - by
				minus := loss()
				v[j] = was
				return plus - minus
			}
			if want := (8*change(step) - change(2*step)) / (12 * step); !(math.Abs(g[j]-want) <= tolerance*max(1,
				math.Abs(want))) {
				t.Errorf("%s: gradient of input %d element %d is %v, want %v by differences", name, i, j, g[j], want)
			}
		}
	}
	if k == 0 || k != len(got) {
		t.Fatalf("%s: %d gradients of %d inputs", name, len(got), k)
	}
}
