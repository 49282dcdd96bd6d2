package rts_test

import (
	"errors"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// TestTrainerCheckFinite: with CheckFinite a step whose loss is NaN is an error that names the logarithm, and the
// parameters are what they were; without it nobody notices.
func TestTrainerCheckFinite(t *testing.T) {
	for _, check := range []bool{false, true} {
		p := ir.New(2)
		data, err := tensor.FromSlice([]float32{1, 2, 3, -1})
		if err != nil {
			t.Fatal(err)
		}
		shard := ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2}}
		w := rts.RemoteVariable(p, data, remote.NewBuffer(p, shard), 0, rts.Sharding{}, remote.Name("w"))
		g := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.ReduceSum(ops.Log(in[0]))}
		}, w.Spec())
		m := p.Main()
		rts.Trainer{Optimizer: rts.SGD{}, CheckFinite: check}.Step([]rts.Layer{{Graph: g, Params: []*rts.Variable{w}}},
			m.Constant(tensor.Scalar(float32(0.5))), m.Constant(tensor.Scalar(int32(1))))
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		err = s.RunTo(t.Context(), nil, nil)
		if !check {
			if err != nil {
				t.Errorf("without the check: %v", err)
			}
			continue
		}
		if !errors.Is(err, ir.ErrNotFinite) || !strings.Contains(err.Error(), "ir: replica 0: log built at "+
			"finite_test.go:27") || !strings.Contains(err.Error(), "element 3 of float32 (4,) is NaN") {
			t.Errorf("with the check: %v", err)
		}
		if got, err := w.Read(s); err != nil || !got.Equal(data) {
			t.Errorf("the parameters are %v, %v, want %v", got, err, data)
		}
	}
}
