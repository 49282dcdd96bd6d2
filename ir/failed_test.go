package ir_test

import (
	"errors"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
)

// TestBuildingGoesOn: code that asks a tensor which stands for an error for its extents, or a graph that is none for
// its outputs, comes to the session, which returns the error with its line.
func TestBuildingGoesOn(t *testing.T) {
	p := ir.New(1)
	m := p.Main()
	x := m.Constant(f32s(t, []float32{1, 2, 3, 4, 5, 6}, 2, 3))
	y := ops.MatMul(x, x) // 2 by 3 times 2 by 3
	rows, columns := y.Shape()[0], y.Spec().Shape[1]
	last := y.Shape()[len(y.Shape())-1]
	y = ops.Reshape(y, rows*last, columns/rows)
	for range y.Shape()[1] {
		y = ops.Add(y, y)
	}
	none := ops.Concat(0)
	y = ops.Reshape(y, none.Shape()[2], none.Graph().Program().Replicas()+(*ir.Tensor)(nil).Shape()[0])
	two := m.Call(p.CreateGraph(nil), y)
	ops.Add(two[0], two[1])
	m.Call(nil)[1].Shape()
	p.HostToDevice("y", y.Spec())
	s, err := ir.NewSession(p)
	if err == nil {
		s.Close()
	}
	var built *ir.BuildError
	if !errors.As(err, &built) || built.Op != "matmul" || !strings.Contains(err.Error(), "failed_test.go:18") {
		t.Errorf("%v", err)
	}
}

// TestBuildPanics: a function that panics after an error has stuck is given up, and the session returns the error; a
// panic without one is the caller's.
func TestBuildPanics(t *testing.T) {
	var nobody []int
	for name, build := range map[string]func(p *ir.Program, f func()){
		"CreateGraph": func(p *ir.Program, f func()) {
			g := p.CreateGraph(func(*ir.Graph, []*ir.Tensor) []*ir.Tensor { f(); return nil })
			p.Main().Call(g)[1].Named("second")
		},
		"InSequence":    func(p *ir.Program, f func()) { p.Main().InSequence(f) },
		"OutOfSequence": func(p *ir.Program, f func()) { p.Main().OutOfSequence(f) },
		"AtEnd":         func(p *ir.Program, f func()) { p.AtEnd(f) },
	} {
		p := ir.New(1)
		build(p, func() {
			p.Main().Constant(nil)
			nobody[3]++
		})
		s, err := ir.NewSession(p)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "ir: constant at failed_test.go:") {
			t.Errorf("%s: %v", name, err)
		}
		func() {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(v.(error).Error(), "index out of range [3]") {
					t.Errorf("%s: without an error the panic is %v", name, v)
				}
			}()
			p := ir.New(1)
			build(p, func() { nobody[3]++ })
			ir.NewSession(p)
		}()
	}
}
