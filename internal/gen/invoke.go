package main

import (
	"context"
	"fmt"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// invoke makes the call by a form: those on tensors here, those on slices by their type.
func (c *call) invoke(ctx context.Context, cm *gcl.Comm, rank int, form string, bs []*buffers, which []int,
	again *func(context.Context) error) (got [][]byte, err error) {
	var op gcl.Operator
	if c.k.combines() || c.k == execute {
		op = c.op
	}
	col := c.k.collective()
	tensorsOf := func() (dst, src []*tensor.Tensor) {
		for t, b := range bs {
			d, s := c.tensorsOf(t, rank, which[t], b)
			dst, src = append(dst, d), append(src, s)
		}
		return
	}
	rows := func() (a, b [][]int) {
		for t := range c.opds {
			l := c.rowCounts(t, rank, 1)
			a = append(a, l[0])
			b = append(b, l[len(l)-1])
		}
		return
	}
	switch form {
	case "do", "execT":
		dst, src := tensorsOf()
		switch {
		case c.k == execute:
			return nil, cm.Execute(ctx, c.ex.s, dst[0], src[0], op)
		case c.k.byCounts():
			return nil, cm.DoV(ctx, col, dst[0], src[0], op, c.root, c.rowCounts(0, rank, 1)...)
		}
		return nil, cm.Do(ctx, col, dst[0], src[0], op, c.root)
	case "batchT":
		if *again == nil {
			dst, src := tensorsOf()
			b := cm.Batch(col, op, c.root)
			if c.k.byCounts() {
				b.AppendTensorV(dst[0], src[0], c.rowCounts(0, rank, 1)...)
			} else {
				b.AppendTensor(dst[0], src[0])
			}
			*again = b.Run
		}
		return nil, (*again)(ctx)
	case "tensors":
		_, src := tensorsOf()
		var out []*tensor.Tensor
		a, b := [][]int(nil), [][]int(nil)
		if c.k.byCounts() {
			a, b = rows()
		}
		switch c.k {
		case allReduce:
			out, err = gcl.AllReduceTensors(ctx, cm, src, op)
		case reduceScatter:
			out, err = gcl.ReduceScatterTensors(ctx, cm, src, op)
		case allGather:
			out, err = gcl.AllGatherTensors(ctx, cm, src)
		case allToAll:
			out, err = gcl.AllToAllTensors(ctx, cm, src)
		case broadcast:
			out, err = gcl.BroadcastTensors(ctx, cm, src, c.root)
		case reduceScatterV:
			out, err = gcl.ReduceScatterVTensors(ctx, cm, src, a, op)
		case allGatherV:
			out, err = gcl.AllGatherVTensors(ctx, cm, src, a)
		case allToAllV:
			out, err = gcl.AllToAllVTensors(ctx, cm, src, a, b)
		}
		if err != nil {
			return nil, err
		}
		for t, x := range out {
			got = append(got, x.Bytes())
			d, _ := c.tensorsOf(t, rank, which[t], bs[t])
			if !x.Shape().Equal(d.Shape()) {
				return nil, &wrong{fmt.Sprintf("WRONG shape %v, want %v", x.Shape(), d.Shape())}
			}
		}
		return got, nil
	case "tensorsTo", "tensorsTo1":
		dst, src := tensorsOf()
		a, b := [][]int(nil), [][]int(nil)
		if c.k.byCounts() {
			a, b = rows()
		}
		switch c.k {
		case allReduce:
			return nil, gcl.AllReduceTensorsTo(ctx, cm, dst, src, op)
		case reduceScatter:
			return nil, gcl.ReduceScatterTensorsTo(ctx, cm, dst, src, op)
		case allGather:
			return nil, gcl.AllGatherTensorsTo(ctx, cm, dst, src)
		case allToAll:
			return nil, gcl.AllToAllTensorsTo(ctx, cm, dst, src)
		case broadcast:
			return nil, gcl.BroadcastTensorsTo(ctx, cm, dst, src, c.root)
		case reduce:
			return nil, gcl.ReduceTensorsTo(ctx, cm, dst, src, op, c.root)
		case gather:
			return nil, gcl.GatherTensorsTo(ctx, cm, dst, src, c.root)
		case scatter:
			return nil, gcl.ScatterTensorsTo(ctx, cm, dst, src, c.root)
		case reduceScatterV:
			return nil, gcl.ReduceScatterVTensorsTo(ctx, cm, dst, src, a, op)
		case allGatherV:
			return nil, gcl.AllGatherVTensorsTo(ctx, cm, dst, src, a)
		case allToAllV:
			return nil, gcl.AllToAllVTensorsTo(ctx, cm, dst, src, a, b)
		case gatherV:
			return nil, gcl.GatherVTensorsTo(ctx, cm, dst, src, a, c.root)
		case scatterV:
			return nil, gcl.ScatterVTensorsTo(ctx, cm, dst, src, a, c.root)
		}
	case "tensorsIn":
		_, src := tensorsOf()
		switch c.k {
		case allReduce:
			return nil, gcl.AllReduceTensorsInPlace(ctx, cm, src, op)
		case allToAll:
			return nil, gcl.AllToAllTensorsInPlace(ctx, cm, src)
		case broadcast:
			return nil, gcl.BroadcastTensorsInPlace(ctx, cm, src, c.root)
		case allToAllV:
			a, _ := rows()
			return nil, gcl.AllToAllVTensorsInPlace(ctx, cm, src, a)
		}
	}
	dt := tensor.F32
	if len(c.opds) > 0 {
		dt = c.opds[0].dt
	}
	switch dt {
	case tensor.Bool:
		return invoke[bool](ctx, c, cm, rank, form, bs, op, again)
	case tensor.I8:
		return invoke[int8](ctx, c, cm, rank, form, bs, op, again)
	case tensor.I16:
		return invoke[int16](ctx, c, cm, rank, form, bs, op, again)
	case tensor.I32:
		return invoke[int32](ctx, c, cm, rank, form, bs, op, again)
	case tensor.I64:
		return invoke[int64](ctx, c, cm, rank, form, bs, op, again)
	case tensor.U8:
		return invoke[uint8](ctx, c, cm, rank, form, bs, op, again)
	case tensor.U16:
		return invoke[uint16](ctx, c, cm, rank, form, bs, op, again)
	case tensor.U32:
		return invoke[uint32](ctx, c, cm, rank, form, bs, op, again)
	case tensor.U64:
		return invoke[uint64](ctx, c, cm, rank, form, bs, op, again)
	case tensor.F16:
		return invoke[tensor.Float16](ctx, c, cm, rank, form, bs, op, again)
	case tensor.BF16:
		return invoke[tensor.BFloat16](ctx, c, cm, rank, form, bs, op, again)
	case tensor.F32:
		return invoke[float32](ctx, c, cm, rank, form, bs, op, again)
	}
	return invoke[float64](ctx, c, cm, rank, form, bs, op, again)
}
