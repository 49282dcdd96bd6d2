package remote_test

import (
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/internal/anyinput"
	"gogcl.dev/ir"
	"gogcl.dev/remote"
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
	open := remote.NewBuffer(running, ir.SpecOf(data), 2)
	kept := remote.NewVariable(running, data, open, 1)
	remote.Load(running.Main(), open, 0)
	s, err := ir.NewSession(running)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"Load": remote.Load, "LoadAt": remote.LoadAt, "LoadInto": remote.LoadInto,
			"LoadIntoAt": remote.LoadIntoAt, "Store": remote.Store, "StoreAt": remote.StoreAt,
			"UseStorage": remote.UseStorage, "NewBuffer": remote.NewBuffer, "OptionsOf": remote.OptionsOf,
			"Prefetch": remote.Prefetch, "PrefetchAt": remote.PrefetchAt, "NewVariable": remote.NewVariable,
			"AllReplicas": remote.AllReplicas, "DType": remote.DType, "FirstValue": remote.FirstValue,
			"Groups": remote.Groups, "KeepWide": remote.KeepWide, "Name": remote.Name, "Sharded": remote.Sharded,
		},
		Types: []any{
			remote.Buffer{}, remote.Dir(""), remote.Memory{}, remote.Options{}, remote.Pending{}, remote.Spec{},
			remote.Variable{}, remote.VariableOption(nil),
		},
		Values: []any{
			p, m, x, numbers, data, ir.SpecOf(data), running, s, open, kept, commgroup.Group{}, remote.Memory{}, 0, 1,
			remote.NewBuffer(p, ir.SpecOf(data), 2),
			remote.NewVariable(p, data, remote.NewBuffer(p, ir.SpecOf(data)), 0),
			&remote.Buffer{}, &remote.Variable{}, &remote.Pending{}, remote.Groups(commgroup.Group{}),
			remote.AllReplicas(),
		},
		Scratch: true,
	})
}
