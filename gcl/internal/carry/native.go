package carry

import (
	"context"
	"errors"
	"fmt"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// native is an engine's collective for a call on one operand, of n elements in the larger buffer.
func (w *Caller) native(a *job.Ask, dtype tensor.DType, n int) transport.NativeCollective {
	c := transport.NativeCollective{
		Collective: a.Collective, DType: tensor.U8, Root: a.Root, Size: w.Size(), Bytes: n * dtype.Size(),
	}
	if a.Collective.Contract().Combines {
		c.Operator, c.DType = transport.NativeOperator(a.Reduction.Fold), dtype
	}
	return c
}

// HasEngine reports whether the transport has collectives of its own.
func (l *Carrier) HasEngine() bool { return l.engine != nil }

// AgreementRounds is how many messages, one after the other, it takes the members to agree on a call of the engine.
func (w *Caller) AgreementRounds() int { return w.engine.Agreement(w.Size()) }

// EngineRefuses says why an engine cannot carry out a call on one operand, of n elements in the larger buffer and in
// these parts; nil: it can. All members get the same answer.
func (w *Caller) EngineRefuses(a *job.Ask, dtype tensor.DType, n int, parts *pack.Parts) error {
	contract := a.Collective.Contract()
	if w.Size() == 1 || a.Local() || a.Collective == schedule.Barrier {
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
	case contract.Combines && a.Reduction.Fold.Own():
		return errors.New("method native does not take an operator of the program's own, which engines have none like: want " +
			"another method")
	case contract.Combines && !c.Operator.Accepts(dtype):
		return fmt.Errorf("method native does not combine %v, which engines have no type for: want float32 or another "+
			"method", dtype)
	}
	if err := w.engine.Accepts(c); err != nil {
		return fmt.Errorf("method native: the transport's engine does not take the call: %w", err)
	}
	return nil
}

// byEngine carries out a job by collectives of the transport's own engine, one for each operand, whose number is the
// round of its call. All members agree on each before it begins, so that none is: see Caller.unconfirmed.
func (w *Caller) byEngine(ctx context.Context, j *job.Job, r *route.Route, fingerprint *transport.Call) error {
	l, f := w.Carrier, *fingerprint // the caller's stays as it is
	f.Method = uint8(r.Method)
	w.chosen(j, r, max(len(j.Ins), 1))
	if len(j.Ins) == 0 { // the members still agree that there is nothing
		l.StartRound(0)
		c := transport.NativeCollective{Collective: schedule.AllGather, DType: tensor.U8, Size: w.Size()}
		if err := l.engine.Collective(ctx, f, w.Group.Members, c, nil, nil); err != nil {
			return err
		}
	}
	for t := range j.Ins {
		f.Round = uint32(t)
		l.StartRound(t)
		if err := w.operandByEngine(ctx, j, t, f); err != nil {
			return err
		}
	}
	l.EndRound(nil)
	return nil
}

// operandByEngine carries out operand t of a job. Inputs that are squared, and a shard that lies in its own input, are
// staged.
func (w *Caller) operandByEngine(ctx context.Context, j *job.Job, t int, f transport.Call) error {
	contract, rank, dtype := j.Collective.Contract(), w.Group.Rank, kernel.Type(j.DTypes[t])
	c := w.native(&j.Ask, j.DTypes[t], j.Elements[t])
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
		squared, shard := w.staging.Pair(squares, shares)
		if squares > 0 {
			kernel.Square(dtype)(squared, src)
			src = squared
		}
		if shares > 0 {
			dst = shard
		}
	}
	if err := w.engine.Collective(ctx, f, w.Group.Members, c, dst, src); err != nil {
		return err
	}
	if j.Reduction.Divide && len(dst) > 0 {
		kernel.Divide(dtype)(dst, dst, w.Size())
	}
	if shares > 0 {
		copy(out, dst)
	}
	return nil
}
