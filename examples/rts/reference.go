package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gogcl.dev/chunks"
	"gogcl.dev/ir"
	"gogcl.dev/rts/checkpoint"
	"gogcl.dev/tensor"
)

// reference is the same training on one replica, without package rts: the parameters and Adam's states are variables of
// package ir, whole. A step computes the micro-batches of all replicas in turn, and folds what comes of them as
// Options.Reproducible promises for a reduction by Mean: ((x0 + x1) + x2) + ..., by rank, and one division at the end.
//
//	micro-batch 0 ─▶ loss, gradients ─┐
//	micro-batch 1 ─▶ loss, gradients ─┼─▶ fold, divide by n ─▶ norm, clip ─▶ Adam
//	...                               ┘
//
// The norm is made of sums of squares, and these depend on how elements are grouped: it adds the squares of each
// shard, then the shards of a replica in the order of the parameters, then the replicas by rank.
type reference struct {
	session    *ir.Session
	variables  []*ir.Variable // of each parameter: its value, and Adam's two
	streams    streams
	loss, norm *ir.Stream
	stepper    *stepper
}

// fold combines one tensor of each replica, by rank.
type fold func(parts []*ir.Tensor) *ir.Tensor

// leftFold is ((x0 + x1) + x2) + ....
func leftFold(parts []*ir.Tensor) *ir.Tensor {
	sum := parts[0]
	for _, t := range parts[1:] {
		sum = ir.Add(sum, t)
	}
	return sum
}

// newReference builds the reference, which takes the same shares as the model that it is compared with.
func newReference(cfg config, from *shares, start []float32, sum fold) (*reference, error) {
	p := ir.New(1)
	r := &reference{streams: newStreams(p, from.rows)}
	if err := cut(start, func(_ int, of param, part []float32) error { return r.addVariables(p, of, part) }); err != nil {
		return nil, err
	}
	err := r.build(p, cfg, from.rows, sum)
	if err != nil {
		return nil, err
	}
	if r.session, err = ir.NewSession(p); err != nil {
		return nil, err
	}
	if err = r.session.Enter(); err == nil {
		r.stepper, err = newStepper(r.session, r.streams, from, r.loss, r.norm)
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

func (r *reference) close() error { return r.session.Close() }

// The names of what a parameter has beside its value, as package rts has them in checkpoints.
var adamStates = []string{".mean", ".square"}

// addVariables makes the variables of a parameter.
func (r *reference) addVariables(p *ir.Program, of param, start []float32) error {
	data, err := tensor.FromSlice(start, of.shape...)
	if err != nil {
		return err
	}
	zeros, err := tensor.New(tensor.F32, of.shape...)
	if err != nil {
		return err
	}
	r.variables = append(r.variables, p.Variable(data, ir.VariableName(of.name)))
	for _, state := range adamStates {
		r.variables = append(r.variables, p.Variable(zeros, ir.VariableName(of.name+state)))
	}
	return nil
}

// build adds a step to the program.
func (r *reference) build(p *ir.Program, cfg config, rows int, sum fold) error {
	main := p.Main()
	var values []*ir.Tensor
	for i := range params {
		values = append(values, r.variables[i*(1+len(adamStates))].Tensor)
	}
	b := newBackward(p, rows)
	losses, grads := make([]*ir.Tensor, cfg.replicas), make([][]*ir.Tensor, len(params))
	for rank := range cfg.replicas {
		images, labels, weights := main.HostLoad(r.streams.images), main.HostLoad(r.streams.labels), main.HostLoad(r.streams.weights)
		loss, of := b.run(main, images, labels, weights, values)
		losses[rank] = loss
		for i, g := range of {
			grads[i] = append(grads[i], g)
		}
	}
	mean := func(parts []*ir.Tensor) *ir.Tensor { return ir.DivScalar(sum(parts), float64(cfg.replicas)) }
	means := make([]*ir.Tensor, len(params))
	for i, parts := range grads {
		means[i] = mean(parts)
	}
	r.loss = p.DeviceToHost("loss", ir.Spec{DType: tensor.F32})
	main.HostStore(r.loss, mean(losses))
	if cfg.clip > 0 {
		norm, err := normOf(means, cfg.replicas, sum)
		if err != nil {
			return err
		}
		r.norm = p.DeviceToHost("norm", ir.Spec{DType: tensor.F32})
		main.HostStore(r.norm, norm)
		limit, one := main.Constant(tensor.Scalar(float32(cfg.clip))), main.Constant(tensor.Scalar(float32(1)))
		factor := ir.Select(ir.LessEqual(norm, limit), one, ir.Div(limit, norm))
		for i, g := range means {
			means[i] = ir.Mul(g, factor)
		}
	}
	rate, number := main.HostLoad(r.streams.rate), main.HostLoad(r.streams.number)
	for i, v := range values {
		states := r.variables[i*(1+len(adamStates))+1:]
		ir.Adam{}.Update(v, ir.AdamState{Mean: states[0].Tensor, Square: states[1].Tensor}, means[i], rate, number)
	}
	return nil
}

// normOf is the Euclidean norm of the gradients of all parameters, as replicas have it that hold a shard of each.
func normOf(grads []*ir.Tensor, replicas int, sum fold) (*ir.Tensor, error) {
	squares := make([]*ir.Tensor, replicas)
	for i, g := range grads {
		n := params[i].elements()
		c := chunks.PerRank(n, replicas)
		flat := ir.Reshape(g, n)
		if padding := c*replicas - n; padding > 0 {
			zeros, err := tensor.New(tensor.F32, padding)
			if err != nil {
				return nil, err
			}
			flat = ir.Concat(0, flat, g.Graph().Constant(zeros))
		}
		for rank := range replicas {
			s := ir.ReduceSum(ir.Square(ir.SliceAxis(flat, 0, rank*c, (rank+1)*c)))
			if squares[rank] != nil {
				s = ir.Add(squares[rank], s)
			}
			squares[rank] = s
		}
	}
	return ir.Sqrt(sum(squares)), nil
}

// backward is the layers' graphs and their gradients.
type backward struct {
	hidden, loss         *ir.Graph
	hiddenGrad, lossGrad *ir.GradInfo
}

func newBackward(p *ir.Program, rows int) *backward {
	b := &backward{
		hidden: p.CreateGraph(hiddenLayer, imagesSpec(rows), params[0].spec(), params[1].spec()),
		loss:   p.CreateGraph(lossLayer, hiddenSpec(rows), labelsSpec(rows), weightsSpec(rows), params[2].spec(), params[3].spec()),
	}
	in := b.hidden.Inputs()
	b.hiddenGrad = ir.Autodiff(b.hidden, ir.ForInputs(in[1], in[2]))
	in = b.loss.Inputs()
	b.lossGrad = ir.Autodiff(b.loss, ir.ForInputs(in[0], in[3], in[4]))
	return b
}

// run computes a micro-batch: its loss, and the gradient of each parameter.
func (b *backward) run(main *ir.Graph, images, labels, weights *ir.Tensor, values []*ir.Tensor) (loss *ir.Tensor, grads []*ir.Tensor) {
	first := main.CallWithInfo(b.hidden, nil, images, values[0], values[1])
	second := main.CallWithInfo(b.loss, nil, first.Outputs()[0], labels, weights, values[2], values[3])
	by := b.lossGrad.By(second)
	by[b.lossGrad.Grads[0]] = main.Constant(tensor.Scalar(float32(1)))
	above := main.CallWithInfo(b.lossGrad.Graph, by).Outputs()
	by = b.hiddenGrad.By(first)
	by[b.hiddenGrad.Grads[0]] = above[0]
	below := main.CallWithInfo(b.hiddenGrad.Graph, by).Outputs()
	return second.Outputs()[0], append(below, above[1:]...)
}

// check makes a step of the reference and compares loss and norm with what the replicas have, to the bit.
func (r *reference) check(ctx context.Context, s *stepper, rate float64, number int) error {
	if err := r.stepper.run(ctx, rate, number); err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	if err := compare("loss", s.losses, r.stepper.losses[0], number); err != nil || s.norms == nil {
		return err
	}
	return compare("norm of the gradients", s.norms, r.stepper.norms[0], number)
}

// compare returns an error for the first replica that has other bits than the reference.
func compare(what string, got []float32, want float32, number int) error {
	for replica, v := range got {
		if math.Float32bits(v) != math.Float32bits(want) {
			return fmt.Errorf("step %d: the %s is %v (%08x) on replica %d, and %v (%08x) in the reference",
				number, what, v, math.Float32bits(v), replica, want, math.Float32bits(want))
		}
	}
	return nil
}

// loaded is the reference's state for checkpoint.Load to write, under the names that package rts gives it, each
// tensor in one shard.
func (r *reference) loaded() []checkpoint.Tensor {
	var out []checkpoint.Tensor
	for i, p := range params {
		for k, state := range append([]string{""}, adamStates...) {
			v := r.variables[i*(1+len(adamStates))+k]
			out = append(out, checkpoint.Tensor{
				Name: p.name + state, DType: tensor.F32, Shape: p.shape, Shards: 1,
				Write: func(_ int, t *tensor.Tensor) error {
					whole, err := t.Reshape(p.shape...)
					if err != nil {
						return err
					}
					return r.session.Write(v, whole)
				},
			})
		}
	}
	return out
}
