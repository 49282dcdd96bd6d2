package collective_test

import (
	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// groups has package oracle say what collectives give in each group of a layout, on elements of one type.
type groups struct {
	layout commgroup.Layout
	dtype  tensor.DType
}

// outputs is by replica, as the inputs are. All inputs are of one length.
func (g groups) outputs(call oracle.Call, in [][]float64) [][]float64 {
	out := make([][]float64, len(in))
	for r := range in {
		var inputs []*tensor.Tensor
		for _, m := range g.layout.Members(g.layout.GroupOf(r)) {
			x := must(tensor.New(g.dtype, len(in[m])))
			for i, v := range in[m] {
				setElement(x, i, v)
			}
			inputs = append(inputs, x)
		}
		out[r] = elements(oracle.OutputTensors(call, inputs)[g.layout.RankOf(r)])
	}
	return out
}

// elements are the elements of a tensor.
func elements(t *tensor.Tensor) []float64 {
	out := make([]float64, t.Len())
	for i := range out {
		out[i] = element(t, i)
	}
	return out
}

func (g groups) allReduce(in [][]float64, op gcl.Operator) [][]float64 {
	return g.outputs(oracle.Call{Collective: schedule.AllReduce, Operator: oracle.Operator(op.String())}, in)
}

func (g groups) reduceScatter(in [][]float64, op gcl.Operator) [][]float64 {
	return g.outputs(oracle.Call{Collective: schedule.ReduceScatter, Operator: oracle.Operator(op.String())}, in)
}

func (g groups) allGather(in [][]float64) [][]float64 {
	return g.outputs(oracle.Call{Collective: schedule.AllGather}, in)
}

func (g groups) allToAll(in [][]float64) [][]float64 {
	return g.outputs(oracle.Call{Collective: schedule.AllToAll}, in)
}

func (g groups) broadcast(in [][]float64, root int) [][]float64 {
	return g.outputs(oracle.Call{Collective: schedule.Broadcast, Root: root}, in)
}
