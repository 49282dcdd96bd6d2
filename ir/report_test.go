package ir_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/ir"
	"gogcl.dev/ir/show"
	"gogcl.dev/tensor"
)

// TestReport compares a report that is computed by hand. Of the tensors, x and a are of 64 bytes, b and c of 264, in 5
// cache lines; b and c are alive together, so that the arena has 10 lines, where there is room for x and a.
func TestReport(t *testing.T) {
	vector := func(n int) ir.Spec { return ir.Spec{DType: tensor.I64, Shape: tensor.Shape{n}} }
	p := ir.New(2)
	main := p.Main()
	p.Variable(zeros(vector(3)), ir.VariableName("v"))
	main.Constant(zeros(vector(33)))
	half := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ir.ToyWithScratch(in[0], 100).Named("c")}
	}, vector(33))
	x := main.HostLoad(p.HostToDevice("x", vector(8)))
	a := ir.ToyScale(x, 2).Named("a")
	b := ir.ToyResize(a, 33).Named("b")
	main.HostStore(p.DeviceToHost("c", vector(33)), main.Call(half, b)[0])
	c := half.Outputs()[0]
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := s.Report()
	for i := range r.Steps {
		r.Steps[i].Position = ir.Position{}
	}
	alive := func(of *ir.Tensor, name, graph string, bytes int) ir.AliveTensor {
		return ir.AliveTensor{Of: of, Tensor: name, Graph: graph, Bytes: bytes}
	}
	want := &ir.Report{
		Peak: 640 + 64 + 128, Arena: 640, Variables: 64, Scratch: 128, Constants: 264, Host: 24, Alive: 528,
		Steps: []ir.StepReport{
			{Op: `host load "x"`, Graph: "main", Alive: []ir.AliveTensor{alive(x, "%4.x", "main", 64)}, Bytes: 64},
			{Op: "scale by 2", Graph: "main", Alive: []ir.AliveTensor{alive(x, "%4.x", "main", 64), alive(a, "%5.a", "main", 64)}, Bytes: 128},
			{Op: "resize to 33", Graph: "main", Alive: []ir.AliveTensor{alive(b, "%6.b", "main", 264), alive(a, "%5.a", "main", 64)}, Bytes: 328},
			{Op: "with scratch", Graph: "TestReport", Alive: []ir.AliveTensor{alive(b, "%6.b", "main", 264), alive(c, "%3.c", "TestReport", 264)}, Bytes: 528, Scratch: 100},
			{Op: `host store "c"`, Graph: "main", Alive: []ir.AliveTensor{alive(c, "%3.c", "TestReport", 264)}, Bytes: 264},
		},
	}
	if diff := cmp.Diff(want, r, cmp.Comparer(func(a, b *ir.Tensor) bool { return a == b })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	unchanged(t, "report.txt", r.String())
}

// TestReportPositions looks at steps within a loop and a choice.
func TestReportPositions(t *testing.T) {
	s, err := ir.NewSession(perceptron())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	unchanged(t, "perceptron_report.txt", s.Report().String())
	unchanged(t, "perceptron_code.txt", show.Code(s.Program()).String())
	for _, step := range s.Report().Steps {
		if step.Position.Line == 0 {
			t.Errorf("%s has no position", step.Op)
		}
	}
}

// A report that a caller has made, with depths that no program has, is printed all the same.
func TestReportOfAnyDepth(t *testing.T) {
	for _, depth := range []int{math.MinInt, -1, 3, math.MaxInt} {
		report := &ir.Report{Steps: []ir.StepReport{{Op: "add", Depth: depth}}}
		code := &show.CodeReport{Steps: []show.CodeStep{{Op: "add", Depth: depth}}}
		for _, text := range []string{report.String(), code.String()} {
			if !strings.Contains(text, strings.Repeat("  ", min(max(depth, 0), 3))+"add  0") {
				t.Errorf("depth %d:\n%s", depth, text)
			}
		}
	}
}
