package rts_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/rts/checkpoint"
	"gogcl.dev/tensor"
)

// TestCheckpoint saves a training on four replicas and goes on with it on others.
func TestCheckpoint(t *testing.T) {
	const before, after = 5, 6
	s := rts.Sharding{Options: reproducible}
	trainer := rts.Trainer{Optimizer: rts.Adam{}, ClipNorm: 0.5}
	all := newModel(t, 4, s, trainer).train(t, 0, before+after)

	dir := t.TempDir()
	m := newModel(t, 4, s, trainer)
	saved := m.train(t, 0, before)
	tensors, err := m.step.Checkpoint(m.session)
	if err != nil {
		t.Fatal(err)
	}
	if len(tensors) != 3*len(paramShapes) {
		t.Errorf("%d tensors, want %d", len(tensors), 3*len(paramShapes))
	}
	if err := checkpoint.Save(t.Context(), dir, tensors, map[string]string{"step": fmt.Sprint(before)}); err != nil {
		t.Fatal(err)
	}
	for _, replicas := range []int{1, 2, 3, 4, 8} {
		t.Run(fmt.Sprintf("n=%d", replicas), func(t *testing.T) {
			s := s
			if replicas == 1 {
				s.Over = 1
			}
			m := newModel(t, replicas, s, trainer)
			tensors, err := m.step.Checkpoint(m.session)
			if err != nil {
				t.Fatal(err)
			}
			meta, err := checkpoint.Load(t.Context(), dir, tensors)
			if err != nil {
				t.Fatal(err)
			}
			if meta["step"] != fmt.Sprint(before) {
				t.Errorf("meta %v", meta)
			}
			for i, v := range m.params {
				x, err := v.Read(m.session)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(values(t, x), saved.params[i]) {
					t.Errorf("parameter %d is %v, and was %v", i, values(t, x), saved.params[i])
				}
			}
			got := m.train(t, before, after)
			if replicas == 4 {
				equalOutcome(t, got, outcome{losses: all.losses[before:], norms: all.norms[before:],
					params: all.params})
				return
			}
			for i, v := range got.losses { // the replicas' sums are of other numbers of samples
				if want := all.losses[before+i]; !(math.Abs(float64(v-want)) < 1e-5) {
					t.Errorf("step %d: loss %v, want %v", before+i, v, want)
				}
			}
		})
	}
}

// TestCheckpointExact is the same with a model in whose training nothing is rounded: all losses have the same bits, on
// however many replicas it goes on. The loss is the mean of w x, and parameters and x are small multiples of powers of
// two.
func TestCheckpointExact(t *testing.T) {
	const n, before, after = 20, 3, 4 // elements, none of them divided by 8
	build := func(t *testing.T, replicas int) (s *ir.Session, step *rts.Step, loss *ir.Stream) {
		sharding := rts.Sharding{}
		if replicas == 1 {
			sharding.Over = 1
		}
		p := ir.New(replicas)
		main := p.Main()
		shape, err := sharding.ShardShape(tensor.Shape{n}, replicas)
		if err != nil {
			t.Fatal(err)
		}
		var w, x []float32
		for i := range n {
			w, x = append(w, float32(i%7)), append(x, float32(i%5-2))
		}
		v := rts.RemoteVariable(p, floats(t, w), remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: shape}), 0,
			sharding, remote.Name("w"))
		model := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.ReduceSum(ops.Mul(in[0], in[1]))}
		}, v.Spec(), v.Spec())
		step = rts.Trainer{Optimizer: rts.SGD{Momentum: 0.5}}.Step([]rts.Layer{
			{Graph: model, Inputs: []*ir.Tensor{main.Constant(floats(t, x))}, Params: []*rts.Variable{v}},
		}, main.Constant(tensor.Scalar(float32(0.125))), main.Constant(tensor.Scalar(int32(1))))
		loss = p.DeviceToHost("loss", ir.Spec{DType: tensor.F32})
		main.HostStore(loss, step.Outputs[0])
		return newSession(t, p), step, loss
	}
	run := func(t *testing.T, s *ir.Session, loss *ir.Stream, steps int) (out []float32) {
		for range steps {
			got, err := s.Run(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, values(t, got[loss])[0])
		}
		return out
	}
	s, _, loss := build(t, 4)
	all := run(t, s, loss, before+after)
	dir := t.TempDir()
	s, step, loss := build(t, 4)
	run(t, s, loss, before)
	tensors, err := step.Checkpoint(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.Save(t.Context(), dir, tensors, nil); err != nil {
		t.Fatal(err)
	}
	for _, replicas := range []int{1, 2, 3, 4, 8} {
		s, step, loss := build(t, replicas)
		tensors, err := step.Checkpoint(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := checkpoint.Load(t.Context(), dir, tensors); err != nil {
			t.Fatal(err)
		}
		if got := run(t, s, loss, after); !slices.Equal(got, all[before:]) {
			t.Errorf("%d replicas: losses %v, want %v", replicas, got, all[before:])
		}
	}
	if slices.Equal(all[:after], all[before:]) {
		t.Error("the losses do not change")
	}
}

// TestCheckpointMemory has a model saved and loaded shard by shard: memory is taken for one of them, and not again.
func TestCheckpointMemory(t *testing.T) {
	const replicas, shards = 2, 3 * depth * 2 // of parameters and what Adam keeps
	const state = shards * 4 * wide * wide / replicas
	p, step := newWide(t, replicas, rts.Sharding{}, rts.Trainer{Optimizer: rts.Adam{}})
	s := newSession(t, p)
	tensors, err := step.Checkpoint(s)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, c := range []struct {
		what string
		do   func() error
	}{
		{"save", func() error { return checkpoint.Save(t.Context(), dir, tensors, nil) }},
		{"load", func() error { _, err := checkpoint.Load(t.Context(), dir, tensors); return err }},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > state/3 {
			t.Errorf("to %s %d bytes in %d shards took %d bytes of memory", c.what, state, shards, got)
		}
	}
}

// TestCheckpointNames has the names that a checkpoint cannot do without.
func TestCheckpointNames(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"a", ""}, "has no name"},
		{[]string{"a", "a"}, `"a": buffers 3 and 4 both have the name "a"`},
		{[]string{"a", "a.mean"}, `two tensors of the model have the name "a.mean"`},
	} {
		p := ir.New(2)
		parts := newParts(t, p)
		layers := parts.layers()
		for i, name := range c.names {
			zeros, err := tensor.New(tensor.F32, 2, 2)
			if err != nil {
				t.Fatal(err)
			}
			b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2}})
			layers[i].Params[0] = rts.RemoteVariable(p, zeros, b, 0, rts.Sharding{}, remote.Name(name))
		}
		step := rts.Trainer{Optimizer: rts.Adam{}}.Step(layers, parts.rate, parts.step)
		err := p.Err()
		if err == nil {
			_, err = step.Checkpoint(newSession(t, p))
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.names, err, c.want)
		}
	}
}
