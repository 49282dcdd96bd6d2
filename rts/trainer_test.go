package rts_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// A model of four layers, small enough for tests and awkward: none of its sizes can be divided by 2, and one of its
// layers has no parameters.
const (
	samples = 24 // in a step, over all replicas
	inputs  = 5
	hidden  = 7
	classes = 3
)

// model is the parameters of a training, and the program's streams.
type model struct {
	program         *ir.Program
	params          []*rts.Variable
	step            *rts.Step
	images, labels  *ir.Stream
	rate, number    *ir.Stream
	choice          *ir.Stream // whether to train; nil: always
	loss, all, norm *ir.Stream // of each replica; the mean; the norm
	session         *ir.Session
}

// shapes of the parameters, in the order of the layers.
var paramShapes = []tensor.Shape{{inputs, hidden}, {hidden}, {hidden, hidden}, {hidden}, {hidden, classes}, {classes}}

// initial is the values that parameter i begins with.
func initial(t testing.TB, i int) *tensor.Tensor {
	r := rand.New(rand.NewPCG(7, uint64(i)))
	n, err := paramShapes[i].Elements()
	if err != nil {
		t.Fatal(err)
	}
	v := make([]float32, n)
	for k := range v {
		v[k] = float32(r.NormFloat64() / 2)
	}
	return floats(t, v, paramShapes[i]...)
}

func dense(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ops.Add(ops.MatMul(in[0], in[1]), in[2])}
}

func tanh(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ops.Tanh(in[0])} }

// head has the loss, and as a further output the logits.
func head(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	logits := ops.Add(ops.MatMul(in[0], in[2]), in[3])
	return []*ir.Tensor{ops.CrossEntropy(logits, in[1]), logits}
}

// newModel builds the training of the model.
func newModel(t testing.TB, replicas int, s rts.Sharding, trainer rts.Trainer) *model {
	return newModelOf(t, replicas, s, trainer, false, untied)
}

// newModelIf builds the training of the model, which can be evaluated too.
func newModelIf(t testing.TB, replicas int, s rts.Sharding, trainer rts.Trainer) *model {
	return newModelOf(t, replicas, s, trainer, true, untied)
}

// untied is the layers of the model between the first and the last.
func untied(m *model, h ir.Spec) []rts.Layer {
	activation := rts.Layer{Graph: m.program.CreateGraph(tanh, h)}
	second := m.program.CreateGraph(dense, h, m.params[2].Spec(), m.params[3].Spec())
	return []rts.Layer{activation, {Graph: second, Params: m.params[2:4]}, activation}
}

// newModelOf builds the training of a model whose layers between the first and the last, on tensors of the spec, are
// what between makes.
func newModelOf(t testing.TB, replicas int, s rts.Sharding, trainer rts.Trainer, choice bool,
	between func(m *model, h ir.Spec) []rts.Layer) *model {
	m := buildModel(t, replicas, s, trainer, choice, between)
	m.session = newSession(t, m.program)
	return m
}

// buildModel is newModelOf without a session.
func buildModel(t testing.TB, replicas int, s rts.Sharding, trainer rts.Trainer, choice bool,
	between func(m *model, h ir.Spec) []rts.Layer) *model {
	p, rows, lead := ir.New(replicas), samples/replicas, tensor.Shape{}
	if k := trainer.Accumulate; k > 0 {
		rows, lead = rows/k, tensor.Shape{k}
	}
	image := ir.Spec{DType: tensor.F32, Shape: tensor.Shape{rows, inputs}}
	label := ir.Spec{DType: tensor.I32, Shape: tensor.Shape{rows}}
	m := &model{
		program: p,
		images:  p.HostToDevice("images", ir.Spec{DType: tensor.F32, Shape: append(lead, image.Shape...)}),
		labels:  p.HostToDevice("labels", ir.Spec{DType: tensor.I32, Shape: append(lead, label.Shape...)}),
		rate:    p.HostToDevice("rate", ir.Spec{DType: tensor.F32}),
		number:  p.HostToDevice("step", ir.Spec{DType: tensor.I32}),
		loss:    p.DeviceToHost("loss", ir.Spec{DType: tensor.F32}),
		all:     p.DeviceToHost("mean loss", ir.Spec{DType: tensor.F32}),
	}
	main := p.Main()
	x, labels := main.HostLoad(m.images), main.HostLoad(m.labels)
	for i, shape := range paramShapes {
		shard, err := s.ShardShape(shape, replicas)
		if err != nil {
			t.Fatal(err)
		}
		b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: shard})
		m.params = append(m.params, rts.RemoteVariable(p, initial(t, i), b, 0, s, remote.Name(fmt.Sprint("p", i))))
	}
	h := ir.Spec{DType: tensor.F32, Shape: tensor.Shape{rows, hidden}}
	first := p.CreateGraph(dense, image, m.params[0].Spec(), m.params[1].Spec())
	last := p.CreateGraph(head, h, label, m.params[4].Spec(), m.params[5].Spec())
	layers := []rts.Layer{{Graph: first, Inputs: []*ir.Tensor{x}, Params: m.params[:2]}}
	layers = append(layers, between(m, h)...)
	layers = append(layers, rts.Layer{Graph: last, Inputs: []*ir.Tensor{labels}, Params: m.params[4:]})
	rate, number := main.HostLoad(m.rate), main.HostLoad(m.number)
	if choice {
		m.choice = p.HostToAll("train", ir.Spec{DType: tensor.Bool})
		m.step = trainer.StepIf(main.HostLoad(m.choice), layers, rate, number)
	} else {
		m.step = trainer.Step(layers, rate, number)
	}
	main.HostStore(m.loss, m.step.Outputs[0])
	main.HostStore(m.all, collective.Comm{Options: s.Options}.AllReduce(m.step.Outputs[0], gcl.Mean))
	if m.step.Norm != nil {
		m.norm = p.DeviceToHost("norm", ir.Spec{DType: tensor.F32})
		main.HostStore(m.norm, m.step.Norm)
	}
	return m
}

// batch is the images and labels of all replicas in a step: the same ones for however many replicas, and those of two
// steps come again and again.
func (m *model) batch(t testing.TB, step int) (images, labels *tensor.Tensor) {
	var x []float32
	var y []int32
	rng := rand.New(rand.NewPCG(uint64(step%2), 1))
	for range samples {
		label := rng.IntN(classes)
		y = append(y, int32(label))
		for k := range inputs {
			x = append(x, float32(rng.NormFloat64())+float32(label*k)/4)
		}
	}
	var err error
	if labels, err = tensor.FromSlice(y, m.session.HostSpec(m.labels).Shape...); err != nil {
		t.Fatal(err)
	}
	return floats(t, x, m.session.HostSpec(m.images).Shape...), labels
}

// outcome is the losses and norms of steps, of the replicas together.
type outcome struct {
	losses, norms []float32
	params        [][]float32
	program       string // as text, with where everything lies
}

// alike is one number for every replica.
func (m *model) alike(t testing.TB, s *ir.Stream, fill func(dst *tensor.Tensor)) *tensor.Tensor {
	spec := m.session.HostSpec(s)
	x, err := tensor.New(spec.DType, spec.Shape...)
	if err != nil {
		t.Fatal(err)
	}
	fill(x)
	return x
}

// train makes steps from first on.
func (m *model) train(t testing.TB, first, steps int) outcome {
	t.Helper()
	var out outcome
	for i := first; i < first+steps; i++ {
		images, labels := m.batch(t, i)
		in := map[*ir.Stream]*tensor.Tensor{
			m.images: images, m.labels: labels,
			m.rate: m.alike(t, m.rate, func(x *tensor.Tensor) {
				for i := range values(t, x) {
					values(t, x)[i] = 0.05
				}
			}),
			m.number: m.alike(t, m.number, func(x *tensor.Tensor) {
				v, err := tensor.Of[int32](x)
				if err != nil {
					t.Fatal(err)
				}
				for k := range v {
					v[k] = int32(i + 1)
				}
			}),
		}
		if m.choice != nil {
			in[m.choice] = tensor.Scalar(true)
		}
		got, err := m.session.Run(context.Background(), in)
		if err != nil {
			t.Fatal(err)
		}
		out.losses = append(out.losses, values(t, got[m.all])[0])
		if m.norm != nil {
			norms := values(t, got[m.norm])
			for r, v := range norms {
				if v != norms[0] {
					t.Fatalf("step %d: the norm is %v on replica %d and %v on replica 0", i, v, r, norms[0])
				}
			}
			out.norms = append(out.norms, norms[0])
		}
	}
	for _, v := range m.params {
		x, err := v.Read(m.session)
		if err != nil {
			t.Fatal(err)
		}
		out.params = append(out.params, values(t, x))
	}
	return out
}

// equalOutcome compares outcomes to the bit.
func equalOutcome(t *testing.T, got, want outcome) {
	t.Helper()
	if !slices.Equal(got.losses, want.losses) {
		t.Errorf("losses %v, want %v", got.losses, want.losses)
	}
	if !slices.Equal(got.norms, want.norms) {
		t.Errorf("norms %v, want %v", got.norms, want.norms)
	}
	for i := range want.params {
		if !slices.Equal(got.params[i], want.params[i]) {
			t.Errorf("parameter %d: %v, want %v", i, got.params[i], want.params[i])
		}
	}
}

var reproducible = gcl.Options{Reproducible: true}

// TestTrainer has the same bits however the parameters are sharded, gathered and reduced: those of whole parameters on
// every replica.
func TestTrainer(t *testing.T) {
	const steps = 6
	for _, optimizer := range []rts.Optimizer{rts.Adam{}, rts.SGD{}, rts.SGD{Momentum: 0.9}} {
		for _, replicas := range []int{1, 2, 3, 4} {
			whole := newModel(t, replicas, rts.Sharding{Over: 1, Options: reproducible},
				rts.Trainer{Optimizer: optimizer}).train(t, 0, steps)
			if last := whole.losses[steps-1]; !(last < whole.losses[0]) {
				t.Errorf("the loss went from %v to %v", whole.losses[0], last)
			}
			for _, over := range []int{0, 1, 2} {
				if replicas == 1 && over != 1 || over > 1 && (replicas%over != 0 || replicas == over) {
					continue
				}
				for _, overlap := range []bool{false, true} {
					for _, keep := range []bool{false, true} {
						for _, bucket := range []int{0, 1, 4 * (inputs*hidden + hidden)} {
							t.Run(fmt.Sprintf("%T/n=%d/over=%d/overlap=%t/keep=%t/bucket=%d",
								optimizer, replicas, over, overlap, keep, bucket), func(t *testing.T) {
								trainer := rts.Trainer{Optimizer: optimizer, Overlap: overlap, Keep: keep,
									BucketBytes: bucket}
								got := newModel(t, replicas, rts.Sharding{Over: over, Options: reproducible},
									trainer).train(t, 0, steps)
								if over != 2 { // in parts of a group the sums are of other pairs
									equalOutcome(t, got, whole)
									return
								}
								for i, v := range got.losses {
									if !(math.Abs(float64(v-whole.losses[i])) < 1e-4) {
										t.Errorf("step %d: loss %v, want %v", i, v, whole.losses[i])
									}
								}
							})
						}
					}
				}
			}
		}
	}
}

// TestTrainerClips has the norm of the gradients, and parameters that change as if the gradients were scaled.
func TestTrainerClips(t *testing.T) {
	const steps = 4
	for _, replicas := range []int{1, 2, 4} {
		over := 0
		if replicas == 1 {
			over = 1
		}
		s := rts.Sharding{Over: over, Options: reproducible}
		free := newModel(t, replicas, s, rts.Trainer{Optimizer: rts.SGD{}}).train(t, 0, steps)
		loose := newModel(t, replicas, s, rts.Trainer{Optimizer: rts.SGD{}, ClipNorm: 1e6, Overlap: true}).train(t, 0,
			steps)
		norms := loose.norms
		loose.norms = nil
		equalOutcome(t, loose, free)
		tight := newModel(t, replicas, s, rts.Trainer{Optimizer: rts.SGD{}, ClipNorm: 0.01}).train(t, 0, 1)
		if tight.norms[0] != norms[0] || !(norms[0] > 0.1) {
			t.Errorf("n=%d: norm %v, want %v and more than 0.1", replicas, tight.norms[0], norms[0])
		}
		first := newModel(t, replicas, s, rts.Trainer{Optimizer: rts.SGD{}}).train(t, 0, 1)
		var moved, all float64
		for i := range first.params {
			for k, begin := range values(t, initial(t, i)) {
				moved += math.Pow(float64(tight.params[i][k]-begin), 2)
				all += math.Pow(float64(first.params[i][k]-begin), 2)
			}
		}
		if got, want := math.Sqrt(moved), 0.05*0.01; math.Abs(got/want-1) > 1e-2 {
			t.Errorf("n=%d: clipped to 0.01, at a rate of 0.05 parameters moved by %v, want %v", replicas, got, want)
		}
		if got, want := math.Sqrt(all), 0.05*float64(norms[0]); math.Abs(got/want-1) > 1e-3 {
			t.Errorf("n=%d: the norm is %v, and at a rate of 0.05 parameters moved by %v", replicas, norms[0], got)
		}
	}
}
