package rts_test

import (
	"fmt"
	"os"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// TestOrderOfParameters makes a model of two layers alike anew, on files, with its parameters made and used in another
// order: each parameter and what Adam keeps of it is what it was, by its name.
func TestOrderOfParameters(t *testing.T) {
	dir := t.TempDir()
	values := map[string]float32{} // by tensor and shard
	for turn, names := range [][2]string{{"first", "second"}, {"second", "first"}} {
		p := ir.New(2)
		remote.UseStorage(p, remote.Dir(dir))
		main := p.Main()
		zeros, err := tensor.New(tensor.F32, 2, 2)
		if err != nil {
			t.Fatal(err)
		}
		x := main.Constant(zeros)
		var params []*rts.Variable
		for _, name := range names {
			b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2}})
			params = append(params, rts.RemoteVariable(p, zeros, b, 0, rts.Sharding{}, remote.Name(name)))
		}
		dense := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.MatMul(in[0], in[1])}
		}, x, params[0].Spec())
		loss := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.ReduceMean(ops.Square(in[0]))}
		}, x)
		step := rts.Trainer{Optimizer: rts.Adam{}}.Step([]rts.Layer{
			{Graph: dense, Inputs: []*ir.Tensor{x}, Params: params[:1]},
			{Graph: dense, Params: params[1:]},
			{Graph: loss},
		}, main.Constant(tensor.Scalar(float32(1))), main.Constant(tensor.Scalar(int32(1))))
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		tensors, err := step.Checkpoint(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range tensors {
			for k := range x.Shards {
				key := fmt.Sprintf("%s %d", x.Name, k)
				shard, err := x.Read(k)
				if err != nil {
					t.Fatal(err)
				}
				v, err := tensor.Of[float32](shard)
				if err != nil {
					t.Fatal(err)
				}
				if turn == 0 {
					values[key] = float32(len(values) + 1)
					v[0], v[1] = values[key], -values[key]
					if err := x.Write(k, shard); err != nil {
						t.Fatal(err)
					}
				} else if v[0] != values[key] || v[1] != -values[key] {
					t.Errorf("%s is %v, want %v", key, v, values[key])
				}
			}
		}
		if len(values) != 12 {
			t.Errorf("%d shards, want 12: %v", len(values), values)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"first.1.remote", "first.mean.square.1.remote", "second.mean.square.0.remote"} {
		if _, err := os.Stat(dir + "/" + name); err != nil {
			t.Error(err)
		}
	}
}
