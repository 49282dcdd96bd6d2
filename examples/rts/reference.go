package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gogcl.dev/ir"
	"gogcl.dev/rts/checkpoint"
	"gogcl.dev/tensor"
)

// reference is the same training on one replica, without package rts and without ops.Adam. A program makes the mean
// gradients of a step, given the parameters; the parameters and Adam's states are slices, whole, and Adam is plain Go.
type reference struct {
	session    *ir.Session
	in, out    map[*ir.Stream]*tensor.Tensor
	loss, norm []float32 // of the last step; norm is nil without clipping
	states     []state   // of each parameter
	rate       float32
	made       int // steps, with those before -resume
}

// state is a parameter and what Adam keeps of it.
type state struct {
	param
	value, mean, square []float32
	grad                []float32 // in the last step, clipped
}

// newReference builds the reference, which takes the same shares as the model that it is compared with.
func newReference(cfg config, from *shares, start []float32, sum fold) (*reference, error) {
	p := ir.New(1)
	g, err := newGradients(p, cfg, from.rows, sum)
	if err != nil {
		return nil, err
	}
	r := &reference{rate: float32(cfg.rate), out: map[*ir.Stream]*tensor.Tensor{}}
	if r.session, err = ir.NewSession(p); err != nil {
		return nil, err
	}
	if r.in, err = g.feed(r.session, from); err != nil {
		return nil, errors.Join(err, r.close())
	}
	if err := errors.Join(r.session.Enter(), r.bind(g, start)); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// bind makes the host's side of the program's streams.
func (r *reference) bind(g *gradients, start []float32) (err error) {
	if r.loss, err = addStream[float32](r.session, g.loss, r.out); err != nil {
		return err
	}
	if g.norm != nil {
		if r.norm, err = addStream[float32](r.session, g.norm, r.out); err != nil {
			return err
		}
	}
	return cut(start, func(i int, of param, part []float32) error {
		s := state{param: of, mean: make([]float32, len(part)), square: make([]float32, len(part))}
		if s.value, err = addStream[float32](r.session, g.params[i], r.in); err != nil {
			return err
		}
		copy(s.value, part)
		s.grad, err = addStream[float32](r.session, g.grads[i], r.out)
		r.states = append(r.states, s)
		return err
	})
}

func (r *reference) close() error { return r.session.Close() }

// adam makes a step of Adam, the first being 1: what Kingma and Ba propose, with every number rounded where ops.Adam
// rounds it.
func (s state) adam(rate float32, step int) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	size := float32(float64(rate) / (1 - math.Pow(beta1, float64(step))))
	scale := float32(1 / math.Sqrt(1-math.Pow(beta2, float64(step))))
	for i, g := range s.grad {
		mean := flushed(s.mean[i] + float32((1-beta1)*(g-s.mean[i])))
		square := flushed(s.square[i] + float32((1-beta2)*(float32(g*g)-s.square[i])))
		root := float32(math.Sqrt(float64(square)))
		value := s.value[i] - float32(size*mean)/(float32(root*scale)+epsilon)
		s.mean[i], s.square[i], s.value[i] = oneNaN(mean), oneNaN(square), oneNaN(value)
	}
}

// oneNaN is v, or of the many NaNs the one that package ir has.
func oneNaN(v float32) float32 {
	if v != v {
		return float32(math.NaN())
	}
	return v
}

// check makes the step that the model has made, and compares all that there is to the bit: loss and norm on each
// replica, and each shard of parameters and states.
func (r *reference) check(ctx context.Context, m *model, s *stepper) error {
	r.made++
	if err := r.session.RunTo(ctx, r.out, r.in); err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	for _, s := range r.states {
		s.adam(r.rate, r.made)
	}
	err := compare("loss", m.session.Own(), s.losses, r.loss[0])
	if err == nil && r.norm != nil {
		err = compare("norm of the gradients", m.session.Own(), s.norms, r.norm[0])
	}
	if err == nil {
		err = r.compareStates(m)
	}
	if err != nil {
		return fmt.Errorf("step %d: %w", r.made, err)
	}
	return nil
}

// compare returns an error for the first replica of this process that has other bits than the reference.
func compare(what string, own []int, got []float32, want float32) error {
	for i, v := range got {
		if math.Float32bits(v) != math.Float32bits(want) {
			return differ(fmt.Sprintf("the %s on replica %d", what, own[i]), v, want)
		}
	}
	return nil
}

func differ(what string, got, want float32) error {
	return fmt.Errorf("%s is %v (%08x), and %v (%08x) in the reference",
		what, got, math.Float32bits(got), want, math.Float32bits(want))
}

// compareStates compares the shards that the replicas of this process have now.
func (r *reference) compareStates(m *model) error {
	tensors, err := m.step.Checkpoint(m.session)
	if err != nil {
		return err
	}
	rest := r.named()
	for _, t := range tensors {
		want := rest[t.Name]
		delete(rest, t.Name)
		for k := range t.Shards {
			if t.Own != nil && !t.Own(k) {
				continue
			}
			shard, err := t.Read(k)
			if err != nil {
				return err
			}
			got, err := tensor.Of[float32](shard)
			if err != nil {
				return err
			}
			part := want[min(k*len(got), len(want)):min((k+1)*len(got), len(want))] // what is more is padding
			for i, v := range part {
				if math.Float32bits(got[i]) != math.Float32bits(v) {
					return differ(fmt.Sprintf("element %d of %s, in shard %d,", k*len(got)+i, t.Name, k), got[i], v)
				}
			}
		}
	}
	if len(rest) > 0 {
		return fmt.Errorf("the model has %d tensors, and the reference %d more", len(tensors), len(rest))
	}
	return nil
}

// named are the parameters and states under the names that package rts gives them.
func (r *reference) named() map[string][]float32 {
	names := map[string][]float32{}
	for _, s := range r.states {
		names[s.name], names[s.name+".mean"], names[s.name+".square"] = s.value, s.mean, s.square
	}
	return names
}

// load goes on from a checkpoint after so many steps. It asks for each tensor in one piece, and then compares what the
// model has loaded in shards.
func (r *reference) load(ctx context.Context, from *checkpoint.Directory, steps int, m *model) error {
	r.made = steps
	var whole []checkpoint.Tensor
	names := r.named()
	for _, s := range r.states {
		for _, name := range []string{s.name, s.name + ".mean", s.name + ".square"} {
			whole = append(whole, checkpoint.Tensor{
				Name: name, DType: tensor.F32, Shape: s.shape, Shards: 1,
				Write: func(_ int, t *tensor.Tensor) error {
					from, err := tensor.Of[float32](t)
					copy(names[name], from)
					return err
				},
			})
		}
	}
	if _, err := from.Load(ctx, whole); err != nil {
		return err
	}
	return r.compareStates(m)
}

// flushed is v, or 0 for what is tiny: see ops.AdamState.
func flushed(v float32) float32 {
	if -0x1p-100 < v && v < 0x1p-100 {
		return 0
	}
	return v
}
