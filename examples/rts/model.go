package main

import (
	"context"
	"errors"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// model is the training step of all replicas as a program of package ir, and a session of it.
type model struct {
	session *ir.Session
	step    *rts.Step
	params  []*rts.Variable
	shareStreams
	rate, number *ir.Stream
	loss, norm   *ir.Stream // norm is nil without clipping
}

// sharding splits the parameters over all replicas. One replica has nobody to share with, and keeps plain remote
// variables.
func (cfg config) sharding() rts.Sharding {
	s := rts.Sharding{Options: cfg.me.Counted(gcl.Options{Method: cfg.method, Reproducible: true})}
	if cfg.replicas == 1 {
		s.Over = 1
	}
	return s
}

// newModel builds the program and makes a session of it, in which the parameters begin as start.
func newModel(ctx context.Context, cfg config, rows int, s rts.Sharding, storage remote.Storage,
	start []float32) (*model, error) {
	p := ir.New(cfg.replicas)
	remote.UseStorage(p, storage)
	m := &model{shareStreams: newShareStreams(p, cfg.micro, rows)}
	m.rate = p.HostToAll("rate", ir.Spec{DType: tensor.F32})
	m.number = p.HostToAll("step", ir.Spec{DType: tensor.I32})
	err := cut(start, func(_ int, of param, part []float32) error {
		data, err := tensor.FromSlice(part, of.shape...)
		if err != nil {
			return err
		}
		shard, err := s.ShardShape(of.shape, cfg.replicas)
		if err != nil {
			return err
		}
		buffer := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: shard})
		m.params = append(m.params, rts.RemoteVariable(p, data, buffer, 0, s, remote.Name(of.name)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	main := p.Main()
	images, labels, weights := main.HostLoad(m.images), main.HostLoad(m.labels), main.HostLoad(m.weights)
	hidden := p.CreateGraph(hiddenLayer, imagesSpec(rows), params[0].spec(), params[1].spec())
	loss := p.CreateGraph(lossLayer, hiddenSpec(rows), labelsSpec(rows), weightsSpec(rows), params[2].spec(),
		params[3].spec())
	trainer := rts.Trainer{Optimizer: rts.Adam{}, ClipNorm: cfg.clip, BucketBytes: cfg.bucket, Overlap: cfg.overlap,
		CheckFinite: cfg.finite}
	if cfg.micro > 1 {
		trainer.Accumulate = cfg.micro
	}
	m.step = trainer.Step([]rts.Layer{
		{Graph: hidden, Inputs: []*ir.Tensor{images}, Params: m.params[:2]},
		{Graph: loss, Inputs: []*ir.Tensor{labels, weights}, Params: m.params[2:]},
	}, main.HostLoad(m.rate), main.HostLoad(m.number))
	m.loss = store(p, "loss", collective.Comm{Options: s.Options}.AllReduce(m.step.Outputs[0], gcl.Mean))
	if m.step.Norm != nil {
		m.norm = store(p, "norm", m.step.Norm)
	}
	if m.session, err = ir.NewSession(p, cfg.me.Session(ctx)); err != nil {
		return nil, err
	}
	if err := m.session.Enter(); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// close ends the session. Buffers in files are then complete.
func (m *model) close() error { return m.session.Close() }

// read copies the parameters, whole, to flat.
func (m *model) read(flat []float32) error {
	return cut(flat, func(i int, _ param, part []float32) error {
		t, err := m.params[i].Read(m.session)
		if err != nil {
			return err
		}
		v, err := tensor.Of[float32](t)
		copy(part, v)
		return err
	})
}

// store gives the host a tensor, by a stream of its own.
func store(p *ir.Program, name string, t *ir.Tensor) *ir.Stream {
	s := p.DeviceToHost(name, t.Spec())
	p.Main().HostStore(s, t)
	return s
}

// stepper makes steps of a model, whose inputs and outputs it keeps.
type stepper struct {
	model   *model
	in, out map[*ir.Stream]*tensor.Tensor
	losses  []float32 // after a step, of each replica of this process
	norms   []float32 // likewise; nil without clipping
}

// newStepper makes a stepper that feeds a model with shares.
func newStepper(m *model, from *shares) (*stepper, error) {
	s := &stepper{model: m, out: map[*ir.Stream]*tensor.Tensor{}}
	var err error
	if s.in, err = m.feed(m.session, from); err != nil {
		return nil, err
	}
	if s.losses, err = addStream[float32](m.session, m.loss, s.out); err != nil || m.norm == nil {
		return s, err
	}
	s.norms, err = addStream[float32](m.session, m.norm, s.out)
	return s, err
}

// addStream makes the host's tensor of a stream, and returns its elements.
func addStream[T tensor.Element](session *ir.Session, stream *ir.Stream,
	to map[*ir.Stream]*tensor.Tensor) ([]T, error) {
	spec := session.HostSpec(stream)
	t, err := tensor.New(spec.DType, spec.Shape...)
	if err != nil {
		return nil, err
	}
	to[stream] = t
	return tensor.Of[T](t)
}

// run makes a step, the first being 1, on what the shares have been filled with.
func (s *stepper) run(ctx context.Context, rate float64, number int) error {
	s.in[s.model.rate], s.in[s.model.number] = tensor.Scalar(float32(rate)), tensor.Scalar(int32(number))
	return s.model.session.RunTo(ctx, s.out, s.in)
}
