package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// widths are those of the net of BenchmarkTrainingStep, and trainingBatch is its batch.
var widths = []int{784, 1024, 1024, 10}

const trainingBatch = 64

// newTraining is a training step, by an optimiser's update of a parameter, of a net of matrix products with relu
// between them, on one replica. Its images and labels stay the same.
func newTraining(update func(p *ir.Program, param, grad *ir.Tensor) error) (*ir.Session, error) {
	p := ir.New(1)
	main := p.Main()
	rng := rand.New(rand.NewPCG(1, 2))
	constant := func(t *tensor.Tensor, err error) (*ir.Tensor, error) {
		if err != nil {
			return nil, err
		}
		return main.Constant(t), nil
	}
	pixels, labels := make([]float32, trainingBatch*widths[0]), make([]int32, trainingBatch)
	for i := range pixels {
		pixels[i] = rng.Float32()
	}
	for i := range labels {
		labels[i] = rng.Int32N(int32(widths[len(widths)-1]))
	}
	x, err := constant(tensor.FromSlice(pixels, trainingBatch, widths[0]))
	if err != nil {
		return nil, err
	}
	y, err := constant(tensor.FromSlice(labels, trainingBatch))
	if err != nil {
		return nil, err
	}
	in := []*ir.Tensor{x, y}
	for i, to := range widths[1:] {
		from := widths[i]
		weights := make([]float32, from*to)
		for k := range weights {
			weights[k] = (rng.Float32() - 0.5) / 16
		}
		w, err := tensor.FromSlice(weights, from, to)
		if err != nil {
			return nil, err
		}
		b, err := tensor.New(tensor.F32, to)
		if err != nil {
			return nil, err
		}
		for k, t := range []*tensor.Tensor{w, b} {
			in = append(in, p.Variable(t, ir.VariableName(fmt.Sprintf("%c%d", "wb"[k], i+1))).Tensor)
		}
	}
	forward := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		h, params := in[0], in[2:]
		for i := 0; i < len(params); i += 2 {
			if i > 0 {
				h = ops.Relu(h)
			}
			h = ops.Add(ops.MatMul(h, params[i]), params[i+1])
		}
		return []*ir.Tensor{ops.CrossEntropy(h, in[1])}
	}, inputs(in)...)
	call := main.CallWithInfo(forward, nil, in...)
	back := ir.Autodiff(forward, ir.ForInputs(forward.Inputs()[2:]...))
	by := back.By(call)
	by[back.Grads[0]] = main.Constant(tensor.Scalar(float32(1)))
	for i, grad := range main.CallWithInfo(back.Graph, by).Outputs() {
		if err := update(p, in[2+i], grad); err != nil {
			return nil, err
		}
	}
	s, err := ir.NewSession(p)
	if err != nil {
		return nil, err
	}
	return s, s.Enter()
}

// optimisers are the updates that BenchmarkTrainingStep measures.
var optimisers = []struct {
	name   string
	update func(p *ir.Program, param, grad *ir.Tensor) error
}{
	{"none", func(*ir.Program, *ir.Tensor, *ir.Tensor) error { return nil }},
	{"sgd", func(p *ir.Program, param, grad *ir.Tensor) error {
		velocity, err := kept(p, param, "velocity")
		if err == nil {
			ops.SGD{Momentum: 0.9}.Update(param, velocity, grad, p.Main().Constant(tensor.Scalar(float32(1e-3))))
		}
		return err
	}},
	{"adam", func(p *ir.Program, param, grad *ir.Tensor) error {
		mean, err := kept(p, param, "mean")
		if err != nil {
			return err
		}
		square, err := kept(p, param, "square")
		if err == nil {
			ops.Adam{}.Update(param, ops.AdamState{Mean: mean, Square: square}, grad,
				p.Main().Constant(tensor.Scalar(float32(1e-3))), p.Main().Constant(tensor.Scalar(int32(100))))
		}
		return err
	}},
}

// kept is a variable of zeros in the shape of a parameter.
func kept(p *ir.Program, param *ir.Tensor, name string) (*ir.Tensor, error) {
	zeros, err := tensor.New(tensor.F32, param.Shape()...)
	if err != nil {
		return nil, err
	}
	return p.Variable(zeros, ir.VariableName(param.Name()+" "+name)).Tensor, nil
}

// BenchmarkTrainingStep is a training step of a net of 784, 1,024, 1,024 and 10 neurons with a batch of 64, by one
// replica on one core: by Adam, by SGD with momentum, and without an optimiser, whose share is the difference.
func BenchmarkTrainingStep(b *testing.B) {
	for _, o := range optimisers {
		b.Run("optimiser="+o.name, func(b *testing.B) {
			s, err := newTraining(o.update)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Run(context.Background(), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestTrainingSteps: the steps that BenchmarkTrainingStep measures can be made.
func TestTrainingSteps(t *testing.T) {
	for _, o := range optimisers {
		s, err := newTraining(o.update)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Run(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", o.name, err)
		}
		s.Close()
	}
}
