package gcl_test

import (
	"context"
	"math"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// manyBadCalls are calls on several tensors that are wrong for the ranks of a group of four.
func manyBadCalls() []badCall {
	f := func(lengths ...int) [][]float32 {
		out := make([][]float32, len(lengths))
		for t, n := range lengths {
			out[t] = make([]float32, n)
		}
		return out
	}
	slices := func(_ [][]float32, err error) error { return err }
	tensors := func(_ []*tensor.Tensor, err error) error { return err }
	mapped := func(_ []float32, err error) error { return err }
	of := func(dtype tensor.DType, shape ...int) *tensor.Tensor {
		t, err := tensor.New(dtype, shape...)
		if err != nil {
			panic(err)
		}
		return t
	}
	list := func(ts ...*tensor.Tensor) []*tensor.Tensor { return ts }
	calls := []badCall{
		{"many: fewer destinations", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyTo(ctx, c, f(1, 2), f(1, 2, 3), gcl.Add)
		}, []string{"all-reduce #", "2 destinations for 3 inputs"}},
		{"many: no destinations", func(ctx context.Context, c *gcl.Comm) error {
			return batchTo(ctx, c, schedule.Broadcast, nil, f(1), 0, 0)
		}, []string{"broadcast #", "0 destinations for 1 inputs"}},
		{"many: more destinations", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllGatherTensorsTo(ctx, c, list(of(tensor.F32, 4), of(tensor.F32, 4)), list(of(tensor.F32)))
		}, []string{"2 destinations for 1 inputs"}},
		{"many: a destination of another length", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyTo(ctx, c, f(5, 7), f(5, 8), gcl.Add)
		}, []string{"tensor 1: ", "7 elements, want 8"}},
		{"many: a shard rounded down", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceScatterManyTo(ctx, c, f(2, 2), f(8, 9), gcl.Add)
		}, []string{"tensor 1: ", "2 elements, want 3", "4 ranks"}},
		{"many: an all-gather to one part", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllGatherManyTo(ctx, c, f(0, 2), f(0, 2))
		}, []string{"tensor 1: ", "2 elements, want 8"}},
		{"many: a length that 4 does not divide", func(ctx context.Context, c *gcl.Comm) error {
			return batchTo(ctx, c, schedule.AllToAll, f(4, 0, 6), f(4, 0, 6), 0, 0)
		}, []string{"all-to-all #", "operand 2: 6 elements", "4 equal parts"}},
		{"many: a length that 4 does not divide, in place", func(ctx context.Context, c *gcl.Comm) error {
			return batchInPlace(ctx, c, schedule.AllToAll, f(3), 0, 0)
		}, []string{"operand 0: 3 elements"}},
		{"many: broadcast from the rank after the last", func(ctx context.Context, c *gcl.Comm) error {
			return batchInPlace(ctx, c, schedule.Broadcast, f(3), 0, 4)
		}, []string{"root 4", "0 to 3"}},
		{"many: broadcast of nothing from a negative rank", func(ctx context.Context, c *gcl.Comm) error {
			return batchTensorsTo(ctx, c, schedule.Broadcast, nil, nil, 0, -1)
		}, []string{"root -1", "0 to 3"}},
		{"many: an operator that does not exist, on nothing", func(ctx context.Context, c *gcl.Comm) error {
			return slices(gcl.AllReduceMany(ctx, c, f(), 240))
		}, []string{"Operator(240)"}},
		{"many: an operator that the third does not take", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTensorsInPlace(ctx, c,
				list(of(tensor.F32, 2), of(tensor.BF16, 2), of(tensor.I32, 2), of(tensor.Bool)), gcl.Mean)
		}, []string{"tensor 2: operator MEAN", "floating point", "int32"}},
		{"many: an operator that the second does not take, on no elements",
			func(ctx context.Context, c *gcl.Comm) error {
				return tensors(gcl.ReduceScatterTensors(ctx, c, list(of(tensor.I8, 2), of(tensor.Bool, 0)), gcl.Add))
			}, []string{"tensor 1: operator ADD", "numbers", "bool"}},
		{"many: a context that is nil", func(_ context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyInPlace(noContext, c, f(1), gcl.Add)
		}, []string{"nil context"}},

		{"tensors: a nil one", func(ctx context.Context, c *gcl.Comm) error {
			return tensors(gcl.AllReduceTensors(ctx, c, list(of(tensor.F32, 2), nil), gcl.Add))
		}, []string{"tensor 1: the input: it is nil"}},
		{"tensors: a nil destination", func(ctx context.Context, c *gcl.Comm) error {
			return batchTensorsTo(ctx, c, schedule.Broadcast, list(nil), list(of(tensor.F32, 2)), 0, 0)
		}, []string{"operand 0: the destination: it is nil"}},
		{"tensors: the zero Tensor", func(ctx context.Context, c *gcl.Comm) error {
			return tensors(gcl.AllGatherTensors(ctx, c, list(&tensor.Tensor{})))
		}, []string{"tensor 0: the input: it is the zero Tensor"}},
		{"tensors: a destination of another dtype", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTensorsTo(ctx, c, list(of(tensor.U32, 2)), list(of(tensor.I32, 2)), gcl.Add)
		}, []string{"tensor 0: ", "uint32 of shape (2,), want int32 of shape (2,)"}},
		{"tensors: the zero Tensor as destination", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTensorsTo(ctx, c, list(&tensor.Tensor{}), list(of(tensor.I32, 0)), gcl.Add)
		}, []string{"tensor 0: the destination: it is the zero Tensor"}},
		{"tensors: a destination of another shape", func(ctx context.Context, c *gcl.Comm) error {
			return batchTensorsTo(ctx, c, schedule.AllToAll, list(of(tensor.F16, 4), of(tensor.F16, 4, 3)),
				list(of(tensor.F16, 4), of(tensor.F16, 4, 3, 1)), 0, 0)
		}, []string{"operand 1: ", "shape (4, 3), want float16 of shape (4, 3, 1)"}},
		{"tensors: a destination with dimensions swapped", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTensorsTo(ctx, c, list(of(tensor.F16, 3, 2)), list(of(tensor.F16, 2, 3)), gcl.Add)
		}, []string{"tensor 0: ", "shape (3, 2), want float16 of shape (2, 3)"}},
		{"tensors: an all-gather without the leading dimension", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllGatherTensorsTo(ctx, c, list(of(tensor.I8, 8, 3)), list(of(tensor.I8, 2, 3)))
		}, []string{"tensor 0: ", "shape (8, 3), want int8 of shape (4, 2, 3)"}},
		{"tensors: a reduce-scatter of two dimensions", func(ctx context.Context, c *gcl.Comm) error {
			return tensors(gcl.ReduceScatterTensors(ctx, c, list(of(tensor.F32, 4), of(tensor.F32, 4, 1)), gcl.Add))
		}, []string{"tensor 1: ", "one dimension", "(4, 1)"}},
		{"tensors: a reduce-scatter to two dimensions", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceScatterTensorsTo(ctx, c, list(of(tensor.F32, 1, 1)), list(of(tensor.F32, 4)), gcl.Add)
		}, []string{"tensor 0: ", "shape (1, 1), want float32 of shape (1,)"}},
		{"tensors: an all-to-all of another first dimension", func(ctx context.Context, c *gcl.Comm) error {
			return batchTensorsTo(ctx, c, schedule.AllToAll, list(of(tensor.F32, 8)), list(of(tensor.F32, 8)), 0, 0)
		}, []string{"operand 0: ", "first dimension", "4", "(8,)"}},
		{"tensors: an all-to-all of a scalar", func(ctx context.Context, c *gcl.Comm) error {
			return batchTensorsTo(ctx, c, schedule.AllToAll, list(of(tensor.F32)), list(of(tensor.F32)), 0, 0)
		}, []string{"operand 0: ", "first dimension", "()"}},

		{"mapped: another sum", func(ctx context.Context, c *gcl.Comm) error {
			return mapped(gcl.ReduceScatterMapped(ctx, c, make([]float32, 5), chunks.Mapping{3, 1}, gcl.Add))
		}, []string{"reduce-scatter #", "4 elements on 2 IPUs", "the data 5"}},
		{"mapped: no mapping", func(ctx context.Context, c *gcl.Comm) error {
			return mapped(gcl.ReduceScatterMapped(ctx, c, make([]float32, 5), nil, gcl.Add))
		}, []string{"0 elements on 0 IPUs", "the data 5"}},
		{"mapped: a negative entry", func(ctx context.Context, c *gcl.Comm) error {
			return mapped(gcl.AllGatherMapped(ctx, c, make([]float32, 5), chunks.Mapping{6, -1}))
		}, []string{"all-gather #", "-1 elements on IPU 1"}},
		{"mapped: more than an int", func(ctx context.Context, c *gcl.Comm) error {
			return mapped(gcl.AllGatherMapped[float32](ctx, c, nil, chunks.Mapping{math.MaxInt, 1}))
		}, []string{"the mapping has more elements than an int can hold"}},
		{"mapped: an operator on another type", func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.ReduceScatterMapped(ctx, c, make([]bool, 4), chunks.Mapping{3, 1}, gcl.Add)
			return err
		}, []string{"operator ADD takes numbers, not bool"}},
		{"mapped: a destination without padding", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceScatterMappedTo(ctx, c, make([]float32, 1), make([]float32, 4), chunks.Mapping{3, 1},
				gcl.Add)
		}, []string{"the destination has 1 elements, want 2 by the mapping over 4 ranks"}},
		{"mapped: a shard without padding", func(ctx context.Context, c *gcl.Comm) error {
			return mapped(gcl.AllGatherMapped(ctx, c, make([]float32, 1), chunks.Mapping{3, 1}))
		}, []string{"the data has 1 elements, want 2 by the mapping over 4 ranks"}},
		{"mapped: a destination with padding", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllGatherMappedTo(ctx, c, make([]float32, 8), make([]float32, 2), chunks.Mapping{3, 1})
		}, []string{"the destination: ", "4 elements on 2 IPUs", "the data 8"}},
	}
	return append(calls, manyOverlaps()...)
}

// manyOverlaps are the calls in which tensors share memory in a way that is not allowed on rank 1 of four.
func manyOverlaps() []badCall {
	mem := func() []float32 { return make([]float32, 100) }
	far := func(n int) []float32 { return make([]float32, n) }
	view := func(m []float32, lo, hi int) *tensor.Tensor { return flat(m[lo:hi]) }
	return []badCall{
		{"many: an input that its destination overlaps", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.AllReduceManyTo(ctx, c, [][]float32{far(3), m[1:9]}, [][]float32{far(3), m[:8]}, gcl.Add)
		}, []string{"tensor 1: ", "4 bytes after", "the input itself"}},
		{"many: another rank's shard", func(ctx context.Context, c *gcl.Comm) error {
			m, other := mem(), (c.Rank()+1)%c.Size()
			return gcl.ReduceScatterManyTo(ctx, c, [][]float32{m[2*other : 2*other+2]}, [][]float32{m[:8]}, gcl.Local)
		}, []string{"tensor 0: ", "own shard"}},
		{"many: a slice twice, in place", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.AllReduceManyInPlace(ctx, c, [][]float32{m[:8], m[20:30], m[:8]}, gcl.Add)
		}, []string{"the destinations of tensor 0 and tensor 2 overlap"}},
		{"many: slices that overlap, in place", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return batchInPlace(ctx, c, schedule.AllToAll, [][]float32{m[40:60], m[60:64], m[0:24], m[20:28]}, 0, 0)
		}, []string{"the destinations of operand 2 and operand 3 overlap"}},
		{"many: a destination that is another's input", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return batchTo(ctx, c, schedule.Broadcast, [][]float32{m[8:16], far(8)}, [][]float32{m[:8], m[8:16]}, 0, 0)
		}, []string{"the destination of operand 0 overlaps the input of operand 1"}},
		{"many: a destination that reaches into another's input", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.AllGatherManyTo(ctx, c, [][]float32{far(4), m[10:42]}, [][]float32{m[41:42], far(8)})
		}, []string{"the destination of tensor 1 overlaps the input of tensor 0"}},
		{"many: a destination inside a larger one", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.AllReduceManyTo(ctx, c, [][]float32{m[:60], m[60:61], m[30:31]},
				[][]float32{far(60), far(1), far(1)}, gcl.Add)
		}, []string{"the destinations of tensor 0 and tensor 2 overlap"}},
		{"tensors: views of one memory", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.AllReduceTensorsInPlace(ctx, c, []*tensor.Tensor{view(m, 0, 8), view(m, 7, 9)}, gcl.Add)
		}, []string{"the destinations of tensor 0 and tensor 1 overlap"}},
		{"mapped: between shards", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.ReduceScatterMappedTo(ctx, c, m[1:3], m[:8], chunks.Mapping{0, 8}, gcl.Add)
		}, []string{"IPU 1: ", "own shard"}},
		{"mapped: a shard in another segment", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.ReduceScatterMappedTo(ctx, c, m[11:14], m[:12], chunks.Mapping{4, 8}, gcl.Add)
		}, []string{"the destination of IPU 0 overlaps the input of IPU 1"}},
		{"mapped: a segment in another's way", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.AllGatherMappedTo(ctx, c, m[50:62], m[61:64], chunks.Mapping{4, 8})
		}, []string{"the destination of IPU 1 overlaps the input of IPU 0"}},
	}
}
