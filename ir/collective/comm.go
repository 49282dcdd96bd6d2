package collective

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// Comm says among which replicas collectives are, and how they are carried out. The zero value is all replicas, with
// gcl's defaults. Its methods add operations; a group that the program's number of replicas does not allow, or options
// that gcl refuses, are errors, which stick to the program as all others do.
//
// All replicas run one program, so an output has one shape. Where lists make groups of different sizes, a collective
// whose output goes by the size (an all-gather, most reduce-scatters, an all-to-all) is an error.
type Comm struct {
	Group   commgroup.Group
	Options gcl.Options
}

// action is what a collective does.
type action interface {
	Name() string

	// infer is ir.Op's Infer, given the number of ranks in a group.
	infer(in []ir.Spec, ranks int) ([]ir.Spec, error)

	// bind is ir.Op's Bind, given the replica's Comm, once the specs have been checked.
	bind(m *ir.Memory, c *gcl.Comm) (func() error, error)

	gradient(b *ir.Backward, c Comm) []*ir.Tensor
}

// op is an action in a program.
type op struct {
	action
	comm     Comm
	program  *ir.Program // nil if there is none, after an error
	replicas int         // of the program, when it was built
}

// ordered is an op that sends: all collectives of a session have one connection, or one beside the replicas.
type ordered struct{ *op }

// OrderKey implements ir.Ordered.
func (o ordered) OrderKey() any { return networkKey{} }

// Repeatable implements ir.Repeatable.
func (o ordered) Repeatable() {}

// Kind implements ir.Kinded: how drawings colour it.
func (o ordered) Kind() string { return "collective" }

// inPlace is a collective whose outputs are its inputs, of which there are so many.
type inPlace struct {
	ordered
	tensors int
}

func (o inPlace) Name() string { return o.op.Name() + " in place" }

// Updates implements ir.Updater.
func (o inPlace) Updates() []int {
	var out []int
	for i := range o.tensors {
		out = append(out, i)
	}
	return out
}

// applyAlone adds an action that sends nothing to the graph of its inputs.
func (c Comm) applyAlone(a action, in ...*ir.Tensor) *ir.Tensor {
	return ir.Apply1(c.op(a, in[0]), nil, in...)
}

// op is an action in the program of a tensor.
func (c Comm) op(a action, t *ir.Tensor) *op {
	o := &op{action: a, comm: c}
	if t != nil && t.Graph() != nil {
		o.program = t.Graph().Program()
		o.replicas = o.program.Replicas()
	}
	return o
}

// Infer implements ir.Op.
func (o *op) Infer(in []ir.Spec) ([]ir.Spec, error) {
	layout, err := o.comm.Group.Resolve(o.replicas)
	if err != nil {
		return nil, err
	}
	if o.comm.Options != (gcl.Options{}) { // the defaults are never wrong, and asking takes time
		c, err := gcl.New(seat{replicas: o.replicas})
		if err != nil {
			return nil, err
		}
		if _, err = o.comm.of(c); err != nil {
			return nil, err
		}
	}
	return o.outputs(in, layout)
}

// outputs are the specs of the outputs, which are the same in groups of all sizes.
func (o *op) outputs(in []ir.Spec, layout commgroup.Layout) ([]ir.Spec, error) {
	var out []ir.Spec
	for g := range layout.Groups() {
		if g > 0 && (layout.Size() > 0 || layout.SizeOf(g) == layout.SizeOf(g-1)) {
			continue
		}
		of, err := o.infer(in, layout.SizeOf(g))
		switch {
		case err != nil && layout.Size() == 0:
			return nil, fmt.Errorf("in group %v of %v: %w", layout.Members(g), o.comm.Group, err)
		case err != nil:
			return nil, err
		case g > 0 && !slices.EqualFunc(of, out, ir.Spec.Equal):
			return nil, fmt.Errorf("the output in group %v is %v, and in group %v it is %v: want groups of equal size, "+
				"not %v", layout.Members(0), out, layout.Members(g), of, o.comm.Group)
		}
		out = of
	}
	return out, nil
}

// of is c's group and options, of a replica's connection.
func (c Comm) of(all *gcl.Comm) (*gcl.Comm, error) {
	own, err := all.Group(c.Group)
	if err != nil {
		return nil, err
	}
	return own.With(c.Options)
}

// Bind implements ir.Op.
func (o *op) Bind(m *ir.Memory) (func() error, error) {
	n, err := o.networkOf(m)
	if err != nil {
		return nil, err
	}
	c, err := o.comm.of(n.comms[m.Replica])
	if err != nil {
		return nil, err
	}
	out, err := o.infer(specs(m.In), c.Size())
	if err != nil {
		return nil, err
	}
	for i, s := range specs(m.Out) {
		if !s.Equal(out[i]) {
			return nil, fmt.Errorf("the output was %v when the program had %d replicas, and is %v now that it has %d",
				s, o.replicas, out[i], m.Replicas)
		}
	}
	n.use(m.Replica, c)
	return o.bind(m, c.Named(m.Name))
}

// scratcher is an action that needs memory beside its inputs and outputs.
type scratcher interface {
	action
	scratch(in []ir.Spec, ranks int) int // bytes
}

// ScratchBytes implements ir.Scratcher.
func (o *op) ScratchBytes(in []ir.Spec) int {
	a, is := o.action.(scratcher)
	if !is {
		return 0
	}
	layout, err := o.comm.Group.Resolve(o.replicas)
	if err != nil {
		return 0
	}
	most := 0
	for g := range layout.Groups() {
		if g == 0 || layout.Size() == 0 {
			most = max(most, a.scratch(in, layout.SizeOf(g)))
		}
	}
	return most
}

func specs(tensors []*tensor.Tensor) []ir.Spec {
	var out []ir.Spec
	for _, t := range tensors {
		out = append(out, ir.SpecOf(t))
	}
	return out
}

// Gradient implements ir.Differentiable.
func (o *op) Gradient(b *ir.Backward) []*ir.Tensor { return o.gradient(b, o.comm) }

// String returns what the operation does and among whom, as in "all-reduce ADD CONSECUTIVE(2)".
func (o *op) String() string {
	parts := []string{o.Name()}
	if s, is := o.action.(fmt.Stringer); is && s.String() != "" {
		parts = append(parts, s.String())
	}
	if a, is := o.action.(several); is && len(a.of) > 1 {
		parts = append(parts, "of several")
	}
	if o.comm.Group != (commgroup.Group{}) {
		parts = append(parts, o.comm.Group.String())
	}
	return strings.Join(parts, " ")
}

// String returns the same with "in place".
func (o inPlace) String() string {
	return o.Name() + strings.TrimPrefix(o.op.String(), o.op.Name())
}

// seat is an endpoint that only knows how many replicas there are, for Comms that are asked what gcl says of groups and
// options.
type seat struct {
	transport.Endpoint
	replicas int
}

func (s seat) Rank() int { return 0 }
func (s seat) Size() int { return s.replicas }

// one is the error of a collective on one tensor that is given another number, or nil.
func one(in []ir.Spec) error {
	if len(in) != 1 {
		return errors.New("want one tensor")
	}
	return nil
}

// valid returns the specs of outputs, or an error if there can be no such tensors.
func valid(dtype tensor.DType, shape ...int) ([]ir.Spec, error) {
	s := ir.Spec{DType: dtype, Shape: slices.Clone(shape)}
	if err := s.Shape.Validate(); err != nil {
		return nil, fmt.Errorf("the output: %w", err)
	}
	return []ir.Spec{s}, nil
}
