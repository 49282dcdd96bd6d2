package main

import (
	"context"
	"errors"
	"strings"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// invoke makes the call by a form on slices.
func invoke[T tensor.Element](ctx context.Context, c *call, cm *gcl.Comm, rank int, form string, bs []*buffers,
	op gcl.Operator, again *func(context.Context) error) (got [][]byte, err error) {
	var dsts, srcs [][]T
	var as, rs [][]int
	for t, b := range bs {
		dsts, srcs = append(dsts, sl[T](b.dst)), append(srcs, sl[T](b.src))
		if c.k.byCounts() {
			l := c.rowCounts(t, rank, c.opds[t].row)
			as, rs = append(as, l[0]), append(rs, l[len(l)-1])
		}
	}
	if !c.k.hasMany() && strings.HasPrefix(form, "many") {
		form = "batch"
	}
	switch form {
	case "exec":
		return nil, gcl.Execute(ctx, cm, c.ex.s, dsts[0], srcs[0], op)
	case "batch":
		if *again == nil {
			b := cm.Batch(c.k.collective(), op, c.root)
			for t := range bs {
				if c.k.byCounts() {
					gcl.AppendV(b, dsts[t], srcs[t], c.rowCounts(t, rank, c.opds[t].row)...)
				} else {
					gcl.Append(b, dsts[t], srcs[t])
				}
			}
			*again = b.Run
		}
		return nil, (*again)(ctx)
	case "alloc": // To, with buffers of Alloc
		d, err := gcl.Alloc[T](cm, len(dsts[0]))
		if err != nil {
			return nil, err
		}
		s, err := gcl.Alloc[T](cm, len(srcs[0]))
		if err != nil {
			return nil, err
		}
		copy(s, srcs[0])
		copy(d, dsts[0])
		if err = to(ctx, c, cm, d, s, op, as, rs); err == nil {
			copy(dsts[0], d)
			err = errors.Join(gcl.Free(cm, d), gcl.Free(cm, s))
		}
		return nil, err
	case "to":
		return nil, to(ctx, c, cm, dsts[0], srcs[0], op, as, rs)
	case "inplace":
		x := srcs[0]
		switch c.k {
		case allReduce:
			return nil, gcl.AllReduceInPlace(ctx, cm, x, op)
		case allToAll:
			return nil, gcl.AllToAllInPlace(ctx, cm, x)
		case broadcast:
			return nil, gcl.BroadcastInPlace(ctx, cm, x, c.root)
		case reduce:
			return nil, gcl.ReduceInPlace(ctx, cm, x, op, c.root)
		case allToAllV:
			return nil, gcl.AllToAllVInPlace(ctx, cm, x, as[0])
		}
	case "fresh":
		x := srcs[0]
		var out []T
		switch c.k {
		case allReduce:
			out, err = gcl.AllReduce(ctx, cm, x, op)
		case reduceScatter:
			out, err = gcl.ReduceScatter(ctx, cm, x, op)
		case allGather:
			out, err = gcl.AllGather(ctx, cm, x)
		case allToAll:
			out, err = gcl.AllToAll(ctx, cm, x)
		case broadcast:
			out, err = gcl.Broadcast(ctx, cm, x, c.root)
		case reduce:
			out, err = gcl.Reduce(ctx, cm, x, op, c.root)
		case gather:
			out, err = gcl.Gather(ctx, cm, x, c.root)
		case scatter:
			out, err = gcl.Scatter(ctx, cm, x, c.opds[0].n, c.root)
		case reduceScatterV:
			out, err = gcl.ReduceScatterV(ctx, cm, x, as[0], op)
		case allGatherV:
			out, err = gcl.AllGatherV(ctx, cm, x, as[0])
		case allToAllV:
			out, err = gcl.AllToAllV(ctx, cm, x, as[0], rs[0])
		case gatherV:
			out, err = gcl.GatherV(ctx, cm, x, as[0], c.root)
		case scatterV:
			out, err = gcl.ScatterV(ctx, cm, x, as[0], c.root)
		case mappedScatter:
			out, err = gcl.ReduceScatterMapped(ctx, cm, x, c.mapping, op)
		case mappedGather:
			out, err = gcl.AllGatherMapped(ctx, cm, x, c.mapping)
		}
		return [][]byte{tensor.Bytes(out)}, err
	case "many":
		var out [][]T
		switch c.k {
		case allReduce:
			out, err = gcl.AllReduceMany(ctx, cm, srcs, op)
		case reduceScatter:
			out, err = gcl.ReduceScatterMany(ctx, cm, srcs, op)
		case allGather:
			out, err = gcl.AllGatherMany(ctx, cm, srcs)
		}
		for _, x := range out {
			got = append(got, tensor.Bytes(x))
		}
		return got, err
	case "manyTo":
		switch c.k {
		case allReduce:
			return nil, gcl.AllReduceManyTo(ctx, cm, dsts, srcs, op)
		case reduceScatter:
			return nil, gcl.ReduceScatterManyTo(ctx, cm, dsts, srcs, op)
		case allGather:
			return nil, gcl.AllGatherManyTo(ctx, cm, dsts, srcs)
		}
	case "manyIn":
		switch c.k {
		case allReduce:
			return nil, gcl.AllReduceManyInPlace(ctx, cm, srcs, op)
		}
	}
	panic("no form " + form + " of " + c.k.String())
}

// to makes the call by the form To.
func to[T tensor.Element](ctx context.Context, c *call, cm *gcl.Comm, d, s []T, op gcl.Operator,
	as, rs [][]int) error {
	switch c.k {
	case allReduce:
		return gcl.AllReduceTo(ctx, cm, d, s, op)
	case reduceScatter:
		return gcl.ReduceScatterTo(ctx, cm, d, s, op)
	case allGather:
		return gcl.AllGatherTo(ctx, cm, d, s)
	case allToAll:
		return gcl.AllToAllTo(ctx, cm, d, s)
	case broadcast:
		return gcl.BroadcastTo(ctx, cm, d, s, c.root)
	case reduce:
		return gcl.ReduceTo(ctx, cm, d, s, op, c.root)
	case gather:
		return gcl.GatherTo(ctx, cm, d, s, c.root)
	case scatter:
		return gcl.ScatterTo(ctx, cm, d, s, c.root)
	case reduceScatterV:
		return gcl.ReduceScatterVTo(ctx, cm, d, s, as[0], op)
	case allGatherV:
		return gcl.AllGatherVTo(ctx, cm, d, s, as[0])
	case allToAllV:
		return gcl.AllToAllVTo(ctx, cm, d, s, as[0], rs[0])
	case gatherV:
		return gcl.GatherVTo(ctx, cm, d, s, as[0], c.root)
	case scatterV:
		return gcl.ScatterVTo(ctx, cm, d, s, as[0], c.root)
	case mappedScatter:
		return gcl.ReduceScatterMappedTo(ctx, cm, d, s, c.mapping, op)
	case mappedGather:
		return gcl.AllGatherMappedTo(ctx, cm, d, s, c.mapping)
	}
	panic("to")
}
