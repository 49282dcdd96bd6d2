package main

import (
	"context"
	"math"
	"math/rand/v2"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

// trainer is a session of a program that makes a step of training, data parallel.
type trainer struct {
	size    size
	session *ir.Session
	in, out map[*ir.Stream]*tensor.Tensor
	chars   []int32 // of in: windows of all replicas
	targets []int32
	rate    []float32 // of in, by replica
	step    []int32
	loss    []float32 // of out, by replica
	vars    [][]*ir.Variable
}

// newTrainer builds the program for batches of so many windows on each replica, and enters a session of it.
func newTrainer(replicas int, s size, windows int, method methods.Method, seed uint64) (*trainer, error) {
	p := ir.New(replicas)
	main := p.Main()
	m := newModel(p, s, windows, meanLoss)
	begin, err := m.begin(rand.New(rand.NewPCG(seed, weightStream)))
	if err != nil {
		return nil, err
	}
	spec := ir.Spec{DType: tensor.I32, Shape: tensor.Shape{windows, s.window}}
	chars, targets := p.HostToDevice("characters", spec), p.HostToDevice("targets", spec)
	rates, steps := p.HostToDevice("rate", ir.Spec{DType: tensor.F32}), p.HostToDevice("step", ir.Spec{DType: tensor.I32})
	losses := p.DeviceToHost("loss", ir.Spec{DType: tensor.F32})

	t := &trainer{size: s, in: map[*ir.Stream]*tensor.Tensor{}, out: map[*ir.Stream]*tensor.Tensor{}}
	var before, params []*ir.Tensor
	var calls []*ir.CallInfo
	for i, l := range m.layers {
		in := before
		switch i {
		case 0:
			in = append(in, main.HostLoad(chars))
		case len(m.layers) - 1:
			in = append(in, main.HostLoad(targets))
		}
		var vars []*ir.Variable
		for k, param := range l.params {
			v := p.Variable(begin[i][k], ir.VariableName(l.name+" "+param.name))
			in, params, vars = append(in, v.Tensor), append(params, v.Tensor), append(vars, v)
		}
		t.vars = append(t.vars, vars)
		call := main.CallWithInfo(l.graph, nil, in...)
		calls, before = append(calls, call), call.Outputs()
	}
	gradients := map[*ir.Graph]*ir.GradInfo{}
	grads := make([]*ir.Tensor, 0, len(params))
	back := main.Constant(tensor.Scalar(float32(1)))
	for i := len(calls) - 1; i >= 0; i-- {
		l := m.layers[i]
		info := gradients[l.graph]
		if info == nil {
			info = ir.Autodiff(l.graph)
			gradients[l.graph] = info
		}
		by := info.By(calls[i])
		by[info.Grads[0]] = back
		out := main.CallWithInfo(info.Graph, by).Outputs()
		if i > 0 {
			back, out = out[0], out[1:]
		}
		grads = append(out[:len(out):len(out)], grads...)
	}
	sums := collective.Comm{Options: gcl.Options{Method: method}}.AllReduceMany(append(grads, before[0]), gcl.Mean)
	rate, step := main.HostLoad(rates), main.HostLoad(steps)
	for i, v := range params {
		zeros, err := tensor.New(tensor.F32, v.Shape()...)
		if err != nil {
			return nil, err
		}
		ir.Adam{Beta2: 0.99}.Update(v, ir.AdamState{
			Mean:   p.Variable(zeros, ir.VariableName(v.Name()+" mean")).Tensor,
			Square: p.Variable(zeros, ir.VariableName(v.Name()+" square")).Tensor,
		}, sums[i], rate, step)
	}
	main.HostStore(losses, sums[len(params)])
	session, err := ir.NewSession(p)
	if err != nil {
		return nil, err
	}
	t.session = session
	for _, stream := range []*ir.Stream{chars, targets, rates, steps} {
		if err == nil {
			err = room(session, t.in, stream)
		}
	}
	if err == nil {
		err = room(session, t.out, losses)
	}
	if err == nil {
		t.chars, err = tensor.Of[int32](t.in[chars])
	}
	if err == nil {
		t.targets, err = tensor.Of[int32](t.in[targets])
	}
	if err == nil {
		t.rate, err = tensor.Of[float32](t.in[rates])
	}
	if err == nil {
		t.step, err = tensor.Of[int32](t.in[steps])
	}
	if err == nil {
		t.loss, err = tensor.Of[float32](t.out[losses])
	}
	if err == nil {
		err = session.Enter()
	}
	if err != nil {
		session.Close()
		return nil, err
	}
	return t, nil
}

// run makes a step with what is in chars and targets.
func (t *trainer) run(ctx context.Context, step int, rate float64) (loss float64, err error) {
	for i := range t.rate {
		t.rate[i], t.step[i] = float32(rate), int32(step)
	}
	if err := t.session.RunTo(ctx, t.out, t.in); err != nil {
		return math.NaN(), err
	}
	return float64(t.loss[0]), nil
}

// close ends the session.
func (t *trainer) close() error { return t.session.Close() }

// values reads the parameters.
func (t *trainer) values() (values, error) {
	all := make(values, len(t.vars))
	for i, layer := range t.vars {
		for _, v := range layer {
			data, err := t.session.Read(v)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], data)
		}
	}
	return all, nil
}
