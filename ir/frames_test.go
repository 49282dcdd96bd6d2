package ir_test

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// thisLine is the line from which it is called.
func thisLine() int {
	_, _, line, _ := runtime.Caller(1)
	return line
}

// dense is a layer as a package of the user's has it; at is the line that adds its operation.
func dense(x, w *ir.Tensor, at *int) *ir.Tensor {
	*at = thisLine() + 1
	return ops.MatMul(x, w)
}

// TestBuildErrorFrames has an error in a layer that a model uses in a graph that a program builds.
func TestBuildErrorFrames(t *testing.T) {
	p := ir.New(1)
	f32 := func(shape ...int) ir.Spec { return ir.Spec{DType: tensor.F32, Shape: shape} }
	w := p.Variable(zeros(f32(4, 5)), ir.VariableName("encoder.weight"))
	var layer, model, program int
	build := func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		g.Named("encoder")
		model = thisLine() + 1
		return []*ir.Tensor{dense(g.Input("tokens", f32(2, 3)), in[0], &layer)}
	}
	program = thisLine() + 1
	p.CreateGraph(build, w.Tensor)

	var e *ir.BuildError
	if !errors.As(p.Err(), &e) {
		t.Fatalf("%v, want an *ir.BuildError", p.Err())
	}
	var lines []int
	for _, at := range e.Frames {
		if !strings.HasSuffix(at.File, "frames_test.go") {
			t.Errorf("a frame in %v, want none but the program's", at.File)
		}
		lines = append(lines, at.Line)
	}
	if want := []int{layer, model, program}; !slices.Equal(lines, want) {
		t.Errorf("frames in the lines %v, want %v", lines, want)
	}
	if e.Position != e.Frames[0] {
		t.Errorf("the position is %v, want the first frame, %v", e.Position, e.Frames[0])
	}
	for _, want := range []string{`in graph encoder of "tokens" float32 (2, 3), "encoder.weight" float32 (4, 5): `,
		"; called at " + e.Frames[1].String() + ", " + e.Frames[2].String()} {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("%v, want %s in it", e, want)
		}
	}
}

// TestManyFrames has more calls than the text of an error names.
func TestManyFrames(t *testing.T) {
	var deep func(depth int, x *ir.Tensor) *ir.Tensor
	deep = func(depth int, x *ir.Tensor) *ir.Tensor {
		if depth == 0 {
			return ops.Reshape(x, 3)
		}
		return deep(depth-1, x)
	}
	p := ir.New(1)
	deep(20, p.Main().Constant(zeros(ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2}})))
	if err := p.Err(); err == nil || !strings.HasSuffix(err.Error(), " and 13 more") ||
		strings.Count(err.Error(), "frames_test.go") != 9 {
		t.Errorf("%v, want 9 calls and 13 more", err)
	}
}

// TestGraphNamed renames graphs.
func TestGraphNamed(t *testing.T) {
	p := ir.New(1)
	identity := func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return in }
	a, b := p.CreateGraph(identity), p.CreateGraph(identity)
	for _, c := range []struct {
		graph      *ir.Graph
		name, want string
	}{{a, "layer", "layer"}, {b, "layer", "layer_2"}, {b, "", "layer_2"}, {a, "main", "main_2"},
		{p.Main(), "x", "main"}} {
		if got := c.graph.Named(c.name); got != c.graph || got.Name() != c.want {
			t.Errorf("named %q: %q, want %q and the same graph", c.name, got.Name(), c.want)
		}
	}
	if text := p.String(); !strings.Contains(text, "graph main_2(") {
		t.Errorf("no graph main_2 in\n%s", text)
	}
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := a.Named("late").Name(); got != "main_2" {
		t.Errorf("named after a session exists: %q, want main_2", got)
	}
}
