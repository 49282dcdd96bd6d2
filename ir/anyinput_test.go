package ir_test

import (
	"context"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/internal/anyinput"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// TestAnyInput: no call panics, whatever it is given and however broken the program is by then.
func TestAnyInput(t *testing.T) {
	building := ir.New(2)
	m := building.Main()
	x := m.Constant(f32s(t, []float32{1, 2, 3, 4, 5, 6}, 2, 3))
	row := m.Constant(f32s(t, []float32{1, 2, 3}, 3))
	numbers := m.Constant(tensor.Scalar(int32(1)))
	truth := m.Constant(tensor.Scalar(true))
	in, out := building.HostToDevice("in", f32(2, 3)), building.DeviceToHost("out", f32(2, 3))
	w := building.Variable(f32s(t, []float32{1, 2, 3, 4, 5, 6}, 2, 3), ir.VariableName("w"))
	square := building.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.Mul(in[0], in[0])}
	}, f32(2, 3))
	info := m.CallWithInfo(square, nil, x)
	started := m.Start(square, x)

	p := ir.New(2)
	pin, pout := p.HostToDevice("in", f32(2)), p.DeviceToHost("out", f32(2))
	p.Main().HostStore(pout, p.Main().HostLoad(pin))
	v := p.Variable(tensor.Scalar(float32(1)))
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })

	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"NewSession": func(p *ir.Program) {
				if s, err := ir.NewSession(p); err == nil {
					s.Close()
				}
			},
			"ForInputs": ir.ForInputs, "IdenticalLosses": ir.IdenticalLosses, "Autodiff": ir.Autodiff,
			"New": ir.New, "WithJob": ir.WithJob, "WithMaxSteps": ir.WithMaxSteps,
			"SpecOf": ir.SpecOf, "Apply": ir.Apply, "Apply1": ir.Apply1,
			"AllReplicas": ir.AllReplicas, "VariableGroups": ir.VariableGroups, "VariableName": ir.VariableName,
		},
		Types: []any{
			ir.AliveTensor{}, ir.AutodiffOption(nil), ir.Backward{}, ir.Branch{},
			ir.BuildError{}, ir.CallInfo{}, ir.GradInfo{},
			ir.Graph{}, ir.Memory{}, ir.Operation{}, ir.Position{}, ir.Profile{}, ir.Program{},
			ir.ReplicaProfile{}, ir.Report{},
			ir.RunError{}, ir.Session{}, ir.SessionOption(nil), ir.Spec{}, ir.Started{}, ir.StepReport{},
			ir.Stream{}, ir.Tensor{}, ir.Variable{}, ir.VariableOption(nil),
		},
		Values: []any{
			building, m, x, x, row, numbers, truth, in, out, w, square, info, started, ir.Autodiff(square), s, v, pin,
			pout, context.Background(),
			f32(2, 3), f32s(t, []float32{1, 2, 3, 4}, 2, 2), tensor.F32, tensor.Shape{2, 3}, commgroup.Group{},
			ir.ForInputs(),
			&ir.Tensor{}, &ir.Graph{}, &ir.Program{}, &ir.Variable{}, &ir.Stream{}, &ir.CallInfo{}, &ir.Session{},
			&ir.Started{},
		},
		Skip: map[string]string{
			"Session.Close": "other calls are to find it open",
			"Report.String": "it indents by a depth that only a session makes",
		},
	})
}
