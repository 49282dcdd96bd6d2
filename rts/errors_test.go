package rts_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

func listed(groups ...[]int) commgroup.Group {
	g, err := commgroup.Lists(groups)
	if err != nil {
		panic(err)
	}
	return g
}

func consecutive(size int) commgroup.Group {
	return commgroup.Group{Type: commgroup.Consecutive, Size: size}
}

// parts is what layers of a trainer are made of, in a program with 2 or 4 replicas.
type parts struct {
	x, y, rate, step *ir.Tensor
	w, v             *rts.Variable
	dense, loss      *ir.Graph
}

func newParts(t *testing.T, p *ir.Program) parts {
	main := p.Main()
	zeros := func(shape ...int) *tensor.Tensor {
		x, err := tensor.New(tensor.F32, shape...)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	variable := func() *rts.Variable {
		b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{4 / p.Replicas()}})
		return rts.RemoteVariable(p, zeros(2, 2), b, 0, rts.Sharding{})
	}
	out := parts{
		x: main.Constant(zeros(3, 2)), y: main.Constant(zeros(3, 2)),
		rate: main.Constant(tensor.Scalar(float32(1))), step: main.Constant(tensor.Scalar(int32(1))),
		w: variable(), v: variable(),
	}
	out.dense = p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.MatMul(in[0], in[1])}
	}, out.x, out.w.Spec())
	out.loss = p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.ReduceMean(ops.Square(ops.Sub(in[0], in[1])))}
	}, out.x, out.y)
	return out
}

// layers are a model without errors.
func (c parts) layers() []rts.Layer {
	return []rts.Layer{
		{Graph: c.dense, Inputs: []*ir.Tensor{c.x}, Params: []*rts.Variable{c.w}},
		{Graph: c.dense, Params: []*rts.Variable{c.v}},
		{Graph: c.loss, Inputs: []*ir.Tensor{c.y}},
	}
}

// TestErrors has every error that sticks to a program, and that it names the caller's line.
func TestErrors(t *testing.T) {
	adam := rts.Trainer{Optimizer: rts.Adam{}}
	zeros, err := tensor.New(tensor.F32, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	step := func(change func(c *parts, l []rts.Layer) []rts.Layer) func(p *ir.Program) {
		return func(p *ir.Program) {
			c := newParts(t, p)
			layers := change(&c, c.layers())
			adam.Step(layers, c.rate, c.step)
		}
	}
	trainer := func(tr rts.Trainer) func(p *ir.Program) {
		return func(p *ir.Program) {
			c := newParts(t, p)
			tr.Step(c.layers(), c.rate, c.step)
		}
	}
	for _, c := range []struct {
		name     string
		replicas int
		build    func(p *ir.Program)
		want     string
	}{
		{"alone", 1, func(p *ir.Program) { rts.NewVariable(p, zeros, rts.Sharding{}) }, "1 replica has nobody to share a tensor with"},
		{"alone in a group", 4, func(p *ir.Program) { rts.NewVariable(p, zeros, rts.Sharding{Group: consecutive(1)}) }, "1 replica has nobody"},
		{"over too many", 4, func(p *ir.Program) { rts.NewVariable(p, zeros, rts.Sharding{Over: 8}) }, "over 8 replicas of a group of 4, want a divisor of 4"},
		{"over no divisor", 4, func(p *ir.Program) { rts.NewVariable(p, zeros, rts.Sharding{Over: 3}) }, "over 3 replicas of a group of 4, want a divisor of 4"},
		{"over fewer than none", 4, func(p *ir.Program) { rts.NewVariable(p, zeros, rts.Sharding{Over: -1}) }, "over -1 replicas, want 1 to 4"},
		{"group", 4, func(p *ir.Program) { rts.NewVariable(p, zeros, rts.Sharding{Group: consecutive(3)}) }, "3"},
		{"groups of different sizes", 5, func(p *ir.Program) {
			rts.NewVariable(p, zeros, rts.Sharding{Group: listed([]int{0, 3}, []int{1, 2, 4})})
		}, "groups of different sizes LISTS({0 3} {1 2 4}): all shards are of one shape, want groups of equal size, or Over"},
		{"over no divisor of a group by lists", 5, func(p *ir.Program) {
			rts.NewVariable(p, zeros, rts.Sharding{Group: listed([]int{0, 3}, []int{1, 2, 4}), Over: 2})
		}, "over 2 replicas of a group of 3, want a divisor of 3"},
		{"no data", 2, func(p *ir.Program) { rts.NewVariable(p, nil, rts.Sharding{}) }, "no data"},
		{"groups of data", 4, func(p *ir.Program) {
			rts.NewVariable(p, floats(t, []float32{1, 2, 3}), rts.Sharding{Group: consecutive(2)})
		}, "data of shape (3,), want a leading dimension of the 2 groups"},
		{"options that the Sharding says", 4, func(p *ir.Program) { rts.NewVariable(p, zeros, rts.Sharding{}, remote.Groups(consecutive(1))) }, "remote.Groups or remote.Sharded, and the Sharding says that"},
		{"another option", 4, func(p *ir.Program) {
			rts.NewVariable(p, zeros, rts.Sharding{Over: 1}, remote.Sharded(consecutive(2)))
		}, "remote.Groups or remote.Sharded, and the Sharding says that"},
		{"no buffer", 2, func(p *ir.Program) { rts.RemoteVariable(p, zeros, nil, 0, rts.Sharding{}) }, "no buffer"},
		{"no entry", 2, func(p *ir.Program) {
			b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2}})
			rts.RemoteVariable(p, zeros, b, 1, rts.Sharding{})
		}, "the offset is 1"},
		{"buffer of another shape", 2, func(p *ir.Program) {
			b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{4}})
			rts.RemoteVariable(p, zeros, b, 0, rts.Sharding{})
		}, "4"},
		{"meta shape", 2, func(p *ir.Program) {
			b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2}}, 2)
			rts.RemoteVariable(p, zeros, b, 0, rts.Sharding{})
			rts.RemoteVariable(p, floats(t, make([]float32, 4)), b, 1, rts.Sharding{})
		}, "meta shape"},
		{"gather of another size", 2, func(p *ir.Program) { rts.Sharding{}.Gather(p.Main().Constant(zeros), 3, 3) }, "parts of 4 elements, want 5"},
		{"gather alone", 1, func(p *ir.Program) { rts.Sharding{}.Gather(p.Main().Constant(zeros), 2, 2) }, "1 replica has nobody"},
		{"gather of nothing", 2, func(p *ir.Program) {
			rts.Sharding{}.GatherMany([]*ir.Tensor{p.Main().Constant(zeros), nil}, []tensor.Shape{{4, 2}, {4, 2}})
		}, "input 1 is nil"},
		{"gather of other shapes", 2, func(p *ir.Program) { rts.Sharding{}.GatherMany([]*ir.Tensor{p.Main().Constant(zeros)}, nil) }, "0 shapes for 1 shards"},
		{"shard alone", 1, func(p *ir.Program) { rts.Sharding{}.Shard(p.Main().Constant(zeros)) }, "1 replica has nobody"},
		{"reduce by another operator", 2, func(p *ir.Program) { rts.Sharding{}.ReduceToShard(p.Main().Constant(zeros), gcl.Max) }, "the operator MAX, want ADD or MEAN"},
		{"norm of integers", 2, func(p *ir.Program) {
			rts.Sharding{}.GlobalNorm([]*ir.Tensor{p.Main().Constant(tensor.Scalar(int32(1)))})
		}, "shard 0 is of int32, want float32"},
		{"clip to nothing", 2, func(p *ir.Program) {
			x := p.Main().Constant(tensor.Scalar(float32(1)))
			rts.Clip([]*ir.Tensor{x}, x, 0)
		}, "a limit of 0, want a finite number above 0"},
		{"clip to nothing in float32", 2, func(p *ir.Program) {
			x := p.Main().Constant(tensor.Scalar(float32(1)))
			rts.Clip([]*ir.Tensor{x}, x, 1e-50)
		}, "a limit of 1e-50, want a finite number above 0"},
		{"clip without a norm", 2, func(p *ir.Program) { rts.Clip([]*ir.Tensor{p.Main().Constant(zeros)}, nil, 1) }, "no norm"},

		{"no optimiser", 2, trainer(rts.Trainer{}), "no Optimizer"},
		{"negative norm", 2, trainer(rts.Trainer{Optimizer: rts.SGD{}, ClipNorm: -1}), "ClipNorm -1"},
		{"norm that is 0 in float32", 2, trainer(rts.Trainer{Optimizer: rts.SGD{}, ClipNorm: 1e-50}), "ClipNorm 1e-50"},
		{"norm that is none", 2, trainer(rts.Trainer{Optimizer: rts.SGD{}, ClipNorm: math.NaN()}), "ClipNorm NaN"},
		{"negative bucket", 2, trainer(rts.Trainer{Optimizer: rts.SGD{}, BucketBytes: -1}), "BucketBytes -1"},
		{"no layers", 2, step(func(*parts, []rts.Layer) []rts.Layer { return nil }), "no layers"},
		{"no graph", 2, step(func(_ *parts, l []rts.Layer) []rts.Layer { return append(l[:2:2], rts.Layer{}) }), "layer 2: no graph"},
		{"another program", 2, step(func(_ *parts, l []rts.Layer) []rts.Layer {
			l[1].Graph = newParts(t, ir.New(2)).dense
			return l
		}), "layer 1: its graph is of another program"},
		{"no input", 2, step(func(_ *parts, l []rts.Layer) []rts.Layer { l[2].Inputs = []*ir.Tensor{nil}; return l }), "layer 2: input 0 is no tensor of the main graph"},
		{"no parameter", 2, step(func(_ *parts, l []rts.Layer) []rts.Layer { l[1].Params = []*rts.Variable{nil}; return l }), "layer 1: parameter 0 is no variable of the program"},
		{"too few inputs", 2, step(func(_ *parts, l []rts.Layer) []rts.Layer { l[2].Inputs = nil; return l }), "layer 2: its graph has 2 inputs, want 1: 1 outputs of the layer before, 0 Inputs, 0 Params"},
		{"other inputs", 2, step(func(c *parts, l []rts.Layer) []rts.Layer { l[0].Inputs[0] = c.rate; return l }), "layer 0: input 0 of its graph is"},
		{"no parameters", 2, step(func(_ *parts, l []rts.Layer) []rts.Layer {
			l[2].Inputs = append(l[0].Inputs, l[2].Inputs...)
			return l[2:]
		}), "no layer has parameters"},
		{"no loss", 2, step(func(_ *parts, l []rts.Layer) []rts.Layer { return l[:2] }), "the first output of the last layer is the loss, a scalar of floats"},
		{"rate", 2, step(func(c *parts, l []rts.Layer) []rts.Layer { c.rate = c.x; return l }), "the rate is not a scalar of float32"},
		{"step", 2, step(func(c *parts, l []rts.Layer) []rts.Layer { c.step = c.rate; return l }), "the step is not a scalar of int32"},
		{"no step", 2, step(func(c *parts, l []rts.Layer) []rts.Layer { c.step = nil; return l }), "the step is not a scalar of int32"},
		{"another sharding", 2, step(func(_ *parts, l []rts.Layer) []rts.Layer {
			p := l[0].Graph.Program()
			b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2, 2}})
			l[1].Params[0] = rts.RemoteVariable(p, zeros, b, 0, rts.Sharding{Over: 1})
			return l
		}), "layer 1: parameter 0 has another Sharding"},
		{"several groups", 4, func(p *ir.Program) {
			c := newParts(t, p)
			s := rts.Sharding{Group: consecutive(2)}
			b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2}})
			two, err := tensor.New(tensor.F32, 2, 2, 2)
			if err != nil {
				t.Fatal(err)
			}
			v := rts.RemoteVariable(p, two, b, 0, s)
			adam.Step([]rts.Layer{{Graph: c.dense, Inputs: []*ir.Tensor{c.x}, Params: []*rts.Variable{v}}}, c.rate,
				c.step)
		}, "parameter 0 has 2 groups"},
		{"wide parameters", 2, step(func(c *parts, l []rts.Layer) []rts.Layer {
			p := l[0].Graph.Program()
			b := remote.NewBuffer(p, ir.Spec{DType: tensor.I32, Shape: tensor.Shape{2}})
			ints, err := tensor.New(tensor.I32, 2, 2)
			if err != nil {
				t.Fatal(err)
			}
			l[1].Params[0] = rts.RemoteVariable(p, ints, b, 0, rts.Sharding{})
			return l
		}), "parameter 0 is of int32, want float32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := ir.New(c.replicas)
			c.build(p)
			_, err := ir.NewSession(p)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want one with %q", err, c.want)
			}
			if !strings.Contains(err.Error(), "errors_test.go:") {
				t.Errorf("error %q does not name the caller's line", err)
			}
		})
	}
}

// TestErrorsOfNothing has what is wrong where there is no program that an error could stick to.
func TestErrorsOfNothing(t *testing.T) {
	rts.NewVariable(nil, nil, rts.Sharding{})
	rts.RemoteVariable(nil, nil, nil, 0, rts.Sharding{})
	rts.Sharding{}.Gather(nil, 1)
	rts.Sharding{}.Shard(nil)
	rts.Sharding{}.ReduceToShard(nil, gcl.Add)
	rts.Sharding{}.GlobalNorm(nil)
	rts.Clip(nil, nil, 1)
	p := ir.New(1)
	out := rts.Trainer{}.Step(nil, nil, nil).Outputs
	ops.Add(p.Main().Constant(tensor.Scalar(float32(1))), out[0])
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "on no tensor") {
		t.Errorf("error %v, want that the loss is what an operation on no tensor has returned", err)
	}
}

// badDisk keeps nothing.
type badDisk struct{ remote.Memory }

type badEntries struct{ remote.Entries }

func (badDisk) Open(s remote.Spec) (remote.Entries, error) {
	e, err := remote.Memory{}.Open(s)
	return badEntries{e}, err
}

func (badEntries) Load(int, []byte) error { return errors.New("bad disk") }

// TestRunErrorNamesTheParameter: all parameters of a model are loaded by one line.
func TestRunErrorNamesTheParameter(t *testing.T) {
	p := ir.New(2)
	remote.UseStorage(p, badDisk{})
	c := newParts(t, p)
	b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2}})
	layers := c.layers()
	layers[0].Params[0] = rts.RemoteVariable(p, floats(t, make([]float32, 4), 2, 2), b, 0, rts.Sharding{},
		remote.Name("decoder.weight"))
	rts.Trainer{Optimizer: rts.SGD{}}.Step(layers, c.rate, c.step)
	s := newSession(t, p)
	if _, err := s.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), `"decoder.weight": bad disk`) {
		t.Errorf("error %v, want one that names the parameter", err)
	}
}

// TestSessionOfAnother has the questions about a step that are asked with a session of another program.
func TestSessionOfAnother(t *testing.T) {
	m := newModel(t, 2, rts.Sharding{}, rts.Trainer{Optimizer: rts.Adam{}})
	other := newSession(t, ir.New(1))
	for _, s := range []*ir.Session{nil, other} {
		if _, err := m.step.Memory(s); err == nil || !strings.Contains(err.Error(), "another program") {
			t.Errorf("Memory: %v", err)
		}
		if _, err := m.step.Checkpoint(s); err == nil || !strings.Contains(err.Error(), "another program") {
			t.Errorf("Checkpoint: %v", err)
		}
	}
}
