package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

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
	op := s.operator
	if s.own {
		op = must(gcl.ParseOperator(ownOperatorName(s.dtype)))
	}
	var dsts, srcs, wants []*tensor.Tensor
	for k, elements := range s.elements {
		dst, src, want := s.operand(c.Rank(), c.Size(), number+7*k, elements)
		if len(s.alloced) > 0 && s.alloced[c.Replica()] {
			for _, t := range []**tensor.Tensor{&dst, &src} {
				moved, err := inAlloc(c, *t)
				if err != nil {
					return err
				}
				*t = moved
			}
		}
		dsts, srcs, wants = append(dsts, dst), append(srcs, src), append(wants, want)
	}
	if len(dsts) == 1 {
		err = c.Do(ctx, s.collective, dsts[0], srcs[0], op, s.root)
	} else {
		b := c.Batch(s.collective, op, s.root)
		for k := range dsts {
			b.AppendTensor(dsts[k], srcs[k])
		}
		err = b.Run(ctx)
	}
	if err != nil {
		kept.add(append(dsts, srcs...))
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
	if len(s.alloced) > 0 && s.alloced[c.Replica()] {
		return free(c, append(dsts, srcs...))
	}
	return nil
}

// kept is the tensors of calls that have failed.
var kept keeping

// keeping is tensors, and what was in them. A call that has returned leaves its buffers alone, at other replicas too.
type keeping struct {
	mu   sync.Mutex // guards what follows
	now  [][]byte
	then [][]byte
}

func (k *keeping) add(tensors []*tensor.Tensor) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range tensors {
		if t != nil {
			k.now, k.then = append(k.now, t.Bytes()), append(k.then, bytes.Clone(t.Bytes()))
		}
	}
}

// changed counts the tensors that are not what they were.
func (k *keeping) changed() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, b := range k.now {
		if !bytes.Equal(b, k.then[i]) {
			n++
		}
	}
	return n
}

// inAlloc returns a copy of a tensor in memory of gcl.Alloc. There is none of nil, or of nothing.
func inAlloc(c *gcl.Comm, t *tensor.Tensor) (*tensor.Tensor, error) {
	if t == nil || len(t.Bytes()) == 0 {
		return t, nil
	}
	b, err := gcl.Alloc[byte](c, len(t.Bytes()))
	if err != nil {
		return nil, err
	}
	copy(b, t.Bytes())
	return tensor.View(t.DType(), t.Shape(), b)
}

// free gives back the memory of inAlloc.
func free(c *gcl.Comm, tensors []*tensor.Tensor) (err error) {
	for _, t := range tensors {
		if t != nil && len(t.Bytes()) > 0 {
			err = errors.Join(err, gcl.Free(c, t.Bytes()))
		}
	}
	return err
}

// inOperator is called in each call of an operator of torture's own, if there is one.
var inOperator atomic.Pointer[func()]

// ownOperators makes torture's own operators, by element type: those of ADD.
var ownOperators = map[tensor.DType]func() error{
	tensor.F32: makeOwn[float32], tensor.I64: makeOwn[int64], tensor.U8: makeOwn[uint8],
}

func ownOperatorName(d tensor.DType) string { return fmt.Sprintf("torture_%v", d) }

// makeOwn makes the operator of a type.
func makeOwn[T interface {
	tensor.Element
	~float32 | ~int64 | ~uint8
}]() error {
	_, err := gcl.NewOperator(ownOperatorName(tensor.DTypeOf[T]()), func(dst, a, b []T) {
		if f := inOperator.Load(); f != nil {
			(*f)()
		}
		for i := range dst {
			dst[i] = a[i] + b[i]
		}
	})
	return err
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
