package main

import (
	"context"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// forward is a session of a program that runs a model forward, with parameters that can be replaced.
type forward struct {
	size    size
	session *ir.Session
	in, out map[*ir.Stream]*tensor.Tensor
	chars   []int32 // of in
	params  [][]*ir.Variable
}

// build makes the rest of a program: it calls the layers one by one and stores the output of the last. targets is what
// the last layer has beside that of the one before, or nil. It enters a session.
func (f *forward) build(p *ir.Program, m *model, v values, targets, out *ir.Stream) error {
	f.size = m.size
	main := p.Main()
	chars := p.HostToDevice("characters", m.layers[0].graph.Inputs()[0].Spec())
	before := []*ir.Tensor{main.HostLoad(chars)}
	for i, l := range m.layers {
		in := before
		if i == len(m.layers)-1 && targets != nil {
			in = append(in, main.HostLoad(targets))
		}
		var params []*ir.Variable
		for k, param := range l.params {
			variable := p.Variable(v[i][k], ir.VariableName(l.name+" "+param.name))
			params, in = append(params, variable), append(in, variable.Tensor)
		}
		f.params = append(f.params, params)
		before = main.Call(l.graph, in...)
	}
	main.HostStore(out, before[0])

	session, err := ir.NewSession(p)
	if err != nil {
		return err
	}
	f.session = session
	f.in, f.out = map[*ir.Stream]*tensor.Tensor{}, map[*ir.Stream]*tensor.Tensor{}
	if targets != nil {
		err = room(session, f.in, targets)
	}
	if err == nil {
		err = room(session, f.in, chars)
	}
	if err == nil {
		err = room(session, f.out, out)
	}
	if err == nil {
		f.chars, err = tensor.Of[int32](f.in[chars])
	}
	if err == nil {
		err = session.Enter()
	}
	if err != nil {
		session.Close()
	}
	return err
}

// room makes the tensor on the host's side of a stream.
func room(s *ir.Session, of map[*ir.Stream]*tensor.Tensor, stream *ir.Stream) (err error) {
	spec := s.HostSpec(stream)
	of[stream], err = tensor.New(spec.DType, spec.Shape...)
	return err
}

// use replaces the parameters.
func (f *forward) use(v values) error {
	for i, layer := range f.params {
		for k, param := range layer {
			if err := f.session.Write(param, v[i][k]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *forward) run(ctx context.Context) error { return f.session.RunTo(ctx, f.out, f.in) }

// close ends the session.
func (f *forward) close() error { return f.session.Close() }
