package rts_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/internal/golden"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// Models of random layers, trained by a Trainer and by a plain program that knows nothing of it.

const (
	randomRows  = 3
	randomWidth = 5
)

var (
	randomState = ir.Spec{DType: tensor.F32, Shape: tensor.Shape{randomRows, randomWidth}} // what layers pass on
	randomOther = ir.Spec{DType: tensor.I32, Shape: tensor.Shape{randomRows, randomWidth}}
)

// kind is what a random layer does with the state.
type kind int

const (
	denseKind  kind = iota
	tanhKind        // no parameters
	scalarKind      // a parameter that is not used, and a scalar
	skipKind        // adds the state of two layers before, if that is passed on
	repeatKind      // a loop
	twiceKind       // a parameter that is used twice
	kinds
)

var kindParams = map[kind][]tensor.Shape{
	denseKind:  {{randomWidth, randomWidth}, {randomWidth}},
	scalarKind: {{3}, {}},
	repeatKind: {{randomWidth, randomWidth}},
	twiceKind:  {{randomWidth}},
}

// randomLayer is a layer of a random model.
type randomLayer struct {
	kind   kind
	in     int  // outputs of the layer before
	out    int  // its own: the state; that of the layer before; integers
	sample bool // it has the sample as an input
	isLast bool // it has the target as an input, and its outputs are the loss, the state and integers
}

func randomModel(r *rand.Rand) []randomLayer {
	n := 2 + r.IntN(5)
	out := make([]randomLayer, n)
	for i := range out {
		l := &out[i]
		*l = randomLayer{kind: kind(r.IntN(int(kinds))), out: 1 + r.IntN(3), sample: i == 0 || r.IntN(4) == 0,
			isLast: i == n-1}
		if i > 0 {
			l.in = out[i-1].out
		}
		if i == 1 && len(kindParams[out[0].kind]) == 0 { // some layer must have parameters
			l.kind = denseKind
		}
	}
	return out
}

// build is the layer's graph.
func (l randomLayer) build(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	before, in := in[:l.in], in[l.in:]
	var h, target *ir.Tensor
	if l.in > 0 {
		h = before[0]
	}
	if l.sample {
		if h == nil {
			h = in[0]
		} else {
			h = ops.Add(h, in[0])
		}
		in = in[1:]
	}
	if l.isLast {
		target, in = in[0], in[1:]
	}
	skipped := h
	if l.in > 1 {
		skipped = before[1]
	}
	old := h
	switch l.kind {
	case denseKind:
		h = ops.Tanh(ops.Add(ops.MatMul(h, in[0]), in[1]))
	case tanhKind:
		h = ops.Tanh(h)
	case scalarKind:
		h = ops.Mul(h, in[1])
	case skipKind:
		h = ops.Add(h, skipped)
	case repeatKind:
		body := g.Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ops.Tanh(ops.MatMul(in[0], in[1]))}
		}, h, in[0])
		h = g.Repeat(body, 2, h, in[0])[0]
	case twiceKind:
		h = ops.Add(ops.Mul(h, in[0]), ops.Mul(in[0], in[0]))
	}
	if l.isLast {
		return []*ir.Tensor{ops.ReduceMean(ops.Square(ops.Sub(h, target))), h, ops.Cast(h, tensor.I32)}
	}
	return []*ir.Tensor{h, old, ops.Cast(h, tensor.I32)}[:l.out]
}

// inputs are those of the layer's graph, parameters last.
func (l randomLayer) inputs() (out []ir.Input) {
	for _, s := range []ir.Spec{randomState, randomState, randomOther}[:l.in] {
		out = append(out, s)
	}
	for _, is := range []bool{l.sample, l.isLast} {
		if is {
			out = append(out, randomState)
		}
	}
	for _, shape := range kindParams[l.kind] {
		out = append(out, ir.Spec{DType: tensor.F32, Shape: shape})
	}
	return out
}

// normal is a tensor that follows from a seed.
func normal(t testing.TB, seed uint64, shape tensor.Shape) *tensor.Tensor {
	x, err := tensor.New(tensor.F32, shape...)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 99))
	for i := range values(t, x) {
		values(t, x)[i] = float32(r.NormFloat64()) / 2
	}
	return x
}

// What the replicas' samples and targets follow from.
const sampleSeed, targetSeed = 1000, 2000

const randomRate = 0.1

// plainly trains with one replica, plain variables and one graph for the whole model.
func plainly(t *testing.T, model []randomLayer, replicas, steps int) outcome {
	p := ir.New(1)
	main := p.Main()
	inputs := []ir.Input{randomState, randomState}
	var params []*ir.Variable
	for _, l := range model {
		for _, shape := range kindParams[l.kind] {
			params = append(params, p.Variable(normal(t, uint64(len(params)), shape)))
			inputs = append(inputs, params[len(params)-1].Tensor)
		}
	}
	whole := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		sample, target, params := in[0], in[1], in[2:]
		var out []*ir.Tensor
		for _, l := range model {
			if l.sample {
				out = append(out, sample)
			}
			if l.isLast {
				out = append(out, target)
			}
			n := len(kindParams[l.kind])
			out, params = l.build(g, append(out, params[:n]...)), params[n:]
		}
		return out[:1]
	}, inputs...)
	info := ir.Autodiff(whole, ir.ForInputs(whole.Inputs()[2:]...))
	var sums []*ir.Tensor // the losses' and the gradients'
	for r := range replicas {
		in := []*ir.Tensor{
			main.Constant(normal(t, sampleSeed+uint64(r), randomState.Shape)),
			main.Constant(normal(t, targetSeed+uint64(r), randomState.Shape)),
		}
		for _, v := range params {
			in = append(in, v.Tensor)
		}
		call := main.CallWithInfo(whole, nil, in...)
		by := info.By(call)
		by[info.Grads[0]] = main.Constant(tensor.Scalar(float32(1)))
		own := append(call.Outputs(), main.CallWithInfo(info.Graph, by).Outputs()...)
		for i, t := range own {
			if r > 0 {
				own[i] = ops.Add(sums[i], t)
			}
		}
		sums = own
	}
	loss := p.DeviceToHost("loss", ir.Spec{DType: tensor.F32})
	main.HostStore(loss, ops.DivScalar(sums[0], float64(replicas)))
	for i, v := range params {
		ops.ScaledAdd(v.Tensor, ops.DivScalar(sums[1+i], float64(replicas)), -randomRate)
	}
	s := newSession(t, p)
	var out outcome
	for range steps {
		got, err := s.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		out.losses = append(out.losses, values(t, got[loss])[0])
	}
	for _, v := range params {
		x, err := s.Read(v)
		if err != nil {
			t.Fatal(err)
		}
		out.params = append(out.params, values(t, x))
	}
	return out
}

// byTrainer trains with a Trainer.
func byTrainer(t *testing.T, model []randomLayer, replicas, steps int, s rts.Sharding, trainer rts.Trainer,
	storage remote.Storage) outcome {
	p := ir.New(replicas)
	main := p.Main()
	remote.UseStorage(p, storage)
	own := func(seed uint64) *ir.Tensor { // the replica's
		var all []float32
		for r := range replicas {
			all = append(all, values(t, normal(t, seed+uint64(r), randomState.Shape))...)
		}
		shape := append([]int{replicas}, randomState.Shape...)
		if replicas == 1 {
			shape = shape[1:]
		}
		return p.Variable(floats(t, all, shape...), ir.VariableGroups(consecutive(1))).Tensor
	}
	sample, target := own(sampleSeed), own(targetSeed)
	var params []*rts.Variable
	var layers []rts.Layer
	for _, l := range model {
		layer := rts.Layer{Graph: p.CreateGraph(l.build, l.inputs()...)}
		if l.sample {
			layer.Inputs = append(layer.Inputs, sample)
		}
		if l.isLast {
			layer.Inputs = append(layer.Inputs, target)
		}
		for _, shape := range kindParams[l.kind] {
			shard, err := s.ShardShape(shape, replicas)
			if err != nil {
				t.Fatal(err)
			}
			b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: shard})
			params = append(params, rts.RemoteVariable(p, normal(t, uint64(len(params)), shape), b, 0, s))
			layer.Params = append(layer.Params, params[len(params)-1])
		}
		layers = append(layers, layer)
	}
	step := trainer.Step(layers, main.Constant(tensor.Scalar(float32(randomRate))),
		main.Constant(tensor.Scalar(int32(1))))
	loss := p.DeviceToHost("loss", ir.Spec{DType: tensor.F32})
	main.HostStore(loss, step.Outputs[0])
	session := newSession(t, p)
	out := outcome{program: golden.Program(session) + "\n"}
	for range steps {
		got, err := session.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var sum float32
		for _, v := range values(t, got[loss]) {
			sum += v
		}
		out.losses = append(out.losses, sum/float32(replicas))
	}
	for _, v := range params {
		x, err := v.Read(session)
		if err != nil {
			t.Fatal(err)
		}
		out.params = append(out.params, values(t, x))
	}
	return out
}

// TestRandomModels compares a Trainer with a plain program: sums are added in another order, so losses and parameters
// may differ in their last places. Its programs are held against what they were.
func TestRandomModels(t *testing.T) {
	const steps = 3
	models := 150
	if testing.Short() {
		models = 30
	}
	programs, missing := map[string]string{}, 0 // by thirty seeds, and how many a pattern of -run leaves out
	for seed := range uint64(models) {
		r := rand.New(rand.NewPCG(seed, 5))
		model := randomModel(r)
		if !slices.ContainsFunc(model, func(l randomLayer) bool { return len(kindParams[l.kind]) > 0 }) {
			continue
		}
		replicas := 1 + r.IntN(4)
		var divisors []int
		for d := 1; d <= replicas; d++ {
			if replicas%d == 0 {
				divisors = append(divisors, d)
			}
		}
		s := rts.Sharding{Over: divisors[r.IntN(len(divisors))]}
		trainer := rts.Trainer{
			Optimizer: rts.SGD{}, Overlap: r.IntN(2) == 0, Keep: r.IntN(3) == 0,
			BucketBytes: []int{0, 1, 120, 300}[r.IntN(4)], ClipNorm: []float64{0, 1e6}[r.IntN(2)],
		}
		var storage remote.Storage = remote.Memory{}
		if r.IntN(5) == 0 {
			storage = remote.Dir(t.TempDir())
		}
		missing++
		t.Run(fmt.Sprintf("seed=%d/n=%d/over=%d", seed, replicas, s.Over), func(t *testing.T) {
			missing--
			want := plainly(t, model, replicas, steps)
			got := byTrainer(t, model, replicas, steps, s, trainer, storage)
			programs[fmt.Sprint("models-", seed/30)] += got.program
			near := func(what string, got, want []float32, within float64) {
				for i, w := range want {
					if !(math.Abs(float64(got[i]-w)) <= within*(1+math.Abs(float64(w)))) {
						t.Errorf("%+v\n%+v\n%s: %v, want %v", model, trainer, what, got, want)
						return
					}
				}
			}
			near("losses", got.losses, want.losses, 1e-4)
			for i := range want.params {
				near(fmt.Sprint("parameter ", i), got.params[i], want.params[i], 1e-3)
			}
		})
	}
	if !testing.Short() && missing == 0 {
		golden.Hashes(t, "programs.txt", programs)
	}
}
