package ir

import (
	"errors"
	"fmt"

	"gogcl.dev/tensor"
)

const boolType = tensor.Bool

// Stream moves tensors between the host and the replicas, in one direction.
type Stream struct {
	program *Program
	index   int // in the program
	name    string
	sp      Spec
	toHost  bool
	shared  bool // all replicas load the same tensor
}

// HostToDevice makes a stream from the host, by which each replica loads tensors of spec s. The name is for errors and
// drawings. A spec that is not valid is an error, which sticks.
func (p *Program) HostToDevice(name string, s Spec) *Stream { return p.stream(name, s, false) }

// HostToAll makes a stream from the host by which all replicas load the same tensor of spec s, such as the rate and the
// number of a training step: the host gives it once, without a dimension of the replicas. In a job every process gives
// it, and that it is the same everywhere is the caller's to see to. The rest is as for HostToDevice.
func (p *Program) HostToAll(name string, s Spec) *Stream {
	out := p.stream(name, s, false)
	out.shared = true
	return out
}

// DeviceToHost makes a stream to the host, by which each replica stores tensors of spec s. The rest is as for
// HostToDevice.
func (p *Program) DeviceToHost(name string, s Spec) *Stream { return p.stream(name, s, true) }

func (p *Program) stream(name string, sp Spec, toHost bool) *Stream {
	p = p.orNone()
	s := &Stream{program: p, index: len(p.streams), name: name, sp: sp.clone(), toHost: toHost}
	err := sp.check()
	if err == nil && p.sessions {
		err = errSession
	}
	if err != nil {
		p.main.refuse("stream", caller(""), named(name, err))
		return s
	}
	p.streams = append(p.streams, s)
	return s
}

// Name returns the stream's name.
func (s *Stream) Name() string {
	if s == nil {
		return ""
	}
	return s.name
}

// Spec returns the spec of one tensor of one replica.
func (s *Stream) Spec() Spec {
	if s == nil {
		return Spec{}
	}
	return s.sp.clone()
}

// String returns the text form, as in `host to device "x"`.
func (s *Stream) String() string {
	switch {
	case s == nil:
		return "no stream"
	case s.toHost:
		return fmt.Sprintf("device to host %q", s.name)
	case s.shared:
		return fmt.Sprintf("host to all %q", s.name)
	}
	return fmt.Sprintf("host to device %q", s.name)
}

type hostLoadOp struct{ stream *Stream }

func (o *hostLoadOp) Name() string   { return "host load" }
func (o *hostLoadOp) OrderKey() any  { return o.stream }
func (o *hostLoadOp) String() string { return fmt.Sprintf("host load %q", o.stream.name) }
func (o *hostLoadOp) moves() *Stream { return o.stream }
func (o *hostLoadOp) tied()          {}

func (o *hostLoadOp) Infer([]Spec) ([]Spec, error) {
	if o.stream.toHost {
		return nil, fmt.Errorf("stream %q leads to the host", o.stream.name)
	}
	return []Spec{o.stream.sp}, nil
}

func (o *hostLoadOp) Bind(m *Memory) (func() error, error) {
	port, dst := m.session.replica(m.Replica).port(o.stream), m.Out[0].Bytes()
	return func() error {
		copy(dst, port.next(len(dst)))
		return nil
	}, nil
}

type hostStoreOp struct{ stream *Stream }

func (o *hostStoreOp) Name() string   { return "host store" }
func (o *hostStoreOp) OrderKey() any  { return o.stream }
func (o *hostStoreOp) String() string { return fmt.Sprintf("host store %q", o.stream.name) }
func (o *hostStoreOp) moves() *Stream { return o.stream }
func (o *hostStoreOp) tied()          {}

func (o *hostStoreOp) Infer(in []Spec) ([]Spec, error) {
	if !o.stream.toHost {
		return nil, fmt.Errorf("stream %q leads to the replicas", o.stream.name)
	}
	if !in[0].Equal(o.stream.sp) {
		return nil, fmt.Errorf("stream %q is of %v", o.stream.name, o.stream.sp)
	}
	return nil, nil
}

func (o *hostStoreOp) Bind(m *Memory) (func() error, error) {
	port, src := m.session.replica(m.Replica).port(o.stream), m.In[0].Bytes()
	return func() error {
		copy(port.next(len(src)), src)
		return nil
	}, nil
}

// HostLoad adds a load from a stream, and returns what is loaded: each time that it runs, the stream's next tensor.
// Errors, which stick: no stream, one of another program or to the host.
func (g *Graph) HostLoad(s *Stream) *Tensor {
	g = g.orNone()
	if !g.owns("host load", s) {
		return g.broken()
	}
	return apply(&hostLoadOp{s}, g, caller(""), nil)[0].Named(s.name)
}

// HostStore adds a store of a tensor to a stream, as its next one. Errors, which stick: no stream, one of another
// program or from the host, a tensor that is not of the stream's spec.
func (g *Graph) HostStore(s *Stream, t *Tensor) {
	g = g.orNone()
	if g.owns("host store", s) {
		apply(&hostStoreOp{s}, g, caller(""), []*Tensor{t})
	}
}

// owns makes it an error that sticks if a stream is not of the graph's program.
func (g *Graph) owns(op string, s *Stream) bool {
	var err error
	switch {
	case s == nil:
		err = errors.New("no stream")
	case s.program != g.program:
		err = fmt.Errorf("stream %q is of another program", s.name)
	default:
		return true
	}
	g.refuse(op, caller(""), err)
	return false
}

// port is a replica's end of a stream while a session runs.
type port struct {
	data   []byte // the host's tensor
	first  int    // byte of the replica's tensor in a transfer
	stride int    // bytes of a transfer, of all replicas of this process
	at     int    // transfers made in this run
}

// next is where the next tensor is.
func (p *port) next(bytes int) []byte {
	lo := p.at*p.stride + p.first
	p.at++
	return p.data[lo : lo+bytes]
}
