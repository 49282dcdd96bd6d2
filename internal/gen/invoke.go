package main

import (
	"context"
	"fmt"
	"strings"

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
	if !c.k.hasMany() && strings.HasPrefix(form, "tensors") {
		form = "batchT"
	}
	switch form {
	case "do", "execT":
		dst, src := tensorsOf()
		switch {
		case c.k == execute:
			return nil, cm.Execute(ctx, c.ex.s, dst[0], src[0], op)
		case c.k.byCounts():
			return nil, cm.Do(ctx, col, dst[0], src[0], op, c.root, c.rowCounts(0, rank, 1)...)
		}
		return nil, cm.Do(ctx, col, dst[0], src[0], op, c.root)
	case "batchT":
		if *again == nil {
			dst, src := tensorsOf()
			b := cm.Batch(col, op, c.root)
			for t := range src {
				if c.k.byCounts() {
					b.AppendTensorV(dst[t], src[t], c.rowCounts(t, rank, 1)...)
				} else {
					b.AppendTensor(dst[t], src[t])
				}
			}
			*again = b.Run
		}
		return nil, (*again)(ctx)
	case "tensors":
		_, src := tensorsOf()
		var out []*tensor.Tensor
		switch c.k {
		case allReduce:
			out, err = gcl.AllReduceTensors(ctx, cm, src, op)
		case reduceScatter:
			out, err = gcl.ReduceScatterTensors(ctx, cm, src, op)
		case allGather:
			out, err = gcl.AllGatherTensors(ctx, cm, src)
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
		switch c.k {
		case allReduce:
			return nil, gcl.AllReduceTensorsTo(ctx, cm, dst, src, op)
		case reduceScatter:
			return nil, gcl.ReduceScatterTensorsTo(ctx, cm, dst, src, op)
		case allGather:
			return nil, gcl.AllGatherTensorsTo(ctx, cm, dst, src)
		}
	case "tensorsIn":
		_, src := tensorsOf()
		switch c.k {
		case allReduce:
			return nil, gcl.AllReduceTensorsInPlace(ctx, cm, src, op)
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
