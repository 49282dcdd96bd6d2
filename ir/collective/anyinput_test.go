package collective_test

import (
	"context"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/anyinput"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
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
	s, err := ir.NewSession(running)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"UseTransport": collective.UseTransport,
			"Job": func(ctx context.Context, c *gcl.Comm, g commgroup.Group, dst, src []byte) error {
				return collective.Job(c).Gather(ctx, g, dst, src)
			},
			"WithComm": func(ctx context.Context, c *gcl.Comm) {
				if s, err := ir.NewSession(ir.New(1), collective.WithComm(ctx, c)); err == nil {
					s.Close()
				}
			},
		},
		Types: []any{
			collective.Comm{},
		},
		Values: []any{
			p, m, x, numbers, data, running, s, gcl.Add, collective.Comm{}, []*ir.Tensor{x, x}, &ir.Tensor{},
			&ir.Program{}, tensor.Shape{2, 3}, 0, 1,
		},
	})
}
