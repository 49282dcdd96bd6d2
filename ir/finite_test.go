package ir_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// emit is an operation that gives what a test says: to a replica, the k-th time that it runs, in element 1 of 3.
type emit struct {
	name  string
	value func(m *ir.Memory, k int) float32
}

func (o emit) Name() string                       { return o.name }
func (o emit) OrderKey() any                      { return "emit" }
func (o emit) Infer([]ir.Spec) ([]ir.Spec, error) { return []ir.Spec{f32(3)}, nil }
func (o emit) Bind(m *ir.Memory) (func() error, error) {
	out, err := tensor.Of[float32](m.Out[0])
	k := 0
	return func() error {
		out[0], out[1], out[2] = 1, o.value(m, k), 3
		k++
		return nil
	}, err
}

var nan, inf = float32(math.NaN()), float32(math.Inf(1))

// always gives a value on one replica, and 0 on the others.
func always(replica int, v float32) func(*ir.Memory, int) float32 {
	return func(m *ir.Memory, _ int) float32 {
		if m.Replica == replica {
			return v
		}
		return 0
	}
}

// TestCheckFinite: the first in the order of the program, then of the replicas, is reported, whoever is there first.
func TestCheckFinite(t *testing.T) {
	for name, c := range map[string]struct {
		build func(g *ir.Graph)
		want  string
	}{
		"nothing": {func(g *ir.Graph) { ir.Apply(emit{"a", always(0, 7)}, g) }, ""},
		"the lowest replica": {func(g *ir.Graph) {
			ir.Apply(emit{"a", func(m *ir.Memory, _ int) float32 { return []float32{0, nan, inf}[m.Replica] }}, g)
		}, "replica 1: a built at finite_test.go:# in graph main: element 1 of float32 (3,) is NaN, not a finite number"},
		"an operation before, on a replica that is late": {func(g *ir.Graph) {
			late := make(chan struct{})
			ir.Apply(emit{"a", func(m *ir.Memory, _ int) float32 {
				if m.Replica < 2 {
					return 0
				}
				<-late
				return inf
			}}, g)
			ir.Apply(emit{"b", func(m *ir.Memory, _ int) float32 {
				if m.Replica > 0 {
					return 0
				}
				close(late)
				return nan
			}}, g)
		}, "replica 2: a built at finite_test.go:# in graph main: element 1 of float32 (3,) is +Inf, not a finite " +
			"number"},
		"others wait for who has stopped": {func(g *ir.Graph) {
			ir.Apply(emit{"a", always(0, nan)}, g)
			ir.Apply(emit{"b", func(m *ir.Memory, _ int) float32 {
				<-m.Context().Done()
				return 0
			}}, g)
		}, "replica 0: a built"},
		"a turn of a loop": {func(g *ir.Graph) {
			body := g.Program().CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
				ir.Apply(emit{"a", func(m *ir.Memory, k int) float32 {
					return []float32{0, 0, nan}[m.Replica] * float32(min(k/3, 1))
				}}, g)
				ir.Apply(emit{"b", func(m *ir.Memory, k int) float32 {
					if m.Replica == 1 && k == 2 {
						return nan
					}
					return 0
				}}, g)
				return nil
			})
			g.Repeat(body, 5)
		}, "replica 2: a built"}, // NaN times 0: in its first turn
		"an earlier turn": {func(g *ir.Graph) {
			at := func(replica, turn int) func(*ir.Memory, int) float32 {
				return func(m *ir.Memory, k int) float32 {
					if m.Replica == replica && k >= turn {
						return inf
					}
					return 0
				}
			}
			body := g.Program().CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
				ir.Apply(emit{"a", at(0, 3)}, g)
				ir.Apply(emit{"b", at(2, 2)}, g)
				return nil
			})
			g.Repeat(body, 5)
		}, "replica 2: b built"},
		"branches": {func(g *ir.Graph) {
			mine := ir.Apply1(replicaOp{}, g)
			branch := func(name string, v float32) ir.Branch {
				return ir.Branch{Graph: g.Program().CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
					return ir.Apply(emit{name, func(*ir.Memory, int) float32 { return v }}, g)
				})}
			}
			g.If(ops.Equal(mine, g.Constant(tensor.Scalar(int32(2)))), branch("then", nan), branch("else", inf))
		}, "replica 2: then built"},
		"what is started": {func(g *ir.Graph) {
			beside := g.Program().CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
				return ir.Apply(emit{"beside", always(1, nan)}, g)
			})
			s := g.Start(beside)
			ir.Apply(emit{"between", always(0, nan)}, g)
			s.Wait()
		}, "replica 1: beside built"},
		"a variable has it": {func(g *ir.Graph) {
			data, _ := tensor.FromSlice([]float32{1, 2, nan}, 3)
			w := g.Program().Variable(data, ir.VariableName("w"))
			ops.Add(w.Tensor, w.Tensor)
		}, "replica 0: add built at finite_test.go:# in graph main, of \"w\": element 2 of float32 (3,) is NaN, not " +
			"a finite number; %"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			for range 20 {
				p := ir.New(3)
				p.CheckFinite(true)
				p.Main().InSequence(func() { c.build(p.Main()) })
				s, err := ir.NewSession(p)
				if err != nil {
					t.Fatal(err)
				}
				err = s.RunTo(t.Context(), nil, nil)
				switch {
				case c.want == "":
					if err != nil {
						t.Error(err)
					}
				case !errors.Is(err, ir.ErrNotFinite) || !strings.Contains(anyLine(err), c.want):
					t.Errorf("%v, want %s", err, c.want)
				}
				s.Close()
			}
		})
	}
}

// TestCheckFiniteAfterCall: a call that was started ends on one replica after another replica has found something later
// in the program. What comes after the wait is earlier than that, and is still looked at.
func TestCheckFiniteAfterCall(t *testing.T) {
	p := ir.New(2)
	p.CheckFinite(true)
	var s *ir.Session
	g := p.Main()
	g.InSequence(func() {
		started := g.Start(p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
			return ir.Apply(emit{"beside", func(m *ir.Memory, _ int) float32 {
				for m.Replica == 1 && !ir.HasFound(s) {
					runtime.Gosched()
				}
				return 0
			}}, g)
		}))
		started.Wait()
		ir.Apply(emit{"earlier", always(1, inf)}, g)
		ir.Apply(emit{"later", always(0, nan)}, g)
	})
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.RunTo(t.Context(), nil, nil); err == nil ||
		!strings.Contains(err.Error(), "replica 1: earlier built at ") {
		t.Errorf("%v, want what replica 1 finds after the wait", err)
	}
}

// replicaOp gives the replica's number.
type replicaOp struct{}

func (replicaOp) Name() string                       { return "replica" }
func (replicaOp) Infer([]ir.Spec) ([]ir.Spec, error) { return []ir.Spec{{DType: tensor.I32}}, nil }
func (replicaOp) Bind(m *ir.Memory) (func() error, error) {
	out, err := tensor.Of[int32](m.Out[0])
	return func() error { out[0] = int32(m.Replica); return nil }, err
}

// TestCheckFiniteIsOff: without it nothing is looked at; a session turns it on and off between runs, and a run with it
// allocates nothing.
func TestCheckFiniteIsOff(t *testing.T) {
	p := ir.New(2)
	w := p.Variable(f32s(t, []float32{1, 0, 3}, 3))
	ir.Apply(emit{"a", func(_ *ir.Memory, k int) float32 { return []float32{nan, 0, nan}[min(k, 2)] }}, p.Main())
	addTo(w.Tensor, w.Tensor)
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for k, on := range []bool{false, true, false} {
		if err := s.CheckFinite(on); err != nil {
			t.Fatal(err)
		}
		if err := s.RunTo(t.Context(), nil, nil); err != nil {
			t.Errorf("run %d, check %v: %v", k, on, err)
		}
	}
	before, err := s.Read(w)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckFinite(true); err != nil {
		t.Fatal(err)
	}
	if err := s.RunTo(t.Context(), nil, nil); !errors.Is(err, ir.ErrNotFinite) {
		t.Errorf("the run returns %v", err)
	}
	if after, err := s.Read(w); err != nil || !after.Equal(before) {
		t.Errorf("after it the host has %v, %v, want %v", after, err, before)
	}
	if err := s.RunTo(t.Context(), nil, nil); err == nil ||
		!strings.Contains(err.Error(), "a run of the session has failed") {
		t.Errorf("the next run returns %v", err)
	}
}

// BenchmarkCheckFinite is a step of additions of that many bytes each, with the check and without.
func BenchmarkCheckFinite(b *testing.B) {
	for _, bytes := range []int{64, 4 << 10, 256 << 10, 4 << 20} {
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("size=%d/check=%v", bytes, on), func(b *testing.B) {
				p := ir.New(1)
				data, _ := tensor.New(tensor.F32, bytes/4)
				w := p.Variable(data)
				for range 20 {
					ops.Accumulate(w.Tensor, w.Tensor)
				}
				s, err := ir.NewSession(p)
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				if err := errors.Join(s.CheckFinite(on), s.Enter()); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					if err := s.RunTo(context.Background(), nil, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
