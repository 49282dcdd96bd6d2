package ir_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// noContext is what a caller gives who forgot it.
var noContext context.Context

// identity is a graph's function that returns what it is given.
func identity(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return in }

// square is a graph's function whose gradient needs its input.
func square(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Mul(in[0], in[0])} }

// f32s is a tensor of float32.
func f32s(t testing.TB, values []float32, shape ...int) *tensor.Tensor {
	t.Helper()
	out, err := tensor.FromSlice(values, shape...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBuildErrors: the first error sticks, names the operation, the graph and this file, and comes out when a session
// is made; nothing panics on the way.
func TestBuildErrors(t *testing.T) {
	other := ir.New(1)
	otherGraph := other.CreateGraph(identity, f32(2))
	otherStream := other.HostToDevice("x", f32(2))
	for _, c := range []struct {
		name  string
		build func(p *ir.Program, m *ir.Graph)
		want  string // in the error
	}{
		{"no replicas", func(p *ir.Program, m *ir.Graph) { ir.New(0) }, ""},
		{"input nil", func(p *ir.Program, m *ir.Graph) { p.CreateGraph(identity, nil) }, "create graph at errors_test.go:* in graph identity: input 0 is nil, want a tensor or a spec"},
		{"input of no type", func(p *ir.Program, m *ir.Graph) { p.CreateGraph(identity, ir.Spec{}) }, "in graph identity: input 0: element type"},
		{"input of negative shape", func(p *ir.Program, m *ir.Graph) { p.CreateGraph(identity, f32(2, -1)) }, "in graph identity: input 0: "},
		{"no function", func(p *ir.Program, m *ir.Graph) { p.CreateGraph(nil) }, "no function to build it"},
		{"output nil", func(p *ir.Program, m *ir.Graph) {
			p.CreateGraph(func(*ir.Graph, []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{nil} })
		}, "output 0 is nil"},
		{"output of another graph", func(p *ir.Program, m *ir.Graph) {
			x := m.Constant(tensor.Scalar(float32(1)))
			p.CreateGraph(func(*ir.Graph, []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{x} })
		}, "output 0, %0, is a tensor of graph main"},
		{"input of the main graph", func(p *ir.Program, m *ir.Graph) { m.Input("x", f32(1)) }, "input at errors_test.go:* in graph main: x: the main graph has no inputs"},
		{"input of a complete graph", func(p *ir.Program, m *ir.Graph) { p.CreateGraph(identity).Input("late", f32(1)) }, "late: the graph is complete"},
		{"bad input spec", func(p *ir.Program, m *ir.Graph) {
			p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{g.Input("w", f32(-3))} })
		}, "w: "},
		{"op in a complete graph", func(p *ir.Program, m *ir.Graph) {
			p.CreateGraph(identity).Constant(tensor.Scalar(int8(1)))
		}, "constant at errors_test.go:* in graph identity: the graph is complete"},
		{"constant without a value", func(p *ir.Program, m *ir.Graph) { m.Constant(nil) }, "constant at errors_test.go:* in graph main: no value"},
		{"call of no graph", func(p *ir.Program, m *ir.Graph) { m.Call(nil) }, "call at errors_test.go:* in graph main: no graph"},
		{"call of another program's", func(p *ir.Program, m *ir.Graph) { m.Call(otherGraph) }, "graph identity is of another program"},
		{"call of main", func(p *ir.Program, m *ir.Graph) { m.Call(m) }, "the main graph cannot be called"},
		{"call of itself", func(p *ir.Program, m *ir.Graph) {
			p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return g.Call(g, in...) }, f32(1))
		}, "is not complete"},
		{"too many inputs", func(p *ir.Program, m *ir.Graph) {
			x := m.Constant(f32s(t, []float32{1, 2}))
			m.Call(p.CreateGraph(identity, f32(2)), x, x)
		}, "call at errors_test.go:* in graph main of float32 (2,), float32 (2,): 2 inputs for graph identity, which " +
			"has 1"},
		{"too few inputs", func(p *ir.Program, m *ir.Graph) {
			m.Call(p.CreateGraph(identity, f32(2)))
		}, "0 inputs for graph identity, which has 1: input 0, %0, is missing: " +
			"give a tensor for each of Graph.Inputs, in their order, or a map with that input in it, as CallWithInfo " +
			"takes one"},
		{"a gradient called with nothing", func(p *ir.Program, m *ir.Graph) {
			m.Call(ir.Autodiff(p.CreateGraph(square, f32(2))).Graph)
		}, "call at errors_test.go:* in graph main: 0 inputs for graph square_gradient, which has 2: input 0, " +
			"%2.gradient, is missing: " +
			"it is the gradient of output 0 of graph square, %1; give CallWithInfo a map with GradInfo.Grads[0] in it"},
		{"a gradient called without the gradient", func(p *ir.Program, m *ir.Graph) {
			g := p.CreateGraph(square, f32(2))
			info := ir.Autodiff(g)
			m.CallWithInfo(info.Graph, info.By(m.CallWithInfo(g, nil, m.Constant(f32s(t, []float32{1, 2})))))
		}, "1 input for graph square_gradient, which has 2: input 0, %2.gradient, is missing: it is the gradient of " +
			"output 0 of graph square"},
		{"a gradient called as its errors say", func(p *ir.Program, m *ir.Graph) {
			g, x := p.CreateGraph(square, f32(2)), m.Constant(f32s(t, []float32{1, 2}))
			info := ir.Autodiff(g)
			by := info.By(m.CallWithInfo(g, nil, x))
			by[info.Grads[0]] = x
			m.CallWithInfo(info.Graph, by)
		}, ""},
		{"a gradient called with the gradient only", func(p *ir.Program, m *ir.Graph) {
			m.Call(ir.Autodiff(p.CreateGraph(square, f32(2))).Graph, m.Constant(f32s(t, []float32{1, 2})))
		}, "1 input for graph square_gradient, which has 2: input 1, %3, is missing: it stands for %0 of graph square; " +
			"GradInfo.By makes the map for CallWithInfo, of what CallWithInfo of graph square has returned"},
		{"input nil at a call", func(p *ir.Program, m *ir.Graph) { m.Call(p.CreateGraph(identity, f32(2)), nil) }, "input 0, %0, of graph identity is nil"},
		{"wrong shape", func(p *ir.Program, m *ir.Graph) {
			m.Call(p.CreateGraph(identity, f32(2)), m.Constant(f32s(t, []float32{1})))
		}, "input 0, %0, of graph identity is float32 (1,), want float32 (2,)"},
		{"wrong type", func(p *ir.Program, m *ir.Graph) {
			m.Call(p.CreateGraph(identity, f32()), m.Constant(tensor.Scalar(int32(1))))
		}, "input 0, %0, of graph identity is int32 (), want float32 ()"},
		{"given twice", func(p *ir.Program, m *ir.Graph) {
			g, x := p.CreateGraph(identity, f32()), m.Constant(tensor.Scalar(float32(1)))
			m.CallWithInfo(g, map[*ir.Tensor]*ir.Tensor{g.Inputs()[0]: x}, x)
		}, "input 0, %0, of graph identity is given twice"},
		{"nil by map", func(p *ir.Program, m *ir.Graph) {
			g := p.CreateGraph(identity, f32())
			m.CallWithInfo(g, map[*ir.Tensor]*ir.Tensor{g.Inputs()[0]: nil})
		}, "input 0, %0, of graph identity is nil"},
		{"unknown input", func(p *ir.Program, m *ir.Graph) {
			g, x := p.CreateGraph(identity, f32()), m.Constant(tensor.Scalar(float32(1)))
			m.CallWithInfo(g, map[*ir.Tensor]*ir.Tensor{x: x}, x)
		}, "%1 is no input of graph identity"},
		{"tensor of another graph", func(p *ir.Program, m *ir.Graph) {
			g := p.CreateGraph(identity, f32())
			m.Call(g, g.Inputs()[0])
		}, "is a tensor of graph identity; give it to graph main as an input"},
		{"tensor of another program", func(p *ir.Program, m *ir.Graph) {
			m.Call(p.CreateGraph(identity, f32()), other.Main().Constant(tensor.Scalar(float32(1))))
		}, "is of another program"},
		{"repeat 0", func(p *ir.Program, m *ir.Graph) {
			m.Repeat(p.CreateGraph(identity, f32()), 0, m.Constant(tensor.Scalar(float32(1))))
		}, "repeat at errors_test.go:* in graph main of float32 (): a count of 0, want 1 or more"},
		{"more outputs than inputs", func(p *ir.Program, m *ir.Graph) {
			g := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				return []*ir.Tensor{in[0], in[0]}
			}, f32())
			m.Repeat(g, 2, m.Constant(tensor.Scalar(float32(1))))
		}, "has 1 inputs and 2 outputs, which are to be the next turn's first inputs"},
		{"outputs unlike inputs", func(p *ir.Program, m *ir.Graph) {
			g := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return in[1:] }, f32(), f32(2))
			m.Repeat(g, 2, m.Constant(tensor.Scalar(float32(1))), m.Constant(f32s(t, []float32{1, 2})))
		}, "is float32 (2,), and input 0, which it is to be in the next turn, float32 ()"},
		{"if without a condition", func(p *ir.Program, m *ir.Graph) { m.If(nil, ir.Branch{}, ir.Branch{}) }, "no condition"},
		{"if without a branch", func(p *ir.Program, m *ir.Graph) {
			m.If(m.Constant(tensor.Scalar(true)), ir.Branch{Graph: p.CreateGraph(identity)}, ir.Branch{})
		}, "branch 1: no graph"},
		{"if on a number", func(p *ir.Program, m *ir.Graph) {
			g := p.CreateGraph(identity)
			m.If(m.Constant(tensor.Scalar(int32(1))), ir.Branch{Graph: g}, ir.Branch{Graph: g})
		}, "if at errors_test.go:* in graph main of int32 (): the condition must be a scalar of bool"},
		{"if with other inputs", func(p *ir.Program, m *ir.Graph) {
			g := p.CreateGraph(identity, f32())
			m.If(m.Constant(tensor.Scalar(true)), ir.Branch{Graph: g}, ir.Branch{Graph: g})
		}, "branch 0: 0 inputs for graph identity"},
		{"if with unlike outputs", func(p *ir.Program, m *ir.Graph) {
			x := m.Constant(tensor.Scalar(float32(1)))
			m.If(m.Constant(tensor.Scalar(true)), ir.Branch{Graph: p.CreateGraph(identity, f32()), In: []*ir.Tensor{x}},
				ir.Branch{Graph: p.CreateGraph(identity)})
		}, "graph identity returns [float32 ()], and graph identity_2 []"},
		{"stream of no type", func(p *ir.Program, m *ir.Graph) { p.HostToDevice("x", ir.Spec{}) }, `stream at errors_test.go:* in graph main: "x": element type`},
		{"no stream", func(p *ir.Program, m *ir.Graph) { m.HostLoad(nil) }, "host load at errors_test.go:* in graph main: no stream"},
		{"stream of another program", func(p *ir.Program, m *ir.Graph) { m.HostLoad(otherStream) }, `stream "x" is of another program`},
		{"load from a stream to the host", func(p *ir.Program, m *ir.Graph) { m.HostLoad(p.DeviceToHost("x", f32())) }, `stream "x" leads to the host`},
		{"store to a stream to the replicas", func(p *ir.Program, m *ir.Graph) {
			m.HostStore(p.HostToDevice("x", f32()), m.Constant(tensor.Scalar(float32(1))))
		}, `stream "x" leads to the replicas`},
		{"store of another spec", func(p *ir.Program, m *ir.Graph) {
			m.HostStore(p.DeviceToHost("x", f32(2)), m.Constant(tensor.Scalar(float32(1))))
		}, `host store at errors_test.go:* in graph main of float32 (): stream "x" is of float32 (2,)`},
		{"store of what is made of nothing", func(p *ir.Program, m *ir.Graph) {
			m.HostStore(p.DeviceToHost("x", f32(2)), ops.Add(nil, nil))
		}, "host store at errors_test.go:* in graph main: input 0 is what an operation on no tensor has returned"},
		{"call on what is made of nothing", func(p *ir.Program, m *ir.Graph) {
			m.Call(p.CreateGraph(identity, f32()), ops.Concat(0))
		}, "call at errors_test.go:* in graph main: input 0 is what an operation on no tensor has returned"},
		{"graph of what is made of nothing", func(p *ir.Program, m *ir.Graph) {
			p.CreateGraph(func(*ir.Graph, []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Relu(nil)} })
		}, "input 0 is what an operation on no tensor has returned"},
		{"store of nil", func(p *ir.Program, m *ir.Graph) { m.HostStore(p.DeviceToHost("x", f32(2)), nil) }, "input 0 is nil"},
		{"variable without data", func(p *ir.Program, m *ir.Graph) { p.Variable(nil, ir.VariableName("w")) }, `variable at errors_test.go:* in graph main: "w": no data`},
		{"variable groups", func(p *ir.Program, m *ir.Graph) {
			p.Variable(tensor.Scalar(int8(1)), ir.VariableGroups(commgroup.Group{Type: commgroup.Consecutive, Size: 3}))
		}, "variable at errors_test.go:* in graph main: commgroup: 2 replicas"},
		{"stream of no type or name", func(p *ir.Program, m *ir.Graph) { p.HostToDevice("", ir.Spec{}) }, "stream at errors_test.go:* in graph main: element type"},
		{"variable without the groups' dimension", func(p *ir.Program, m *ir.Graph) {
			p.Variable(f32s(t, []float32{1, 2, 3}),
				ir.VariableGroups(commgroup.Group{Type: commgroup.Consecutive, Size: 1}))
		}, "data of shape (3,) for 2 groups, which must be its first dimension"},
		{"modified input that is none", func(p *ir.Program, m *ir.Graph) {
			x := m.Constant(tensor.Scalar(float32(1)))
			m.CallWithInfo(p.CreateGraph(identity, f32()), nil,
				x).SetParentInputModified(m.Constant(tensor.Scalar(int8(1))))
		}, "is no input of this call of graph identity"},
		{"two inputs of one tensor modified", func(p *ir.Program, m *ir.Graph) {
			x := p.Variable(tensor.Scalar(float32(1))).Tensor
			g := p.CreateGraph(identity, f32(), f32())
			info := m.CallWithInfo(g, nil, x, x)
			info.SetParentInputModified(g.Inputs()[0])
			info.SetParentInputModified(g.Inputs()[1])
		}, "are one tensor of the parent, which only one of them can change"},
		{"a sequence of nothing", func(p *ir.Program, m *ir.Graph) { m.InSequence(nil) }, "sequence at errors_test.go:* in graph main: no function to build it"},
		{"too many bytes", func(p *ir.Program, m *ir.Graph) { p.HostToDevice("x", f32(math.MaxInt/4)) }, "take more than"},
		{"an op of too many bytes", func(p *ir.Program, m *ir.Graph) {
			x := m.HostLoad(p.HostToDevice("x", f32(1<<20, 1)))
			ops.MatMul(x, ops.Reshape(x, 1, 1<<20))
		}, "matmul at errors_test.go:* in graph main of \"x\" float32 (1048576, 1), float32 (1, 1048576): output 0: "},
		{"modified constant", func(p *ir.Program, m *ir.Graph) {
			x := m.Constant(tensor.Scalar(float32(1)))
			m.CallWithInfo(p.CreateGraph(identity, f32()), nil, x).SetParentInputModified(x)
		}, "is a constant and cannot be changed in place"},
		{"modified input that is carried", func(p *ir.Program, m *ir.Graph) {
			x := m.Constant(tensor.Scalar(float32(1)))
			m.RepeatWithInfo(p.CreateGraph(identity, f32()), 2, nil, x).SetParentInputModified(x)
		}, "is carried from turn to turn"},
		{"gradient of a graph that is not complete", func(p *ir.Program, m *ir.Graph) { ir.Autodiff(m) }, "autodiff at errors_test.go:* in graph main: the graph is not complete"},
	} {
		p := ir.New(2)
		c.build(p, p.Main())
		_, err := ir.NewSession(p)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err == nil || !matches(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
			continue
		}
		var b *ir.BuildError
		if !errors.As(err, &b) || p.Err() != err {
			t.Errorf("%s: %T, and the program has %v", c.name, err, p.Err())
		}
		p.Main().Constant(nil)
		if p.Err() != err {
			t.Errorf("%s: the error does not stick: %v", c.name, p.Err())
		}
	}
}

// Errors about a variable without a name say where it was made.
func TestVariableWithoutName(t *testing.T) {
	p := ir.New(1)
	v, named := p.Variable(tensor.Scalar(float32(1))), p.Variable(tensor.Scalar(float32(1)), ir.VariableName("w"))
	other := ir.New(1).Variable(tensor.Scalar(float32(1)))
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wrong := tensor.Scalar(int8(1))
	for _, c := range []struct {
		err  error
		want string
	}{
		{s.Write(v, nil), "ir: variable %0 (made at errors_test.go:* without ir.VariableName) is given no value, want float32 ()"},
		{s.Write(v, wrong), "ir: variable %0 (made at errors_test.go:* without ir.VariableName) is given int8 (), want float32 ()"},
		{s.Write(named, wrong), `ir: variable "w" is given int8 (), want float32 ()`},
		{s.Write(other, wrong), "ir: variable %0 (made at errors_test.go:* without ir.VariableName) is of another program"},
		{s.Write(&ir.Variable{}, wrong), "ir: a variable that no program has made is of another program"},
	} {
		if c.err == nil || !matches(c.err.Error(), c.want) {
			t.Errorf("error %v, want %q", c.err, c.want)
		}
	}
}

// matches reports whether a text has a part in it, of which * stands for a number.
func matches(text, part string) bool {
	before, after, star := strings.Cut(part, "*")
	if !star {
		return strings.Contains(text, part)
	}
	_, rest, found := strings.Cut(text, before)
	return found && strings.HasPrefix(strings.TrimLeft(rest, "0123456789"), after) &&
		rest != strings.TrimLeft(rest, "0123456789")
}

// An If that is refused returns as many tensors as it would have.
func TestBrokenIf(t *testing.T) {
	p := ir.New(1)
	g := p.CreateGraph(identity, f32(), f32())
	x := number(p.Main(), 1)
	for _, condition := range []*ir.Tensor{nil, x, ops.Add(x, nil)} {
		b := ir.Branch{Graph: g, In: []*ir.Tensor{x, x}}
		if out := p.Main().If(condition, b, b); len(out) != 2 {
			t.Errorf("%d outputs", len(out))
		}
	}
}

// Nothing can be said of a call once there is a session.
func TestModifiedAfterSession(t *testing.T) {
	p := ir.New(1)
	x := p.Variable(tensor.Scalar(float32(1))).Tensor
	info := p.Main().CallWithInfo(p.CreateGraph(identity, f32()), nil, x)
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info.SetParentInputModified(x); p.Err() == nil ||
		!strings.Contains(p.Err().Error(), "a session of the program exists") {
		t.Errorf("error %v", p.Err())
	}
}

// What depends on an error stands for it, and adds no other.
func TestBrokenTensors(t *testing.T) {
	p := ir.New(1)
	m := p.Main()
	bad := m.Constant(nil)
	err := p.Err()
	g := p.CreateGraph(identity, bad)
	for _, x := range []*ir.Tensor{bad, m.Call(g, bad)[0], m.Repeat(g, 3, bad)[0], g.Outputs()[0],
		m.If(bad, ir.Branch{Graph: g, In: []*ir.Tensor{bad}}, ir.Branch{Graph: g, In: []*ir.Tensor{bad}})[0]} {
		if x == nil || x.Graph() == nil || x.Named("x") != x || x.DType().Valid() || len(x.Spec().Shape) < 8 ||
			x.String() == "" {
			t.Errorf("a broken tensor is %v", x)
		}
	}
	info := m.CallWithInfo(g, nil, bad)
	info.SetParentInputModified(bad)
	if _, err := info.GraphToParent(g.Inputs()[0]); err == nil {
		t.Error("a call that is none has a parent's tensor")
	}
	m.HostStore(p.DeviceToHost("out", f32(1)), bad)
	if p.Err() != err {
		t.Errorf("another error sticks: %v", p.Err())
	}
}

// Arguments of a call's information that are out of range or unknown are errors.
func TestCallInfo(t *testing.T) {
	p := ir.New(1)
	m := p.Main()
	g := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{in[1], in[0]}
	}, f32(), f32(2))
	x, y := m.Constant(tensor.Scalar(float32(1))), m.Constant(f32s(t, []float32{2, 3}))
	info := m.CallWithInfo(g, map[*ir.Tensor]*ir.Tensor{g.Inputs()[1]: y}, x)
	if info.CalledGraph() != g || len(info.Inputs()) != 2 || info.Inputs()[1] != y || len(info.Outputs()) != 2 {
		t.Errorf("graph %v, inputs %v, outputs %v", info.CalledGraph().Name(), info.Inputs(), info.Outputs())
	}
	for i, want := range []*ir.Tensor{x, y} {
		if in, err := info.ParentInput(i); in != want || err != nil {
			t.Errorf("input %d is %v, %v", i, in, err)
		}
		if out, err := info.ParentOutput(i); out != info.Outputs()[i] || err != nil {
			t.Errorf("output %d is %v, %v", i, out, err)
		}
		if own, err := info.ParentToGraph(want); own != g.Inputs()[i] || err != nil {
			t.Errorf("the graph's tensor of input %d is %v, %v", i, own, err)
		}
		if parent, err := info.GraphToParent(g.Inputs()[i]); parent != want || err != nil {
			t.Errorf("the parent's tensor of input %d is %v, %v", i, parent, err)
		}
		if own, err := info.ParentToGraph(info.Outputs()[i]); own != g.Outputs()[i] || err != nil {
			t.Errorf("the graph's tensor of output %d is %v, %v", i, own, err)
		}
	}
	stranger := m.Constant(tensor.Scalar(int8(1)))
	for what, f := range map[string]func() (*ir.Tensor, error){
		"input 2 of a call of graph":  func() (*ir.Tensor, error) { return info.ParentInput(2) },
		"input -1 of a call":          func() (*ir.Tensor, error) { return info.ParentInput(-1) },
		"output 2 of a call of graph": func() (*ir.Tensor, error) { return info.ParentOutput(2) },
		"is neither input nor output of graph": func() (*ir.Tensor, error) {
			return info.GraphToParent(stranger)
		},
		"is neither input nor output of this call of ": func() (*ir.Tensor, error) {
			return info.ParentToGraph(stranger)
		},
	} {
		if got, err := f(); err == nil || !strings.Contains(err.Error(), what) || got != nil {
			t.Errorf("%v, error %v, want %q in it", got, err, what)
		}
	}
	if p.Err() != nil {
		t.Error(p.Err())
	}
}

// TestSessionErrors: what a session refuses, each with the stream or variable in it.
func TestSessionErrors(t *testing.T) {
	p := ir.New(2)
	in, out := p.HostToDevice("in", f32(3)), p.DeviceToHost("out", f32(3))
	unused := p.HostToDevice("unused", f32(3))
	w := p.Variable(f32s(t, []float32{1, 2, 3}), ir.VariableName("w"))
	p.Main().HostStore(out, p.Main().HostLoad(in))
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	other := ir.New(1)
	foreign := other.HostToDevice("foreign", f32(3))
	foreignVariable := other.Variable(f32s(t, []float32{1, 2, 3}), ir.VariableName("v"))
	right := f32s(t, make([]float32, 6), 2, 3)
	ctx := context.Background()
	type streams = map[*ir.Stream]*tensor.Tensor
	for _, c := range []struct {
		in   streams
		want string
	}{
		{streams{}, `host to device "in" is given no tensor, want float32 (2, 3)`},
		{streams{in: nil}, `host to device "in" is given no tensor`},
		{streams{in: f32s(t, make([]float32, 3))}, `host to device "in" is given float32 (3,), want float32 (2, 3)`},
		{streams{in: f32s(t, make([]float32, 6), 3, 2)}, `host to device "in" is given float32 (3, 2), want`},
		{streams{in: right, unused: right}, `host to device "unused" is given a tensor, and the program does not use it`},
		{streams{in: right, foreign: right}, `host to device "foreign" is of another program`},
		{streams{in: right, out: right}, `device to host "out" is given a tensor for the other direction`},
		{streams{in: right, nil: right}, `no stream`},
	} {
		if _, err := s.Run(ctx, c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q in it", c.in, err, c.want)
		}
	}
	if _, err := s.Run(noContext, streams{in: right}); err == nil || !strings.Contains(err.Error(), "nil context") {
		t.Errorf("nil context: %v", err)
	}
	for what, err := range map[string]error{
		`variable "w" is given no value, want float32 (3,)`: s.Write(w, nil),
		`variable "w" is given float32 (2,), want`:          s.Write(w, f32s(t, []float32{1, 2})),
		`variable "w" is given int32 (), want`:              s.Write(w, tensor.Scalar(int32(1))),
		`variable "v" is of another program`:                s.Write(foreignVariable, right),
		"no variable":                                       s.Write(nil, right),
		"an exit from a session without an enter":           s.Exit(),
		"a session exists":                                  p.SetReplicas(3),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %q in it", err, what)
		}
	}
	if got, err := s.Run(ctx, streams{in: right}); err != nil || !got[out].Equal(right) { // it is none the worse for it
		t.Errorf("%v, %v", got, err)
	}
	if p.Main().Constant(tensor.Scalar(int8(1))); p.Err() == nil ||
		!strings.Contains(p.Err().Error(), "a session of the program exists") {
		t.Errorf("after the session: %v", p.Err())
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	for what, f := range map[string]func() error{
		"run":   func() error { _, err := s.Run(ctx, streams{in: right}); return err },
		"enter": s.Enter,
		"write": func() error { return s.Write(w, f32s(t, []float32{1, 2, 3})) },
		"read":  func() error { _, err := s.Read(w); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s of a closed session: %v", what, err)
		}
	}
	if _, err := ir.NewSession(nil); err == nil {
		t.Error("a session of no program")
	}
	for _, n := range []int{math.MinInt, 0, 1<<13 + 1, 1 << 20, math.MaxInt} {
		const want = "want 1 to 8192"
		if err := ir.New(1).SetReplicas(n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("set to %d replicas: %v", n, err)
		}
		if _, err := ir.NewSession(ir.New(n)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a program of %d replicas: %v", n, err)
		}
	}
}
