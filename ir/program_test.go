package ir_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// addOp is an operation of this package: the sum of two tensors of float32.
type addOp struct{}

func (addOp) Name() string                          { return "test add" }
func (addOp) Infer(in []ir.Spec) ([]ir.Spec, error) { return in[:1], nil }
func (addOp) Gradient(b *ir.Backward) []*ir.Tensor  { return []*ir.Tensor{b.Grad(0), b.Grad(0)} }
func (addOp) Bind(m *ir.Memory) (func() error, error) {
	a, err1 := tensor.Of[float32](m.In[0])
	b, err2 := tensor.Of[float32](m.In[1])
	out, err3 := tensor.Of[float32](m.Out[0])
	return func() error {
		for i := range out {
			out[i] = a[i] + b[i]
		}
		return nil
	}, errors.Join(err1, err2, err3)
}

// updateOp is the same in the memory of the first.
type updateOp struct{ addOp }

func (updateOp) Name() string   { return "test update" }
func (updateOp) Updates() []int { return []int{0} }

func add(a, b *ir.Tensor) *ir.Tensor { return ir.Apply1(addOp{}, nil, a, b) }

// addTo adds b to a where it lies.
func addTo(a, b *ir.Tensor) *ir.Tensor { return ir.Apply1(updateOp{}, nil, a, b) }

// number is a constant of one element.
func number(g *ir.Graph, v float32) *ir.Tensor { return g.Constant(tensor.Scalar(v)) }

// result builds a program, runs it on one replica, and returns the scalars that build returns.
func result(t *testing.T, build func(p *ir.Program, m *ir.Graph) []*ir.Tensor) []float32 {
	t.Helper()
	p := ir.New(1)
	outs := build(p, p.Main())
	var streams []*ir.Stream
	for i, o := range outs {
		s := p.DeviceToHost(fmt.Sprint(i), f32())
		p.Main().HostStore(s, o)
		streams = append(streams, s)
	}
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Run(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var values []float32
	for _, stream := range streams {
		v, err := tensor.Of[float32](got[stream])
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v[0])
	}
	return values
}

func want(t *testing.T, got []float32, want ...float32) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// increment is a graph that adds an input of its own to its input.
func increment(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{add(in[0], g.Input("value", f32()))}
}

// One graph with an extra input, called with 1 and then 2: x+3.
func TestCallTwice(t *testing.T) {
	want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
		x := number(m, 10)
		g := p.CreateGraph(increment, x)
		return m.Call(g, m.Call(g, x, number(m, 1))[0], number(m, 2))
	}), 13)
}

// A call site marked modified: 1 becomes 2; unmarked it stays 1.
func TestParentInputModified(t *testing.T) {
	for _, marked := range []bool{false, true} {
		after := float32(1)
		if marked {
			after = 2
		}
		want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
			x := p.Variable(tensor.Scalar(float32(1)))
			g := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				return []*ir.Tensor{addTo(in[0], g.Input("value", f32()))}
			}, x)
			before := add(x.Tensor, number(m, 0))
			info := m.CallWithInfo(g, nil, x.Tensor, number(m, 1))
			if marked {
				info.SetParentInputModified(x.Tensor)
			}
			return []*ir.Tensor{before, x.Tensor, info.Outputs()[0]}
		}), 1, after, 2)
	}
}

// What is marked shows through several calls; what one of them does not mark stays inside.
func TestModifiedThroughCalls(t *testing.T) {
	for _, marked := range []bool{false, true} {
		after := float32(5)
		if marked {
			after = 6
		}
		want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
			x := p.Variable(tensor.Scalar(float32(5)))
			inner := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				addTo(in[0], number(g, 1))
				return nil
			}, x)
			outer := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				info := g.CallWithInfo(inner, nil, in[0])
				if marked {
					info.SetParentInputModified(inner.Inputs()[0])
				}
				return nil
			}, x)
			m.CallWithInfo(outer, nil, x.Tensor).SetParentInputModified(x.Tensor)
			return []*ir.Tensor{x.Tensor}
		}), after)
	}
}

// Tensors that a call returns are not its inputs, nor one another: each can change alone.
func TestOutputsAreTheirOwn(t *testing.T) {
	want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
		x := add(number(m, 1), number(m, 0))
		g := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{in[0], in[0]} }, x)
		out := m.Call(g, x)
		addTo(out[0], number(m, 10))
		addTo(x, number(m, 100))
		return []*ir.Tensor{x, out[0], out[1]}
	}), 101, 11, 1)
}

// repeat: x = 1 and value = 1, twice: 3. The remaining inputs stay.
func TestRepeat(t *testing.T) {
	want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
		g := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{add(in[0], in[1])}
		}, f32(), f32())
		x, one := number(m, 1), number(m, 1)
		return append(m.Repeat(g, 2, x, one), x, one)
	}), 3, 1, 1)
}

// The outputs of a turn take the places of the next one's inputs all at once: 0, 1, 1, 2, 3, 5, 8.
func TestRepeatSwaps(t *testing.T) {
	want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
		g := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{in[1], add(in[0], in[1])}
		}, f32(), f32())
		swap := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{in[1], in[2], in[0]}
		}, f32(), f32(), f32())
		return append(m.Repeat(g, 5, number(m, 0), number(m, 1)),
			m.Repeat(swap, 4, number(m, 1), number(m, 2), number(m, 3))...)
	}), 5, 8, 2, 3, 1)
}

// What stays in a loop keeps from turn to turn what is changed in place, and the parent's tensor does not change unless
// that is said.
func TestRepeatInPlace(t *testing.T) {
	for _, marked := range []bool{false, true} {
		after := float32(0)
		if marked {
			after = 6
		}
		want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
			sum := p.Variable(tensor.Scalar(float32(0)))
			g := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				next := add(in[0], number(g, 1))
				addTo(in[1], next)
				return []*ir.Tensor{next}
			}, f32(), f32())
			info := m.RepeatWithInfo(g, 3, nil, number(m, 0), sum.Tensor)
			if marked {
				info.SetParentInputModified(g.Inputs()[1])
			}
			return append(info.Outputs(), sum.Tensor)
		}), 3, after)
	}
}

// Loops in loops, with calls in them, and what is outside stays alive as long as it is needed.
func TestNestedLoops(t *testing.T) {
	want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
		inner := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{add(in[0], in[1])}
		}, f32(), f32())
		outer := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			step := add(in[1], in[2]) // 3
			return []*ir.Tensor{g.Repeat(inner, 4, in[0], step)[0]}
		}, f32(), f32(), f32())
		a, b := add(number(m, 1), number(m, 0)), add(number(m, 2), number(m, 0))
		out := m.Repeat(outer, 5, number(m, 0), a, b)[0]
		return []*ir.Tensor{out, a, b}
	}), 60, 1, 2)
}

// TestIf takes the branch that the condition says, in turn.
func TestIf(t *testing.T) {
	p := ir.New(1)
	m := p.Main()
	in, out := p.HostToDevice("condition", ir.Spec{DType: tensor.Bool}), p.DeviceToHost("out", f32())
	then := p.CreateGraph(increment, f32())
	els := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return in }, f32())
	x := number(m, 5)
	m.HostStore(out, m.If(m.HostLoad(in), ir.Branch{Graph: then, In: []*ir.Tensor{x, number(m, 2)}},
		ir.Branch{Graph: els, In: []*ir.Tensor{x}})[0])
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, condition := range []bool{true, false, true} {
		got, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: tensor.Scalar(condition)})
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := tensor.Of[float32](got[out]); v[0] != 5 && !condition || v[0] != 7 && condition {
			t.Errorf("%v: %v", condition, v[0])
		}
	}
}

// Branches that move different numbers of tensors are an error, since nobody could say how many the host must give.
func TestIfMovesTheSame(t *testing.T) {
	p := ir.New(1)
	in := p.HostToDevice("in", f32())
	load := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{g.HostLoad(in)} })
	not := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{number(g, 1)} })
	p.Main().If(p.Main().Constant(tensor.Scalar(true)), ir.Branch{Graph: load}, ir.Branch{Graph: not})
	if _, err := ir.NewSession(p); err == nil ||
		!strings.Contains(err.Error(), `the branches move 1 and 0 tensors by the stream host to device "in"`) {
		t.Errorf("error %v", err)
	}
}

// Streams have a dimension of replicas, and before that one of transfers: every load and store of a run, those of loops
// as often as they turn.
func TestTransfers(t *testing.T) {
	p := ir.New(2)
	m := p.Main()
	in, out := p.HostToDevice("in", f32(2)), p.DeviceToHost("out", f32(2))
	g := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
		x := g.HostLoad(in)
		g.HostStore(out, add(x, x))
		return nil
	})
	m.InSequence(func() {
		m.Repeat(g, 2)
		m.HostStore(out, m.HostLoad(in))
	})
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if h := s.HostSpec(in); !h.Equal(f32(3, 2, 2)) {
		t.Errorf("the host's side of the stream is %v", h)
	}
	data := f32s(t, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 3, 2, 2)
	for range 2 {
		got, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: data})
		if err != nil {
			t.Fatal(err)
		}
		if expected := f32s(t, []float32{2, 4, 6, 8, 10, 12, 14, 16, 9, 10, 11, 12}, 3, 2,
			2); !got[out].Equal(expected) {
			t.Errorf("%v, want %v", got[out], expected)
		}
	}
}

// TestVariables: groups begin with values of their own; Read has the first of each group or all; what is written is
// used.
func TestVariables(t *testing.T) {
	for _, all := range []bool{false, true} {
		p := ir.New(4)
		in := p.HostToDevice("in", f32())
		options := []ir.VariableOption{ir.VariableName("w"),
			ir.VariableGroups(commgroup.Group{Type: commgroup.Consecutive, Size: 2})}
		if all {
			options = append(options, ir.AllReplicas())
		}
		w := p.Variable(f32s(t, []float32{10, 20}), options...)
		addTo(w.Tensor, p.Main().HostLoad(in))
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		expect := func(what string, firsts, everyone []float32) {
			t.Helper()
			values := firsts
			if all {
				values = everyone
			}
			if got, err := s.Read(w); err != nil || !got.Equal(f32s(t, values)) {
				t.Errorf("all %v, %s: %v, %v, want %v", all, what, got, err, values)
			}
		}
		run := func() {
			t.Helper()
			if _, err := s.Run(context.Background(),
				map[*ir.Stream]*tensor.Tensor{in: f32s(t, []float32{1, 2, 3, 4})}); err != nil {
				t.Fatal(err)
			}
		}
		expect("at first", []float32{10, 20}, []float32{10, 10, 20, 20})
		run() // detached: it enters and exits
		expect("after a run", []float32{11, 23}, []float32{11, 12, 23, 24})
		if err := s.Within(func() error {
			run()
			expect("within", []float32{12, 26}, []float32{12, 14, 26, 28})
			if err := s.Within(func() error { run(); return nil }); err != nil { // nested
				return err
			}
			expect("within, after nesting", []float32{13, 29}, []float32{13, 16, 29, 32})
			if err := s.Write(w, f32s(t, []float32{100, 200})); err != nil {
				return err
			}
			run()
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		expect("after", []float32{101, 203}, []float32{101, 102, 203, 204})
		if err := s.Write(w, f32s(t, []float32{0, 0})); err != nil {
			t.Fatal(err)
		}
		run()
		expect("written outside", []float32{1, 3}, []float32{1, 2, 3, 4})
		if all { // what Read returns can be written
			if err := s.Write(w, f32s(t, []float32{5, 6, 7, 8})); err != nil {
				t.Fatal(err)
			}
			run()
			expect("all written", nil, []float32{6, 8, 10, 12})
		}
	}
}

// 8 replicas, (3,3): group size 1 has (8,3,3) on the host; size 2 has (4,3,3).
func TestVariableShapes(t *testing.T) {
	for size, groups := range map[int]int{1: 8, 2: 4, 8: 0} {
		shape := []int{3, 3}
		if groups > 0 {
			shape = []int{groups, 3, 3}
		}
		data, err := tensor.New(tensor.F32, shape...)
		if err != nil {
			t.Fatal(err)
		}
		p := ir.New(8)
		v := p.Variable(data, ir.VariableGroups(commgroup.Group{Type: commgroup.Consecutive, Size: size}))
		if p.Err() != nil || !v.Spec().Equal(f32(3, 3)) {
			t.Errorf("groups of %d: %v, %v", size, v.Spec(), p.Err())
		}
	}
}

// TestVariableGroupsByLists: a value for each group, whatever the sizes of the groups.
func TestVariableGroupsByLists(t *testing.T) {
	g, err := commgroup.Lists([][]int{{0, 3}, {1, 2, 4}})
	if err != nil {
		t.Fatal(err)
	}
	p := ir.New(5)
	in := p.HostToDevice("in", f32())
	w := p.Variable(f32s(t, []float32{10, 20}), ir.VariableGroups(g))
	each := p.Variable(f32s(t, []float32{10, 20}), ir.VariableGroups(g), ir.AllReplicas())
	addTo(each.Tensor, p.Main().HostLoad(in))
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Run(t.Context(), map[*ir.Stream]*tensor.Tensor{in: f32s(t, []float32{0, 1, 2, 3, 4})}); err != nil {
		t.Fatal(err)
	}
	for v, want := range map[*ir.Variable][]float32{w: {10, 20}, each: {10, 21, 22, 13, 24}} {
		if got, err := s.Read(v); err != nil || !got.Equal(f32s(t, want)) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
}

// tracedOp notes when it runs.
type tracedOp struct {
	name string
	list *[]string
}

func (o tracedOp) Name() string                          { return o.name }
func (o tracedOp) Infer(in []ir.Spec) ([]ir.Spec, error) { return []ir.Spec{f32(100)}, nil }
func (o tracedOp) Bind(*ir.Memory) (func() error, error) {
	return func() error { *o.list = append(*o.list, o.name); return nil }, nil
}

// Within InSequence operations run as written, blocks out of sequence as a whole; outside the scheduler may choose.
func TestInSequence(t *testing.T) {
	var list []string
	p := ir.New(1)
	m := p.Main()
	op := func(name string, in ...*ir.Tensor) *ir.Tensor { return ir.Apply1(tracedOp{name, &list}, m, in...) }
	m.InSequence(func() {
		op("a")
		m.OutOfSequence(func() {
			b := op("b1")
			c := op("b2")
			op("b3", b, c)
			m.InSequence(func() {
				op("b4")
				op("b5")
			})
		})
		m.InSequence(func() {})
		op("c")
		m.InSequence(func() { op("d"); op("e") })
		op("f")
	})
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(list, " ")
	middle := list[1:6]
	if !strings.HasPrefix(text, "a b") || !strings.HasSuffix(text, " c d e f") ||
		slices.Index(middle, "b4") > slices.Index(middle, "b5") ||
		slices.Index(middle, "b3") < slices.Index(middle, "b1") {
		t.Errorf("order %s", text)
	}
}

// Outside, what is needed at once is made at once: eight large tensors are summed with no more than three alive, though
// they are built one after the other before the first sum.
func TestSchedulerKeepsLittleAlive(t *testing.T) {
	var list []string
	p := ir.New(1)
	m := p.Main()
	var made []*ir.Tensor
	for i := range 8 {
		made = append(made, ir.Apply1(tracedOp{fmt.Sprint("make", i), &list}, m))
	}
	sum := made[0]
	for i, x := range made[1:] {
		sum = ir.Apply1(tracedOp{fmt.Sprint("sum", i), &list}, m, sum, x)
	}
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	alive, most := 0, 0
	for _, what := range list {
		alive++
		most = max(most, alive)
		if strings.HasPrefix(what, "sum") {
			alive -= 2
		}
	}
	if most > 3 {
		t.Errorf("%d are alive together: %v", most, list)
	}
}

// failOp fails, or panics, on replica 1.
type failOp struct{ panics bool }

func (failOp) Name() string                       { return "test fail" }
func (failOp) Infer([]ir.Spec) ([]ir.Spec, error) { return nil, nil }
func (o failOp) Bind(m *ir.Memory) (func() error, error) {
	return func() error {
		switch {
		case m.Replica != 1: // waits to be told
			<-m.Context().Done()
			return context.Cause(m.Context())
		case o.panics:
			panic("over the edge")
		}
		return errors.New("no more")
	}, nil
}

// The error of one replica ends the others, and says where; the session cannot run again.
func TestReplicaFails(t *testing.T) {
	for _, panics := range []bool{false, true} {
		p := ir.New(3)
		g := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
			ir.Apply(failOp{panics}, g)
			return nil
		})
		p.Main().Repeat(g, 2)
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Run(context.Background(), nil)
		what := "no more"
		if panics {
			what = "panic: over the edge"
		}
		var e *ir.RunError
		if !errors.As(err, &e) || e.Replica != 1 || e.Op != "test fail" ||
			!matches(err.Error(), "ir: replica 1: test fail built at program_test.go:* in graph TestReplicaFails: "+
				what) {
			t.Errorf("error %v", err)
		}
		if _, again := s.Run(context.Background(), nil); again == nil || !errors.Is(again, err) {
			t.Errorf("after that: %v", again)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What replicas have after a failure is not downloaded.
func TestFailureKeepsVariables(t *testing.T) {
	p := ir.New(2)
	w := p.Variable(tensor.Scalar(float32(5)))
	p.Main().InSequence(func() {
		addTo(w.Tensor, number(p.Main(), 1))
		ir.Apply(failOp{}, p.Main())
	})
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Run(context.Background(), nil); err == nil {
		t.Fatal("no failure")
	}
	if got, err := s.Read(w); err != nil || !got.Equal(tensor.Scalar(float32(5))) {
		t.Errorf("%v, %v", got, err)
	}
}

// A context that is done ends a run.
func TestRunCancelled(t *testing.T) {
	p := ir.New(2)
	ir.Apply(failOp{}, p.Main())
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(reason)
	if _, err := s.Run(ctx, nil); !errors.Is(err, reason) {
		t.Errorf("error %v", err)
	}
}

// A running session allocates nothing.
func TestRunAllocatesNothing(t *testing.T) {
	p := ir.New(2)
	m := p.Main()
	in, out := p.HostToDevice("in", f32(50)), p.DeviceToHost("out", f32(50))
	w := p.Variable(f32s(t, make([]float32, 50)))
	g := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{add(in[0], in[1])}
	}, f32(50), f32(50))
	x := m.Repeat(g, 3, m.HostLoad(in), w.Tensor)[0]
	addTo(w.Tensor, x)
	m.HostStore(out, m.Call(g, x, w.Tensor)[0])
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Enter(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	ins := map[*ir.Stream]*tensor.Tensor{in: f32s(t, make([]float32, 100), 2, 50)}
	outs := map[*ir.Stream]*tensor.Tensor{out: f32s(t, make([]float32, 100), 2, 50)}
	run := func() {
		if err := s.RunTo(ctx, outs, ins); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n > 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// The gradient of sums through calls and loops: every turn counts.
func TestAutodiffThroughCallsAndLoops(t *testing.T) {
	want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
		// f(x, y) = g(x)+...: five turns of x = (x+y)+(x+y), then x+y.
		turn := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			s := add(in[0], in[1])
			return []*ir.Tensor{add(s, s)}
		}, f32(), f32())
		f := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			x := g.Repeat(turn, 3, in[0], in[1])[0]
			return []*ir.Tensor{add(g.Call(turn, x, in[1])[0], in[1])}
		}, f32(), f32())
		fwd := m.CallWithInfo(f, nil, number(m, 1), number(m, 2))
		info := ir.Autodiff(f)
		by := info.By(fwd)
		by[info.Grads[0]] = number(m, 1)
		return append(fwd.Outputs(), m.CallWithInfo(info.Graph, by).Outputs()...)
	}), 78, 16, 31) // 16x + (2+4+8+16)y + y
}
