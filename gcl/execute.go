package gcl

import (
	"context"
	"errors"
	"fmt"

	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// Execute carries out a schedule on the members' buffers: of a collective of the program's own, which is a
// schedule.CustomContract, or of a built-in one. The schedule is for as many ranks as the group has, and the same on
// all members.
//
// Of a CustomContract src holds the chunks of the rank's Input one after the other, and dst those of its Output. All
// chunks have the length times their size that the buffers say: with a contract of no sizes an Input of m chunks has a
// length of m times a chunk's. A buffer that holds no chunk is empty, and a rank holds one at least. dst is src itself,
// or shares no memory with it; it must be apart where the two hold different chunks. Of a built-in collective the
// lengths are those of its own function.
//
// op is the operator of a contract that combines, else 0. Mean divides each chunk by the number of its contributors,
// and SquareAdd squares a single contribution too. Local is none of a schedule.
//
// The first call proves the schedule, which takes what schedule.Check takes, and keeps what it learns; a schedule that
// does not prove is the error of the call, and nothing is sent. Later calls know it by its address: nobody changes a
// schedule that Execute has had, nor its contract. The 64 schedules that a group was given last are kept. Others are
// proved again. A call like an earlier one allocates nothing.
//
// The schedule goes by messages, and with the options Implementation Syncful by rounds on peer memory; Method has no
// say. With Options.Reproducible it must fold in the order of the ranks.
//
// Few schedules have a rank wait for all others. So a member in another call, or with another schedule, is ErrMismatch
// on all members in this call, or for those that have returned in their next call or in Close: see [Broadcast].
func Execute[T tensor.Element](ctx context.Context, c *Comm, s *schedule.Schedule, dst, src []T, op Operator) error {
	return c.do(ctx, &call{ask: ask{operator: op}, executes: true, schedule: s, dtype: tensor.DTypeOf[T](),
		dst: tensor.Bytes(dst), src: tensor.Bytes(src), dstLen: len(dst), srcLen: len(src)})
}

// Execute is [Execute] on tensors, whose dtype need be known only when the program runs. Shapes do not matter, but for
// how many elements they have. A tensor may be nil where the rank's buffer holds nothing, or does not count.
func (c *Comm) Execute(ctx context.Context, s *schedule.Schedule, dst, src *tensor.Tensor, op Operator) error {
	k := call{ask: ask{operator: op}, executes: true, schedule: s, invalid: checkGivenTensors(dst, src)}
	if k.invalid == nil {
		k.tensors(dst, src)
	}
	return c.do(ctx, &k)
}

// checkGivenTensors checks two tensors, of which one may be nil.
func checkGivenTensors(dst, src *tensor.Tensor) error {
	switch {
	case dst == nil && src == nil:
		return errors.New("the input and the destination are nil")
	case src != nil && !src.DType().Valid():
		return errors.New("the input: it is the zero Tensor, which has no dtype")
	case dst != nil && !dst.DType().Valid():
		return errors.New("the destination: it is the zero Tensor, which has no dtype")
	case dst != nil && src != nil && dst.DType() != src.DType():
		return fmt.Errorf("the destination has dtype %v, and the input %v", dst.DType(), src.DType())
	}
	return nil
}

// measure completes a call by what its schedule says of itself, which is not proved yet, and returns how many elements
// members must have alike: those of a chunk of size 1, or of a built-in collective's input.
func (c *Comm) measure(k *call) (n int, err error) {
	s := k.schedule
	if s == nil {
		return 0, errors.New("nil schedule")
	}
	op := k.operator
	k.ask = newAsk(s.Collective, op, s.Root)
	if s.Size != c.Size() {
		return 0, fmt.Errorf("a schedule of %d ranks, and the group has %d", s.Size, c.Size())
	}
	combines := s.Contract().Combines
	switch {
	case combines && op.Accepts(k.dtype) == nil && !op.Combines():
		return 0, fmt.Errorf("the operator %v sends nothing: want one that combines, or no call", op)
	case combines:
		if err := op.Accepts(k.dtype); err != nil {
			return 0, err
		}
	case op != 0:
		return 0, fmt.Errorf("the schedule combines nothing: its operator is %v, want 0", op)
	}
	if s.Collective == schedule.Custom {
		return s.Custom.Elements(c.Rank(), k.srcLen, k.dstLen)
	}
	if err := c.checkAsk(&k.ask); err != nil {
		return 0, err
	}
	return k.count(c.Size()), nil
}

// checkGiven proves the schedule of a call that has been measured, and checks its buffers. It returns the elements of
// the larger buffer, and of a contract of a program's own those of all chunks together.
func (c *Comm) checkGiven(k *call) (g *rounds.Given, total int, err error) {
	s, n := k.schedule, k.alike
	if g, err = c.caller.Give(s); err != nil {
		return nil, 0, err
	}
	switch {
	case s.Contract().Combines && k.Reduction.InOrder:
		return nil, 0, fmt.Errorf("a schedule takes operands to commute, which those of the operator %v do not: want a "+
			"function of the collective, as AllReduce", k.operator)
	case s.Again && !k.operator.again():
		return nil, 0, fmt.Errorf("a contribution may count again by the schedule, which is wrong for the operator %v: "+
			"want MIN, MAX, LOGICAL_AND, LOGICAL_OR, or one of NewOperator that is Idempotent", k.operator)
	case c.options.Reproducible && s.Contract().Combines && !g.Report.RankOrder:
		return nil, 0, fmt.Errorf("the schedule does not fold in the order of the ranks, as Options.Reproducible asks: %w",
			errors.ErrUnsupported)
	case s.Custom == nil:
		total, err = c.checkOperand(k)
		return g, total, err
	}
	chunks := g.Total()
	if chunks > 0 && n > maxBytes/k.dtype.Size()/chunks {
		return nil, 0, fmt.Errorf("%d elements of %v for each of %d sizes of chunks take more than %d bytes", n, k.dtype,
			chunks, int64(maxBytes))
	}
	return g, n * chunks, checkGivenOverlap(g.OutputApart(), k)
}

// checkGivenOverlap refuses a destination that shares memory with the input, unless it may be the input, and is.
func checkGivenOverlap(apart bool, k *call) error {
	dst, src := memory.Address(k.dst), memory.Address(k.src)
	switch {
	case !memory.Overlap(k.dst, k.src):
		return nil
	case apart:
		return errors.New("the destination overlaps the input; it must lie apart, since by the schedule the two hold " +
			"different chunks")
	case dst != src:
		return errors.New("the destination overlaps the input; it must lie apart or be the input itself")
	}
	return nil
}
