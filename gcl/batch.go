package gcl

import (
	"cmp"
	"context"
	"fmt"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// Batch is a set of operands of one collective that is put together once and carried out in every step of a program.
// The first Run that follows an Append checks the operands, sums them up for the comparison between members and lays
// them out. Later runs begin where that is done. MPI calls that a persistent collective.
//
//	b := c.Batch(schedule.AllReduce, gcl.Mean, 0)
//	gcl.Append(b, weights, weights)
//	gcl.Append(b, bias, bias)
//	for ... {
//		err := b.Run(ctx) // of what is in the buffers now
//	}
//
// All members of the group put the same operands together, in the same order; the fingerprint of the call says whether
// they have. A Batch of one operand is the call on one slice: others may make it by AllReduceTo, say. A Batch of any
// other number is the call on several slices, AllReduceManyTo, and may have several types. Shapes of tensors are not
// compared between members.
//
// The Batch holds on to the buffers, which remain the caller's between runs. Runs of one Batch may come from several
// goroutines, and take turns as other calls do; Append must not come beside a Run. A function given to Start may run a
// Batch of its own Comm, or with the context that it is given one that was put together before:
//
//	work := c.Start(ctx, func(ctx context.Context, _ *gcl.Comm) error { return b.Run(ctx) })
type Batch struct {
	comm *Comm
	ask  ask

	// Only Append changes the operands of job. Its question and its layouts belong to whoever has the connection's
	// turn.
	job job.Job

	// Only Append changes these.
	fingerprint transport.Call // without number; of all operands, also those that are wrong
	given       int            // operands, also those that are wrong
	elements    int            // of them, each in the larger buffer
	bytes       int            // likewise
	operandErr  error          // of the first operand that is wrong

	what string // the name of an operand in errors, if they came in a list; else ""
	run  call   // of the Batch

	// Used by whoever has the connection's turn.
	sealed bool // the rest belongs to the operands as they are
	digest uint64
	err    error // of the arguments of Comm.Batch, else of an operand, else of operands that overlap
}

// Batch returns an empty Batch of a collective. op is the operator of one that combines, else 0; root is that of one
// that has a root, else 0. Run reports arguments that are wrong. A nil or zero Comm returns a Batch whose Run fails.
func (c *Comm) Batch(collective schedule.Collective, op Operator, root int) *Batch {
	b := &Batch{ask: newAsk(collective, op, root)}
	b.run.batch = b
	if c.check() == nil {
		b.comm = c
		b.empty()
	}
	return b
}

// empty takes the operands out. Their memory serves the next ones.
func (b *Batch) empty() {
	b.job.Empty()
	b.job.Ask = b.ask.Ask
	b.comm.describe(&call{ask: b.ask}, &b.fingerprint)
	b.fingerprint.DType = wire.ManyTensors
	b.given, b.elements, b.bytes, b.operandErr, b.sealed = 0, 0, 0, nil, false
}

// Append adds an operand: an input and a destination, of the lengths that the collective on one slice has, and with the
// same memory or apart as that allows. The destination lies apart from all other operands. Run reports an operand that
// is wrong, and a nil Batch.
func Append[T tensor.Element](b *Batch, dst, src []T) {
	if b == nil || b.comm == nil {
		return
	}
	b.append(call{
		ask: b.ask, dtype: tensor.DTypeOf[T](),
		dst: tensor.Bytes(dst), src: tensor.Bytes(src), dstLen: len(dst), srcLen: len(src),
	}, nil)
}

// AppendAll is Append of each destination with the input that has its place in the other list. Run reports lists of
// different lengths.
func AppendAll[T tensor.Element](b *Batch, dsts, srcs [][]T) {
	if b == nil || b.comm == nil {
		return
	}
	if len(dsts) != len(srcs) {
		b.sealed = false
		b.operandErr = cmp.Or(b.operandErr, fmt.Errorf("%d destinations for %d inputs", len(dsts), len(srcs)))
		return
	}
	for i, src := range srcs {
		Append(b, dsts[i], src)
	}
}

// AppendTensor is Append for tensors, whose shapes are as for Comm.Do.
func (b *Batch) AppendTensor(dst, src *tensor.Tensor) {
	if b == nil || b.comm == nil {
		return
	}
	k := call{ask: b.ask}
	err := b.comm.tensorsOf(&k, dst, src)
	b.append(k, err)
}

// AppendV is Append of an operand whose parts have lengths by counts, as in the ...V forms: AllGatherVTo and its like.
// There is one list of counts, by rank; of an all-to-all there are two: those sent, and those received. A Batch has
// counts for all of its operands or for none. The counts are copied. Run has the errors: those of Comm.Do.
func AppendV[T tensor.Element](b *Batch, dst, src []T, counts ...[]int) {
	if b == nil || b.comm == nil {
		return
	}
	n, err := countsOf(b.ask.Collective, counts)
	b.append(call{
		ask: b.ask, dtype: tensor.DTypeOf[T](), counts: n,
		dst: tensor.Bytes(dst), src: tensor.Bytes(src), dstLen: len(dst), srcLen: len(src),
	}, err)
}

// AppendTensorV is AppendV for tensors, whose counts and shapes are as for Comm.Do.
func (b *Batch) AppendTensorV(dst, src *tensor.Tensor, counts ...[]int) {
	if b == nil || b.comm == nil {
		return
	}
	k := call{ask: b.ask}
	err := b.comm.tensorsByCounts(&k, dst, src, counts)
	b.append(k, err)
}

// append adds an operand, or notes what is wrong with it.
func (b *Batch) append(k call, err error) {
	n := 0
	if err == nil {
		if err = b.comm.checkAsk(&b.ask); err == nil { // else it is not the operand's: see seal
			n, err = b.check(&k)
		}
	}
	b.add(&k, n, err)
}

// check looks at an operand beside those that are there, and returns the elements of its larger buffer.
func (b *Batch) check(k *call) (n int, err error) {
	switch {
	case b.Len() > 0 && b.job.ByCounts() != k.counts.given:
		return 0, errMixed
	case k.counts.received != nil:
		if err := checkBlockOperands(b.Len() + 1); err != nil {
			return 0, err
		}
	}
	return b.comm.checkCall(k)
}

// add adds an operand that has been checked, of n elements in the larger buffer, to the job. Of one that is wrong the
// fingerprint tells too, and the Trace: the call that is refused tells of it.
func (b *Batch) add(k *call, n int, err error) {
	b.sealed = false
	b.note(k.counted(b.comm.Size()))
	if err != nil {
		n = max(k.srcLen, k.dstLen)
	}
	b.elements += n
	b.bytes += n * k.dtype.Size()
	switch j := &b.job; {
	case b.operandErr != nil:
	case err != nil:
		b.operandErr = fmt.Errorf("%s %d: %w", cmp.Or(b.what, "operand"), b.Len(), err)
	default:
		j.Add(k.dst, k.src, k.dtype, n)
		if k.counts.given {
			j.AddParts(&k.parts)
		}
	}
}

// note has the fingerprint tell of an operand: of how many elements, and of which type with its marks.
func (b *Batch) note(count uint64, dtype uint8) {
	f := &b.fingerprint
	b.given++
	f.Count += count
	switch {
	case b.given == 1:
		f.DType = dtype
	case (f.DType^dtype)&^wire.DTypeMarks == 0:
		f.DType = wire.ManyTensors | dtype
	default: // of several types
		f.DType = wire.ManyTensors | dtype&wire.ByCounts
	}
	if b.what != "" {
		f.DType |= wire.ManyTensors
	}
}

// Len is the number of operands before the first that is wrong.
func (b *Batch) Len() int {
	if b == nil {
		return 0
	}
	return len(b.job.Ins)
}

// Run carries out the collective on all operands. Its errors are those of a call of the collective. Where the Batch was
// given arguments or operands that are wrong, the call is refused and nothing is sent. Run allocates nothing once it
// has run on the same operands.
func (b *Batch) Run(ctx context.Context) error {
	if b == nil || b.comm == nil {
		return newError("Run of a Batch that no Comm has made")
	}
	return b.comm.inTurnOf(ctx).do(ctx, &b.run)
}

// prepare completes the fingerprint of a run, and returns its job.
func (b *Batch) prepare(f *transport.Call) (*job.Job, error) {
	if !b.sealed {
		b.seal(&b.comm.conn.crossing, nil)
	}
	f.Digest = b.digest
	return &b.job, b.err
}

// several reports whether a run is the call on several operands.
func (b *Batch) several() bool { return b.given != 1 || b.what != "" }

// seal works out what all operands are together, which have come in l if that is not nil. It needs the connection's
// turn, unless nobody else has the Batch.
func (b *Batch) seal(x *crossing, l *list) {
	c, j := b.comm, &b.job
	b.sealed = true
	j.Scheduled, j.Published = job.KeptLayout{}, job.KeptLayout{}
	if b.err = c.checkAsk(&b.ask); b.err == nil {
		b.err = b.operandErr
	}
	if b.err == nil {
		b.err = x.check(cmp.Or(b.what, "operand"), j.Outs, j.Ins)
	}
	_, digest := b.ask.operator.agreed(c.digest)
	if b.several() {
		l.sumUp(j, digest)
		b.digest = j.Digest
	} else if b.err == nil {
		j.AskOne()
		b.digest = j.HashParts(digest)
	}
}

// describe describes a run to a Trace.
func (b *Batch) describe(e *TraceCall) {
	if e.ByCounts {
		e.Elements = b.elements
	}
	if b.several() {
		e.Tensors = b.given
	}
	e.Bytes = b.bytes
}

// checkBlockOperands bounds the operands of an all-to-all by counts: each has a message of its own from rank to rank.
func checkBlockOperands(n int) error {
	if n > transport.MaxTag+1 {
		return fmt.Errorf("%d tensors in an all-to-all by counts, want at most %d", n, transport.MaxTag+1)
	}
	return nil
}
