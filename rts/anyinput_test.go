package rts_test

import (
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/anyinput"
	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	p := ir.New(2)
	m := p.Main()
	data, err := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	x, numbers := m.Constant(data), m.Constant(tensor.Scalar(int32(1)))
	running := ir.New(2)
	open := remote.NewBuffer(running, ir.Spec{Shape: tensor.Shape{3}, DType: tensor.F32}, 2)
	kept := rts.RemoteVariable(running, data, open, 1, rts.Sharding{})
	s, err := ir.NewSession(running)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"Clip": rts.Clip, "NewVariable": rts.NewVariable, "RemoteVariable": rts.RemoteVariable,
			"Checkpoint": rts.Checkpoint, "Plain": rts.Plain,
		},
		Types: []any{
			rts.Adam{}, rts.Copies{}, rts.Layer{}, rts.Memory{}, rts.SGD{}, rts.Sharding{}, rts.Step{}, rts.Trainer{},
			rts.Variable{},
		},
		Values: []any{
			p, m, x, numbers, data, ir.SpecOf(data), running, s, open, kept, gcl.Add, rts.Adam{}, rts.SGD{},
			rts.Sharding{}, 0, 1,
			&rts.Variable{}, &rts.Step{}, &rts.Copies{}, &rts.Copies{Every: 1},
			rts.Layer{}, []*ir.Tensor{x, x}, []*rts.Variable{{}},
			rts.Trainer{Optimizer: rts.Adam{}}, x, rts.Plain(nil), rts.Plain(&ir.Variable{}),
		},
	})
}
