package rts_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/methods"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// A model of small integers, the sums of whose gradients are exact in any order: three products of matrices, of which
// the first two are by the same parameter, and a loss that is a mean over a power of two of elements.
const (
	exactWidth = 4
	exactBatch = 16 // rows of a step on each replica
)

// exactStep makes one step, and returns what it gives the host and then the parameters, as bytes.
func exactStep(t *testing.T, replicas int, s rts.Sharding, trainer rts.Trainer) [][]byte {
	t.Helper()
	p := ir.New(replicas)
	main := p.Main()
	rows, lead := exactBatch, tensor.Shape{}
	if k := trainer.Accumulate; k > 0 {
		rows, lead = exactBatch/k, tensor.Shape{k}
	}
	state := ir.Spec{DType: tensor.F32, Shape: tensor.Shape{rows, exactWidth}}
	stream := ir.Spec{DType: tensor.F32, Shape: append(lead, state.Shape...)}
	x, y := p.HostToDevice("x", stream), p.HostToDevice("y", stream)
	var params []*rts.Variable
	for i, shape := range []tensor.Shape{{exactWidth, exactWidth}, {exactWidth}, {exactWidth, exactWidth}} {
		first, err := tensor.New(tensor.F32, shape...)
		if err != nil {
			t.Fatal(err)
		}
		for k := range values(t, first) {
			values(t, first)[k] = float32((k+i)%3 - 1)
		}
		shard, err := s.ShardShape(shape, replicas)
		if err != nil {
			t.Fatal(err)
		}
		b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: shard})
		params = append(params, rts.RemoteVariable(p, first, b, 0, s, remote.Name(fmt.Sprint("p", i))))
	}
	layer := p.CreateGraph(dense, state, params[0].Spec(), params[1].Spec())
	last := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		h := ops.MatMul(in[0], in[2])
		return []*ir.Tensor{ops.ReduceMean(ops.Mul(h, in[1])), h, ops.Cast(h, tensor.I32), ops.Greater(h, in[1])}
	}, state, state, params[2].Spec())
	step := trainer.Step([]rts.Layer{
		{Graph: layer, Inputs: []*ir.Tensor{main.HostLoad(x)}, Params: params[:2]},
		{Graph: layer, Params: params[:2]},
		{Graph: last, Inputs: []*ir.Tensor{main.HostLoad(y)}, Params: params[2:]},
	}, main.Constant(tensor.Scalar(float32(0.25))), main.Constant(tensor.Scalar(int32(1))))
	outputs := step.Outputs
	if step.Norm != nil {
		outputs = append(outputs, step.Norm)
	}
	var streams []*ir.Stream
	for i, o := range outputs {
		streams = append(streams, p.DeviceToHost(fmt.Sprint("out", i), o.Spec()))
		main.HostStore(streams[i], o)
	}
	session := newSession(t, p)
	in := map[*ir.Stream]*tensor.Tensor{}
	for i, s := range []*ir.Stream{x, y} {
		shape := session.HostSpec(s).Shape
		v := make([]float32, replicas*exactBatch*exactWidth)
		for k := range v {
			v[k] = float32((k*k+k/7+3*i)%5 - 2)
		}
		in[s] = floats(t, v, shape...)
	}
	got, err := session.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, s := range streams {
		all = append(all, got[s].Bytes())
	}
	for _, v := range params {
		now, err := v.Read(session)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, now.Bytes())
	}
	kept, err := step.Checkpoint(session)
	if err != nil || len(kept) != len(params)*(1+len(trainer.Optimizer.States())) {
		t.Errorf("%d tensors in a checkpoint and the error %v, want the parameters and the optimiser's states",
			len(kept), err)
	}
	return all
}

// TestAccumulateIsOneBatch has the bits of the same rows in one batch: losses, outputs, norms and parameters.
func TestAccumulateIsOneBatch(t *testing.T) {
	options := []gcl.Options{{}, {Method: methods.ClockwiseRing}, {Method: methods.QuadDirectionalRing}, reproducible}
	for _, replicas := range []int{1, 2, 3, 4} {
		for _, over := range []int{0, 1, 2} {
			if replicas == 1 && over != 1 || over == 2 && replicas != 4 {
				continue
			}
			for _, trainer := range []rts.Trainer{
				{Optimizer: rts.SGD{}},
				{Optimizer: rts.SGD{Momentum: 0.5}, BucketBytes: 1},
				{Optimizer: rts.SGD{}, BucketBytes: 1, Overlap: true},
				{Optimizer: rts.SGD{}, BucketBytes: 1, Overlap: true, Keep: true},
				{Optimizer: rts.Adam{}, Overlap: true, ClipNorm: 0.5},
			} {
				want := exactStep(t, replicas, rts.Sharding{Over: over}, trainer)
				for _, trainer.Accumulate = range []int{1, 2, 4, 16} {
					for i, o := range options {
						if i > 0 && trainer.Accumulate != 4 {
							continue
						}
						name := fmt.Sprintf("n=%d/over=%d/overlap=%t/keep=%t/clip=%v/bucket=%d/micro=%d/method=%v/%t",
							replicas, over, trainer.Overlap, trainer.Keep, trainer.ClipNorm, trainer.BucketBytes,
							trainer.Accumulate, o.Method, o.Reproducible)
						t.Run(name, func(t *testing.T) {
							got := exactStep(t, replicas, rts.Sharding{Over: over, Options: o}, trainer)
							if !slices.EqualFunc(got, want, bytes.Equal) {
								t.Errorf("%v\nwant\n%v", got, want)
							}
						})
					}
				}
			}
		}
	}
}

// TestAccumulate trains for several steps with numbers of micro-batches that are no powers of two. However parameters
// are sharded, gathered and reduced the bits are the same, and near to those of one batch.
func TestAccumulate(t *testing.T) {
	const steps = 6
	for _, optimizer := range []rts.Optimizer{rts.SGD{Momentum: 0.9}, rts.Adam{Epsilon: 1e-3}} {
		for _, replicas := range []int{1, 2, 4} {
			plain := rts.Sharding{Over: 1, Options: reproducible}
			one := newModel(t, replicas, plain, rts.Trainer{Optimizer: optimizer}).train(t, 0, steps)
			for _, k := range []int{1, 2, 3, 6} {
				trainer := rts.Trainer{Optimizer: optimizer, Accumulate: k}
				whole := newModel(t, replicas, plain, trainer).train(t, 0, steps)
				if k == 1 {
					equalOutcome(t, whole, one)
				}
				nearOutcome(t, whole, one)
				if replicas == 1 {
					continue
				}
				trainer.BucketBytes = 4 * (inputs*hidden + hidden)
				for _, trainer.Overlap = range []bool{false, true} {
					for _, trainer.Keep = range []bool{false, true} {
						name := fmt.Sprintf("%T/n=%d/micro=%d/overlap=%t/keep=%t", optimizer, replicas, k,
							trainer.Overlap, trainer.Keep)
						t.Run(name, func(t *testing.T) {
							m := newModel(t, replicas, rts.Sharding{Options: reproducible}, trainer)
							equalOutcome(t, m.train(t, 0, steps), whole)
						})
					}
				}
			}
		}
	}
}

// nearOutcome compares outcomes but for what sums in another order make of them.
func nearOutcome(t *testing.T, got, want outcome) {
	t.Helper()
	near := func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-5 }
	if !slices.EqualFunc(got.losses, want.losses, near) {
		t.Errorf("losses %v, want %v", got.losses, want.losses)
	}
	for i := range want.params {
		if !slices.EqualFunc(got.params[i], want.params[i], near) {
			t.Errorf("parameter %d: %v, want %v", i, got.params[i], want.params[i])
		}
	}
}

// TestAccumulateReducesOnce has as many reductions with four micro-batches as with one, none of them in the loop, and
// the gathers twice: in the loop and after it.
func TestAccumulateReducesOnce(t *testing.T) {
	for _, overlap := range []bool{false, true} {
		trainer := rts.Trainer{Optimizer: rts.SGD{}, BucketBytes: 1, Overlap: overlap}
		one := steps(newModel(t, 2, rts.Sharding{}, trainer).session)
		trainer.Accumulate = 4
		m := newModel(t, 2, rts.Sharding{}, trainer)
		four := steps(m.session)
		for what, times := range map[string]int{"reduce-scatter": 1, "all-gather": 2} {
			if got, want := count(four, what), times*count(one, what); got != want || want == 0 {
				t.Errorf("overlap=%t: %d steps of %s, want %d", overlap, got, what, want)
			}
		}
		loops := 0
		for _, s := range m.session.Report().Steps {
			if strings.HasPrefix(s.Op, "repeat") {
				loops++
			}
			if strings.Contains(s.Graph, "reduce") && loops == 0 {
				t.Errorf("%s before the loop", s.Op)
			}
		}
		if loops != 1 {
			t.Errorf("%d loops, want 1", loops)
		}
	}
}

// TestAccumulateErrors has what cannot be cut into micro-batches.
func TestAccumulateErrors(t *testing.T) {
	for _, c := range []struct {
		micro int
		shape tensor.Shape
		want  string
	}{
		{-1, tensor.Shape{3, 2}, "an Accumulate of -1, want 1 micro-batch or more, or 0 for a batch in one"},
		{1, tensor.Shape{3, 2}, "layer 0: input 0 is of shape (3, 2), want a leading dimension of the 1 micro-batches"},
		{4, tensor.Shape{3, 3, 2}, "layer 0: input 0 is of shape (3, 3, 2), want a leading dimension of the 4"},
		{4, tensor.Shape{}, "layer 0: input 0 is of shape (), want a leading dimension of the 4"},
		{3, tensor.Shape{3, 2}, "layer 0: input 0 of its graph is float32 (3, 2), and is given float32 (2,)"},
		{0, tensor.Shape{4, 3, 2}, "layer 0: input 0 of its graph is float32 (3, 2), and is given float32 (4, 3, 2)"},
	} {
		p := ir.New(2)
		parts := newParts(t, p)
		x, err := tensor.New(tensor.F32, c.shape...)
		if err != nil {
			t.Fatal(err)
		}
		layers := parts.layers()
		layers[0].Inputs = []*ir.Tensor{p.Main().Constant(x)}
		rts.Trainer{Optimizer: rts.SGD{}, Accumulate: c.micro}.Step(layers, parts.rate, parts.step)
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "training step at accumulate_test.go:") {
			t.Errorf("Accumulate %d: error %v, want one with %q", c.micro, err, c.want)
		}
	}
}

// TestAccumulateCheckFinite has a NaN in one of three micro-batches, the last or one of the loop: no parameter changes.
func TestAccumulateCheckFinite(t *testing.T) {
	for micro := range 3 {
		p := ir.New(2)
		s := rts.Sharding{}
		w := rts.RemoteVariable(p, floats(t, []float32{1, 2}), remote.NewBuffer(p,
			ir.Spec{DType: tensor.F32, Shape: tensor.Shape{1}}), 0, s)
		v := []float32{1, 1, 1, 1, 1, 1}
		v[2*micro] = -1
		x := p.Main().Constant(floats(t, v, 3, 2))
		g := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.ReduceSum(ops.Mul(ops.Log(in[0]), in[1]))}
		}, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2}}, w.Spec())
		rts.Trainer{Optimizer: rts.SGD{}, CheckFinite: true, Accumulate: 3}.Step(
			[]rts.Layer{{Graph: g, Inputs: []*ir.Tensor{x}, Params: []*rts.Variable{w}}},
			p.Main().Constant(tensor.Scalar(float32(1))), p.Main().Constant(tensor.Scalar(int32(1))))
		session := newSession(t, p)
		if err := session.RunTo(t.Context(), nil, nil); !errors.Is(err, ir.ErrNotFinite) ||
			!strings.Contains(err.Error(), "log built at accumulate_test.go") {
			t.Errorf("micro-batch %d: error %v, want that the logarithm is not finite", micro, err)
		}
		if got, err := w.Read(session); err != nil || !slices.Equal(values(t, got), []float32{1, 2}) {
			t.Errorf("micro-batch %d: the parameters are %v, error %v, want them as before", micro, got, err)
		}
	}
}

// TestAccumulateKeepsInputs builds two steps of one list of layers, whose Inputs stay the caller's.
func TestAccumulateKeepsInputs(t *testing.T) {
	p := ir.New(2)
	c := newParts(t, p)
	x := p.Main().Constant(floats(t, make([]float32, 12), 2, 3, 2))
	layers := c.layers()
	layers[0].Inputs, layers[2].Inputs = []*ir.Tensor{x}, []*ir.Tensor{x}
	for range 2 {
		rts.Trainer{Optimizer: rts.SGD{}, Accumulate: 2}.Step(layers, c.rate, c.step)
	}
	if err := p.Err(); err != nil || layers[0].Inputs[0] != x || layers[2].Inputs[0] != x {
		t.Errorf("error %v, and inputs %v", err, layers[0].Inputs)
	}
}

// TestAccumulateAfterError builds steps of layers one of which has an error, in it or in what it gives the next: it is
// the program's, and nothing panics.
func TestAccumulateAfterError(t *testing.T) {
	for name, build := range map[string]func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor{
		"operation": func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Concat(9, in...)} },
		"outputs": func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.Cast(ops.ReduceSum(in[0]), tensor.I32), in[0]}
		},
		"many outputs": func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return append([]*ir.Tensor{ops.ReduceMean(ops.Concat(9, in...))}, make([]*ir.Tensor, 20)...)
		},
		"panic": func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			ops.Concat(9, in...)
			return []*ir.Tensor{in[9]}
		},
	} {
		for broken := range 3 {
			for _, k := range []int{0, 1, 2, 3} {
				p := ir.New(2)
				c := newParts(t, p)
				layers := c.layers()
				in := layers[broken].Graph.Inputs()
				layers[broken].Graph = p.CreateGraph(build, in[0], in[1])
				if k > 0 {
					x := p.Main().Constant(floats(t, make([]float32, 6*k), k, 3, 2))
					layers[0].Inputs, layers[2].Inputs = []*ir.Tensor{x}, []*ir.Tensor{x}
				}
				trainer := rts.Trainer{Optimizer: rts.Adam{}, Accumulate: k, Overlap: true, ClipNorm: 1}
				trainer.Step(layers, c.rate, c.step)
				trainer.StepIf(p.Main().Constant(tensor.Scalar(true)), layers, c.rate, c.step)
				if p.Err() == nil {
					t.Errorf("%s of layer %d, Accumulate %d: no error", name, broken, k)
				}
			}
		}
	}
}

// TestAccumulateNarrowLoss has losses of 16 bits whose sum over the micro-batches is more than the type can hold, or is
// rounded in it. Their mean is neither.
func TestAccumulateNarrowLoss(t *testing.T) {
	const micro = 512
	for _, c := range []struct {
		dtype tensor.DType
		loss  float32
	}{{tensor.F16, 1024}, {tensor.BF16, 1}, {tensor.F32, 3}, {tensor.F64, 3}} {
		p := ir.New(1)
		main := p.Main()
		w := rts.RemoteVariable(p, floats(t, []float32{c.loss}), remote.NewBuffer(p,
			ir.Spec{DType: tensor.F32, Shape: tensor.Shape{1}}), 0, rts.Sharding{Over: 1})
		ones := slices.Repeat([]float32{1}, micro)
		g := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.Cast(ops.ReduceSum(ops.Mul(in[0], in[1])), c.dtype)}
		}, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{1}}, w.Spec())
		step := rts.Trainer{Optimizer: rts.SGD{}, Accumulate: micro}.Step(
			[]rts.Layer{{Graph: g, Inputs: []*ir.Tensor{main.Constant(floats(t, ones, micro, 1))},
				Params: []*rts.Variable{w}}},
			main.Constant(tensor.Scalar(float32(0))), main.Constant(tensor.Scalar(int32(1))))
		if got := step.Outputs[0].DType(); got != c.dtype {
			t.Errorf("a loss of %v, want %v", got, c.dtype)
		}
		out := p.DeviceToHost("loss", ir.Spec{DType: tensor.F32})
		main.HostStore(out, ops.Cast(step.Outputs[0], tensor.F32))
		got, err := newSession(t, p).Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if loss := values(t, got[out])[0]; loss != c.loss {
			t.Errorf("the mean of %d losses of %v is %v, want %v", micro, c.dtype, loss, c.loss)
		}
	}
}
