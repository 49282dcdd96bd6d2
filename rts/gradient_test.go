package rts_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// TestGradients has the gradients of the operations. All are linear, so that the gradient is the adjoint: over all
// replicas, the products of outputs with y are those of inputs with the gradient of y. The numbers are small integers,
// and no sum of them is rounded.
func TestGradients(t *testing.T) {
	const n = 7
	own := commgroup.Group{Type: commgroup.Consecutive, Size: 1}
	for _, replicas := range []int{1, 2, 4, 8} {
		for _, over := range []int{1, 2, 4} {
			for _, size := range []int{4, replicas} {
				if size > replicas || over > size {
					continue
				}
				s := rts.Sharding{Group: consecutive(size), Over: over}
				shard := tensor.Shape{n}
				if over > 1 {
					shard = tensor.Shape{(n + over - 1) / over}
				}
				for _, c := range []struct {
					name    string
					in, out tensor.Shape
					op      func(t *ir.Tensor) *ir.Tensor
				}{
					{"gather", shard, tensor.Shape{n}, func(t *ir.Tensor) *ir.Tensor { return s.Gather(t, n) }},
					{"shard", tensor.Shape{n}, shard, s.Shard},
					{"reduce ADD", tensor.Shape{n}, shard, func(t *ir.Tensor) *ir.Tensor { return s.ReduceToShard(t, gcl.Add) }},
					{"reduce MEAN", tensor.Shape{n}, shard, func(t *ir.Tensor) *ir.Tensor { return s.ReduceToShard(t, gcl.Mean) }},
					{"gather two", shard, tensor.Shape{n}, func(t *ir.Tensor) *ir.Tensor {
						out := s.GatherMany([]*ir.Tensor{t, t}, []tensor.Shape{{n}, {n}})
						return ops.Add(out[0], out[1])
					}},
					{"reduce two", tensor.Shape{n}, shard, func(t *ir.Tensor) *ir.Tensor {
						out := s.ReduceToShardMany([]*ir.Tensor{t, t}, gcl.Add)
						return ops.Add(out[0], out[1])
					}},
				} {
					t.Run(fmt.Sprintf("%s/n=%d/group=%d/over=%d", c.name, replicas, size, over), func(t *testing.T) {
						p := ir.New(replicas)
						r := rand.New(rand.NewPCG(1, 2))
						draw := func(shape tensor.Shape) *ir.Variable {
							full := append(tensor.Shape{replicas}, shape...)
							if replicas == 1 {
								full = shape
							}
							v := make([]float32, replicas*shape[0])
							for i := range v {
								v[i] = float32(r.IntN(17) - 8)
							}
							return p.Variable(floats(t, v, full...), ir.VariableGroups(own), ir.AllReplicas())
						}
						x, y := draw(c.in), draw(c.out)
						main := p.Main()
						g := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
							return []*ir.Tensor{c.op(in[0])}
						}, x.Tensor)
						call := main.CallWithInfo(g, nil, x.Tensor)
						info := ir.Autodiff(g)
						by := info.By(call)
						by[info.Grads[0]] = y.Tensor
						grad := main.CallWithInfo(info.Graph, by).Outputs()[0]
						var out [2]*ir.Stream
						for i, t := range []*ir.Tensor{ops.ReduceSum(ops.Mul(call.Outputs()[0], y.Tensor)),
							ops.ReduceSum(ops.Mul(x.Tensor, grad))} {
							out[i] = p.DeviceToHost(fmt.Sprint(i), t.Spec())
							main.HostStore(out[i], t)
						}
						_, got := runOnce(t, p)
						var sums [2]float32
						for i, s := range out {
							for _, v := range values(t, got[s]) {
								sums[i] += v
							}
						}
						if sums[0] != sums[1] || sums[0] == 0 {
							t.Errorf("outputs with y: %v; inputs with the gradient: %v", sums[0], sums[1])
						}
					})
				}
			}
		}
	}
}
