package ir_test

// docs/design/ownops.md has the operations of this file, word for word: TestOwnOpsPage.

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// Print returns x, and writes it to a log whenever it is computed.
func Print(to *log.Logger, label string, x *ir.Tensor) *ir.Tensor {
	return ir.Apply1(printOp{to, label}, nil, x)
}

type printOp struct {
	to    *log.Logger // locks: the replicas write at the same time
	label string
}

func (printOp) Name() string                          { return "print" }
func (printOp) Infer(in []ir.Spec) ([]ir.Spec, error) { return in, nil }
func (o printOp) OrderKey() any                       { return o.to } // lines come in the order of the program
func (printOp) Gradient(b *ir.Backward) []*ir.Tensor  { return []*ir.Tensor{b.Grad(0)} }
func (o printOp) Bind(m *ir.Memory) (func() error, error) {
	return func() error {
		copy(m.Out[0].Bytes(), m.In[0].Bytes())
		o.to.Printf("replica %d: %s: %v", m.Replica, o.label, m.In[0])
		return nil
	}, nil
}

// Maximum returns the greater of each two elements of x and y, which have one spec; NaN where one is NaN.
func Maximum(x, y *ir.Tensor) *ir.Tensor { return ir.Apply1(maximumOp{}, nil, x, y) }

type maximumOp struct{}

func (maximumOp) Name() string { return "maximum" }

func (maximumOp) Infer(in []ir.Spec) ([]ir.Spec, error) {
	if !in[0].Equal(in[1]) || in[0].DType != tensor.F32 && in[0].DType != tensor.F64 {
		return nil, fmt.Errorf("want two tensors of one shape, both of float32 or of float64")
	}
	return in[:1], nil
}

func (maximumOp) Bind(m *ir.Memory) (func() error, error) {
	if m.In[0].DType() == tensor.F32 {
		return bindMaximum[float32](m)
	}
	return bindMaximum[float64](m)
}

func bindMaximum[T float32 | float64](m *ir.Memory) (func() error, error) {
	x, err := tensor.Of[T](m.In[0])
	if err != nil {
		return nil, err
	}
	y, err := tensor.Of[T](m.In[1])
	if err != nil {
		return nil, err
	}
	out, err := tensor.Of[T](m.Out[0])
	return func() error {
		for i := range out {
			out[i] = max(x[i], y[i])
		}
		return nil
	}, err
}

// Gradient gives the gradient to the greater element, and to x where both are equal.
func (maximumOp) Gradient(b *ir.Backward) []*ir.Tensor {
	zero, err := tensor.New(b.InSpec(0).DType)
	if err != nil {
		b.Fail(err)
		return nil
	}
	first, grad, none := ops.GreaterEqual(b.In(0), b.In(1)), b.Grad(0), b.Graph().Constant(zero)
	return []*ir.Tensor{ops.Select(first, grad, none), ops.Select(first, none, grad)}
}

// Dropout returns x, of float32, with elements replaced by 0, each with a probability of rate, and the others divided
// by 1-rate. Which ones follows from seed, the number of the step (a scalar of int32) and the replica alone. Every
// dropout of a program needs a seed of its own.
func Dropout(x, step *ir.Tensor, rate float64, seed uint64) *ir.Tensor {
	return ir.Apply1(dropoutOp{rate, seed}, nil, x, step)
}

type dropoutOp struct {
	rate float64
	seed uint64
}

func (dropoutOp) Name() string { return "dropout" }

func (o dropoutOp) Infer(in []ir.Spec) ([]ir.Spec, error) {
	switch {
	case !(o.rate >= 0 && o.rate < 1):
		return nil, fmt.Errorf("a rate of %v, want 0 or more and less than 1", o.rate)
	case in[0].DType != tensor.F32:
		return nil, fmt.Errorf("x is of %v, want float32", in[0].DType)
	case in[1].DType != tensor.I32 || len(in[1].Shape) > 0:
		return nil, fmt.Errorf("the step is %v, want a scalar of int32", in[1])
	}
	return in[:1], nil
}

func (o dropoutOp) Bind(m *ir.Memory) (func() error, error) {
	x, err := tensor.Of[float32](m.In[0])
	if err != nil {
		return nil, err
	}
	step, err := tensor.Of[int32](m.In[1])
	if err != nil {
		return nil, err
	}
	out, err := tensor.Of[float32](m.Out[0])
	numbers := rand.NewPCG(0, 0) // made here: a run allocates nothing
	return func() error {
		numbers.Seed(o.seed, uint64(m.Replica)<<32|uint64(uint32(step[0])))
		for i := range out {
			out[i] = 0
			if float64(numbers.Uint64()>>11)*0x1p-53 >= o.rate {
				out[i] = x[i] / float32(1-o.rate)
			}
		}
		return nil
	}, err
}

// Gradient drops the same elements of the gradient, since the numbers are drawn again from the same seed.
func (o dropoutOp) Gradient(b *ir.Backward) []*ir.Tensor {
	return []*ir.Tensor{Dropout(b.Grad(0), b.In(1), o.rate, o.seed), nil}
}

// TestOwnOpsPage looks for every block of the page in this file.
func TestOwnOpsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/design/ownops.md")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("ownops_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	for i, b := range blocks {
		code, _, closed := strings.Cut(b, "```")
		if !closed || !strings.Contains(string(own), code) {
			t.Errorf("block %d of docs/design/ownops.md is not in ir/ownops_test.go:\n%s", i, code)
		}
	}
	if len(blocks) < 3 {
		t.Errorf("%d blocks in docs/design/ownops.md, want one of each operation", len(blocks))
	}
}

// ownRun loads a tensor for each replica, runs what build makes of it, and returns what build returns.
func ownRun(t *testing.T, replicas int, x *tensor.Tensor, build func(g *ir.Graph, x *ir.Tensor) *ir.Tensor) []float32 {
	t.Helper()
	s := ir.SpecOf(x)
	if replicas > 1 {
		s.Shape = s.Shape[1:]
	}
	p := ir.New(replicas)
	in := p.HostToDevice("x", s)
	y := build(p.Main(), p.Main().HostLoad(in))
	out := p.DeviceToHost("y", y.Spec())
	p.Main().HostStore(out, y)
	session, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	got, err := session.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: x})
	if err != nil {
		t.Fatal(err)
	}
	v, err := tensor.Of[float32](got[out])
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPrint(t *testing.T) {
	var written bytes.Buffer
	to := log.New(&written, "", 0)
	x, _ := tensor.FromSlice([]float32{1, 2}, 2)
	got := ownRun(t, 1, x, func(_ *ir.Graph, x *ir.Tensor) *ir.Tensor {
		return Print(to, "twice", ops.MulScalar(Print(to, "x", x), 2))
	})
	if want := "replica 0: x: float32(2,)[1 2]\nreplica 0: twice: float32(2,)[2 4]\n"; written.String() != want {
		t.Errorf("%q, want %q", written.String(), want)
	}
	if got[0] != 2 || got[1] != 4 {
		t.Errorf("%v, want 2 and 4", got)
	}
	irtest.CheckGradient(t, "print", []*tensor.Tensor{irtest.RandomFloats(tensor.Shape{3})},
		func(_ *ir.Graph, in []*ir.Tensor) *ir.Tensor { return Print(to, "x", ops.Square(in[0])) })
}

func TestMaximum(t *testing.T) {
	nan := float32(math.NaN())
	x, _ := tensor.FromSlice([]float32{1, -2, nan, 0}, 4)
	other, _ := tensor.FromSlice([]float32{0, -1, 5, nan}, 4)
	got := ownRun(t, 1, x, func(g *ir.Graph, x *ir.Tensor) *ir.Tensor { return Maximum(x, g.Constant(other)) })
	if got[0] != 1 || got[1] != -1 || got[2] == got[2] || got[3] == got[3] {
		t.Errorf("%v, want 1, -1, NaN, NaN", got)
	}
	irtest.CheckGradient(t, "maximum", []*tensor.Tensor{irtest.RandomFloats(tensor.Shape{3, 4}),
		irtest.RandomFloats(tensor.Shape{3, 4})},
		func(_ *ir.Graph, in []*ir.Tensor) *ir.Tensor { return Maximum(in[0], ops.Neg(in[1])) })
	p := ir.New(1)
	Maximum(p.Main().Constant(x), p.Main().Constant(tensor.Scalar(float32(1))))
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "maximum at ownops_test.go:") {
		t.Errorf("of two shapes: %v, want an error of maximum at this line", err)
	}
}

// TestDropout has as many elements dropped as the rate says, others on each replica and in each step, and the same
// ones of the gradient.
func TestDropout(t *testing.T) {
	const n, rate = 10_000, 0.25
	x, err := tensor.New(tensor.F32, 2, n)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := tensor.Of[float32](x)
	for i := range v {
		v[i] = float32(i + 1)
	}
	drop := func(step int32) []float32 {
		return ownRun(t, 2, x, func(g *ir.Graph, x *ir.Tensor) *ir.Tensor {
			return Dropout(x, g.Constant(tensor.Scalar(step)), rate, 7)
		})
	}
	first, again, second := drop(1), drop(1), drop(2)
	dropped, replicasDiffer, stepsDiffer := 0, 0, 0
	for i, got := range first {
		switch {
		case got != again[i]:
			t.Fatalf("element %d is %v, and %v in the same step", i, got, again[i])
		case got == 0:
			dropped++
		case got != v[i]/(1-rate):
			t.Fatalf("element %d is %v, want 0 or %v", i, got, v[i]/(1-rate))
		}
		if (got == 0) != (second[i] == 0) {
			stepsDiffer++
		}
		if i < n && (got == 0) != (first[n+i] == 0) {
			replicasDiffer++
		}
	}
	if share := float64(dropped) / (2 * n); math.Abs(share-rate) > 0.015 { // 5 standard deviations
		t.Errorf("%v of the elements are dropped, want %v", share, rate)
	}
	if stepsDiffer == 0 || replicasDiffer == 0 {
		t.Errorf("%d elements differ between steps and %d between replicas, want some", stepsDiffer, replicasDiffer)
	}
	one, _ := tensor.New(tensor.F32, 2, n)
	ones, _ := tensor.Of[float32](one)
	for i := range ones {
		ones[i] = 1
	}
	grad := ownRun(t, 2, one, func(g *ir.Graph, upstream *ir.Tensor) *ir.Tensor {
		step := g.Constant(tensor.Scalar(int32(1)))
		graph := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{Dropout(in[0], in[1], rate, 7)}
		}, upstream, step)
		info := ir.Autodiff(graph)
		by := info.By(g.CallWithInfo(graph, nil, upstream, step))
		by[info.Grads[0]] = upstream
		return g.CallWithInfo(info.Graph, by).Outputs()[0]
	})
	for i, got := range grad {
		if want := float32(1) / (1 - rate); got != want && first[i] != 0 || got != 0 && first[i] == 0 {
			t.Fatalf("gradient %d is %v, of an element that became %v", i, got, first[i])
		}
	}
}
