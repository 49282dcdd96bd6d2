package collective

import (
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
)

// probe is an operation for tests: a copy, which calls a function first.
type probe struct {
	call func(m *ir.Memory) error
}

func (p probe) Name() string                          { return "probe" }
func (p probe) Infer(in []ir.Spec) ([]ir.Spec, error) { return in, nil }
func (p probe) Gradient(b *ir.Backward) []*ir.Tensor  { return []*ir.Tensor{b.Grad(0)} }
func (p probe) Bind(m *ir.Memory) (func() error, error) {
	return func() error {
		if err := p.call(m); err != nil {
			return err
		}
		copy(m.Out[0].Bytes(), m.In[0].Bytes())
		return nil
	}, nil
}

// Probe adds a copy of t that calls f first.
func Probe(t *ir.Tensor, f func(m *ir.Memory) error) *ir.Tensor {
	return ir.Apply1(probe{f}, nil, t)
}

// started is a collective that runs beside its replica, as those in started graphs do, until the ended of the same
// running.
type started struct {
	ordered
	running *running
}

type running struct {
	before func(m *ir.Memory) error // the collective, on the replica's companion
	done   map[int]chan error       // by replica
}

func (o started) Bind(m *ir.Memory) (func() error, error) {
	own := *m
	own.Beside = true
	run, err := o.ordered.Bind(&own)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	o.running.done[m.Replica] = done
	return func() error {
		go func() {
			err := o.running.before(&own)
			if err == nil {
				err = run()
			}
			done <- err
		}()
		return nil
	}, nil
}

type ended struct{ running *running }

func (o ended) Name() string                          { return "ended" }
func (o ended) Infer(in []ir.Spec) ([]ir.Spec, error) { return in[:1], nil }
func (o ended) Updates() []int                        { return []int{0} }
func (o ended) Bind(m *ir.Memory) (func() error, error) {
	done := o.running.done[m.Replica]
	return func() error { return <-done }, nil
}

// AllReduceBeside starts an all-reduce beside the replica, with a call of before first, and returns what ends it: a
// function that adds the wait, and returns its output.
func AllReduceBeside(c Comm, t *ir.Tensor, operator gcl.Operator, before func(m *ir.Memory) error) func() *ir.Tensor {
	r := &running{before, map[int]chan error{}}
	out := ir.Apply1(started{ordered{c.op(allReduce{operator}, t)}, r}, nil, t)
	return func() *ir.Tensor { return ir.Apply1(ended{r}, nil, out, t) } // t stays as it is until then
}
