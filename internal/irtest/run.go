// Package irtest has what tests of package ir and of its operations share: to run operations on inputs, and to hold
// gradients against differences.
package irtest

import (
	"context"
	"fmt"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Build adds operations to a graph.
type Build func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor

// Program is a program that loads inputs, adds operations, and stores their results.
type Program struct {
	*ir.Program
	In, Out []*ir.Stream
}

// NewProgram makes such a program.
func NewProgram(replicas int, in []ir.Spec, build Build) *Program {
	p := &Program{Program: ir.New(replicas)}
	var ts []*ir.Tensor
	for i, s := range in {
		p.In = append(p.In, p.HostToDevice(fmt.Sprint("in", i), s))
		ts = append(ts, p.Main().HostLoad(p.In[i]))
	}
	for i, t := range build(p.Main(), ts) {
		p.Out = append(p.Out, p.DeviceToHost(fmt.Sprint("out", i), t.Spec()))
		p.Main().HostStore(p.Out[i], t)
	}
	return p
}

// Specs are those of some tensors.
func Specs(in []*tensor.Tensor) []ir.Spec {
	var out []ir.Spec
	for _, x := range in {
		out = append(out, ir.SpecOf(x))
	}
	return out
}

// Run runs operations on inputs, on one replica and on two with the same data, which must give the same bits. Three
// runs of the session must too, and allocate nothing.
func Run(t *testing.T, in []*tensor.Tensor, build Build) []*tensor.Tensor {
	t.Helper()
	var results [][]*tensor.Tensor
	for _, replicas := range []int{1, 2} {
		p := NewProgram(replicas, Specs(in), build)
		s, err := ir.NewSession(p.Program)
		if err != nil {
			t.Fatal(err)
		}
		give, take := map[*ir.Stream]*tensor.Tensor{}, map[*ir.Stream]*tensor.Tensor{}
		for i, x := range in {
			give[p.In[i]] = forReplicas(t, x, replicas)
		}
		for _, stream := range p.Out {
			h := s.HostSpec(stream)
			x, err := tensor.New(h.DType, h.Shape...)
			if err != nil {
				t.Fatal(err)
			}
			if h.DType != tensor.Bool {
				for i := range x.Bytes() {
					x.Bytes()[i] = 0xa5
				}
			}
			take[stream] = x
		}
		ctx := context.Background()
		err = s.Within(func() error {
			if n := testing.AllocsPerRun(2, func() {
				if err := s.RunTo(ctx, take, give); err != nil {
					t.Error(err)
				}
			}); n > 0 && !Race {
				t.Errorf("%v allocations a run, want 0", n)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for r := range replicas {
			var oneOp []*tensor.Tensor
			for _, stream := range p.Out {
				b := take[stream].Bytes()
				size := len(b) / replicas
				x, err := tensor.View(stream.Spec().DType, stream.Spec().Shape, b[r*size:][:size])
				if err != nil {
					t.Fatal(err)
				}
				oneOp = append(oneOp, x)
			}
			results = append(results, oneOp)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for k, other := range results {
		for i, x := range other {
			if !x.Equal(results[0][i]) {
				t.Errorf("output %d: run %d gives %v, and run 0 %v", i, k, x, results[0][i])
			}
		}
	}
	return results[0]
}

func forReplicas(t *testing.T, x *tensor.Tensor, replicas int) *tensor.Tensor {
	t.Helper()
	if replicas == 1 {
		return x
	}
	out, err := tensor.New(x.DType(), append([]int{replicas}, x.Shape()...)...)
	if err != nil {
		t.Fatal(err)
	}
	for r := range replicas {
		copy(out.Bytes()[r*len(x.Bytes()):], x.Bytes())
	}
	return out
}
