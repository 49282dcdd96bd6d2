package carry

import (
	"context"
	"fmt"

	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// nativeKinds are an engine's collectives by ours. A barrier, which goes by messages, has none.
var nativeKinds = [...]transport.NativeKind{
	schedule.AllReduce: transport.NativeAllReduce, schedule.ReduceScatter: transport.NativeReduceScatter,
	schedule.AllGather: transport.NativeAllGather, schedule.AllToAll: transport.NativeAllToAll,
	schedule.Broadcast: transport.NativeBroadcast, schedule.Reduce: transport.NativeReduce,
	schedule.Gather: transport.NativeGather, schedule.Scatter: transport.NativeScatter,
}

// nativeOperators are an engine's operators by our loops.
var nativeOperators = [...]transport.NativeOperator{
	kernel.Add: transport.NativeSum, kernel.Mul: transport.NativeProduct,
	kernel.Min: transport.NativeMin, kernel.Max: transport.NativeMax,
	kernel.And: transport.NativeAnd, kernel.Or: transport.NativeOr,
}

// nativeElements are an engine's elements by our dtypes. 16-bit floats, which no engine has, are NativeBytes.
var nativeElements = [...]transport.NativeElement{
	tensor.Bool: transport.NativeBool,
	tensor.I8:   transport.NativeInt8, tensor.I16: transport.NativeInt16,
	tensor.I32: transport.NativeInt32, tensor.I64: transport.NativeInt64,
	tensor.U8: transport.NativeUint8, tensor.U16: transport.NativeUint16,
	tensor.U32: transport.NativeUint32, tensor.U64: transport.NativeUint64,
	tensor.F16: transport.NativeBytes, tensor.BF16: transport.NativeBytes,
	tensor.F32: transport.NativeFloat32, tensor.F64: transport.NativeFloat64,
}

// native is an engine's collective for a call on one operand, of n elements in the larger buffer.
func (w *Way) native(a *Ask, dtype tensor.DType, n int) transport.NativeCollective {
	out := transport.NativeCollective{
		Kind: nativeKinds[a.Collective], Root: a.Root, Size: w.Size(), Bytes: n * dtype.Size(),
	}
	if a.Collective.Contract().Combines {
		out.Operator, out.Element = nativeOperators[a.Reduction.Fold], nativeElements[dtype]
	}
	return out
}

// HasEngine reports whether the transport has collectives of its own.
func (l *Carrier) HasEngine() bool { return l.engine != nil }

// AgreementRounds is how many messages, one after the other, it takes the members to agree on a call of the engine.
func (w *Way) AgreementRounds() int { return w.engine.Agreement(w.Size()) }

// EngineRefuses says why an engine cannot carry out a call on one operand, of n elements in the larger buffer and in
// these parts; nil: it can. All members get the same answer.
func (w *Way) EngineRefuses(a *Ask, dtype tensor.DType, n int, parts *Parts) error {
	contract := a.Collective.Contract()
	if w.Size() == 1 || a.local() || a.Collective == schedule.Barrier {
		return nil // nothing is sent, or by messages
	}
	c := w.native(a, dtype, n)
	switch {
	case parts.Out != nil:
		return fmt.Errorf("method native gives all ranks equal parts, and the counts of an all-to-all are each rank's own: " +
			"want another method, or an all-to-all without counts")
	case parts.Unequal():
		return fmt.Errorf("method native gives all ranks equal parts, and the counts of %s differ: want equal counts, or "+
			"another method", wire.WithArticle(a.Collective))
	case contract.PerRank() && n%w.Size() != 0:
		return fmt.Errorf("method native gives all ranks equal parts, and %s of %d elements over %d ranks has none: "+
			"want a multiple of %d, or another method", wire.WithArticle(a.Collective), n, w.Size(), w.Size())
	case contract.Combines && c.Element == transport.NativeBytes:
		return fmt.Errorf("method native does not combine %v, which engines have no type for: want float32 or another "+
			"method", dtype)
	}
	if err := w.engine.Takes(c); err != nil {
		return fmt.Errorf("method native: the transport's engine does not take the call: %w", err)
	}
	return nil
}

// byEngine carries out a job by collectives of the transport's own engine, one for each operand, whose number is the
// round of its call. All members agree on each before it begins, so that none passes: see Way.passing.
func (w *Way) byEngine(ctx context.Context, j *Job, r *route.Route, fingerprint *transport.Call) error {
	l, f := w.Carrier, *fingerprint // the caller's stays as it is
	f.Method = uint8(r.Method)
	w.chosen(r, max(len(j.Ins), 1))
	if len(j.Ins) == 0 { // the members still agree that there is nothing
		l.startRound(0)
		c := transport.NativeCollective{Kind: transport.NativeAllGather, Size: w.Size()}
		if err := l.engine.Collective(ctx, f, w.Group.Members, c, nil, nil); err != nil {
			return err
		}
	}
	for t := range j.Ins {
		f.Round = uint32(t)
		l.startRound(t)
		if err := w.operandByEngine(ctx, j, t, f); err != nil {
			return err
		}
	}
	l.endRound(nil)
	return nil
}

// operandByEngine carries out operand t of a job. Inputs that are squared, and a shard that lies in its own input, are
// staged.
func (w *Way) operandByEngine(ctx context.Context, j *Job, t int, f transport.Call) error {
	contract, rank, dtype := j.Collective.Contract(), w.Group.Rank, kernel.Type(j.DTypes[t])
	c := w.native(&j.Ask, j.DTypes[t], j.elements[t])
	in, out := j.Ins[t], j.Outs[t]
	src, dst := in, out
	if !j.Reads(rank) {
		src = nil
	}
	if !j.Writes(rank) {
		dst = nil
	}
	squares, shares := 0, 0
	if j.Reduction.Square {
		squares = len(src)
	}
	if contract.Combines && contract.Output == schedule.Own && memory.Overlap(dst, src) {
		shares = len(dst)
	}
	if squares+shares > 0 {
		squared, shard := w.Carrier.stage(squares, shares)
		if squares > 0 {
			kernel.Square(dtype)(squared, src)
			src = squared
		}
		if shares > 0 {
			dst = shard
		}
	}
	spreads := contract.Input == schedule.AtRoot && contract.Output == schedule.Whole
	if spreads { // one buffer, which at the root is only read
		if rank == j.Root {
			dst = src
		}
		src = nil
	}
	if err := w.engine.Collective(ctx, f, w.Group.Members, c, dst, src); err != nil {
		return err
	}
	if j.Reduction.Divide && len(dst) > 0 {
		kernel.Divide(dtype)(dst, dst, w.Size())
	}
	if j.Writes(rank) && memory.Address(dst) != memory.Address(out) {
		copy(out, dst)
	}
	return nil
}
