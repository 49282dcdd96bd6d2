package main

import (
	"context"
	"fmt"
	"sync"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// wrongError says that a result is not what it must be.
type wrongError struct{ err error }

func (e *wrongError) Error() string { return "WRONG: " + e.err.Error() }
func (e *wrongError) Unwrap() error { return e.err }

// run carries out the program. begin is told of each step, in order, before it begins. corrupt is the step of which one
// byte of the result is changed before it is looked at, or -1.
func (p *plan) run(ctx context.Context, c *gcl.Comm, begin func(i int) error, corrupt int) error {
	comms := []*gcl.Comm{c}
	for len(comms) < p.lanes {
		d, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		comms = append(comms, d)
	}
	for i := 0; i < len(p.program); {
		last := i + 1
		for last < len(p.program) && p.program[last].together {
			last++
		}
		errs := make([]error, last-i)
		var works sync.WaitGroup
		for k := i; k < last; k++ {
			if err := begin(k); err != nil {
				works.Wait()
				return err
			}
			s := &p.program[k]
			works.Go(func() { errs[k-i] = s.run(ctx, comms[s.lane], k, k == corrupt) })
		}
		works.Wait()
		for k, err := range errs {
			if err != nil {
				return fmt.Errorf("step %d: %w", i+k, err)
			}
		}
		i = last
	}
	return nil
}

// run carries out a step and compares the results. number is the step's.
func (s *step) run(ctx context.Context, c *gcl.Comm, number int, corrupt bool) error {
	c, err := c.Group(s.group)
	if err == nil {
		c, err = c.With(s.options)
	}
	if err != nil {
		return &wrongError{err}
	}
	if s.barrier {
		return c.Barrier(ctx)
	}
	var dsts, srcs, wants []*tensor.Tensor
	for k, elements := range s.elements {
		dst, src, want := s.operand(c.Rank(), c.Size(), number+7*k, elements)
		dsts, srcs, wants = append(dsts, dst), append(srcs, src), append(wants, want)
	}
	if len(dsts) == 1 {
		err = c.Do(ctx, s.collective, dsts[0], srcs[0], s.operator, s.root)
	} else {
		b := c.Batch(s.collective, s.operator, s.root)
		for k := range dsts {
			b.AppendTensor(dsts[k], srcs[k])
		}
		err = b.Run(ctx)
	}
	if err != nil {
		return err
	}
	for k := range dsts {
		if wants[k] == nil {
			continue
		}
		if b := dsts[k].Bytes(); corrupt && len(b) > 0 {
			b[len(b)/2] ^= 1
		}
		if err := oracle.CheckTensor(fmt.Sprintf("%v, tensor %d", s, k), dsts[k], wants[k]); err != nil {
			return &wrongError{err}
		}
	}
	return nil
}

// operand makes a tensor's input and destination at a rank, and the result that it must have; nil where there is none.
// The data differs from step to step, so that what is left of the step before is found wrong.
func (s *step) operand(rank, ranks, shift, elements int) (dst, src, want *tensor.Tensor) {
	contract := s.collective.Contract()
	whole := elements
	if contract.PerRank() {
		whole = elements * ranks
	}
	if s.collective == schedule.ReduceScatter {
		whole = elements
	}
	length := whole // of an input
	if contract.Input == schedule.Own {
		length = elements
	}
	op := s.operatorName()
	inputs := oracle.InputTensors(s.dtype, op, ranks, length+shift)
	for r, t := range inputs {
		inputs[r] = must(tensor.New(s.dtype, length))
		copy(inputs[r].Bytes(), t.Bytes()[shift*s.dtype.Size():])
	}
	outputs := oracle.OutputTensors(oracle.Call{Collective: s.collective, Operator: op, Root: s.root}, inputs)
	src, want = inputs[rank], outputs[rank]
	atRoot := rank == s.root
	if contract.Output == schedule.AtRoot && !atRoot {
		want = nil
	}
	if want != nil {
		dst = must(tensor.New(s.dtype, want.Shape()...))
		for i := range dst.Bytes() { // which no result has everywhere
			dst.Bytes()[i] = 0x55
		}
	}
	// The shapes that the collective has on tensors.
	rows := func(t *tensor.Tensor) *tensor.Tensor {
		if t == nil {
			return nil
		}
		return must(t.Reshape(ranks, t.Len()/ranks))
	}
	switch {
	case contract.Input == schedule.Blocks:
		src, dst, want = rows(src), rows(dst), rows(want)
	case contract.Input == schedule.Own:
		dst, want = rows(dst), rows(want)
	case contract.Deals():
		if src = rows(src); !atRoot {
			src = nil
		}
	}
	return dst, src, want
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
