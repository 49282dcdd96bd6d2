package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
	"gogcl.dev/transport/faulty"
	"gogcl.dev/transport/inproc"
)

// The model of BenchmarkRTSStep: dense layers alike, each with a weight of 256 KiB and a bias of 1 KiB.
const (
	rtsLayers = 8
	rtsWidth  = 256
	rtsRows   = 256 // of a replica
)

// rtsLayerBytes are those of a layer's parameters: a bucket for each layer.
const rtsLayerBytes = elemSize * (rtsWidth*rtsWidth + rtsWidth)

// linkDelay is by how much a slow link delays each Exchange, more than the milliseconds that a sleeping thread may be
// late.
const linkDelay = 2 * time.Millisecond

// slowLink connects replicas in one process by messages that are late.
func slowLink(n int) ([]transport.Endpoint, error) {
	eps, err := inproc.New(n)
	if err != nil {
		return nil, err
	}
	var faults []faulty.Fault
	for r := range n {
		faults = append(faults, faulty.Slow(r, linkDelay))
	}
	return faulty.Wrap(eps, 1, faults...)
}

// newRTSStep is a session of one training step of the model by Adam.
func newRTSStep(n int, s rts.Sharding, trainer rts.Trainer,
	connect func(n int) ([]transport.Endpoint, error)) (*ir.Session, *rts.Step, error) {
	p := ir.New(n)
	if connect != nil {
		collective.UseTransport(p, connect)
	}
	main := p.Main()
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(shape ...int) (*tensor.Tensor, error) {
		t, err := tensor.New(tensor.F32, shape...)
		if err != nil {
			return nil, err
		}
		v, err := tensor.Of[float32](t)
		for i := range v {
			v[i] = float32(random.NormFloat64()) / 16
		}
		return t, err
	}
	variable := func(shape ...int) (*rts.Variable, error) {
		data, err := draw(shape...)
		if err != nil {
			return nil, err
		}
		shard, err := s.ShardShape(shape, n)
		if err != nil {
			return nil, err
		}
		return rts.RemoteVariable(p, data, remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: shard}), 0, s), nil
	}
	images, err := draw(rtsRows, rtsWidth)
	if err != nil {
		return nil, nil, err
	}
	x := main.Constant(images)
	dense := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.Relu(ops.Add(ops.MatMul(in[0], in[1]), in[2]))}
	}, x, ir.Spec{DType: tensor.F32, Shape: tensor.Shape{rtsWidth, rtsWidth}},
		ir.Spec{DType: tensor.F32, Shape: tensor.Shape{rtsWidth}})
	loss := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.ReduceMean(ops.Square(ops.Sub(in[0], in[1])))}
	}, x, x)
	var layers []rts.Layer
	for range rtsLayers {
		w, err := variable(rtsWidth, rtsWidth)
		if err != nil {
			return nil, nil, err
		}
		b, err := variable(rtsWidth)
		if err != nil {
			return nil, nil, err
		}
		layers = append(layers, rts.Layer{Graph: dense, Params: []*rts.Variable{w, b}})
	}
	layers[0].Inputs = []*ir.Tensor{x}
	layers = append(layers, rts.Layer{Graph: loss, Inputs: []*ir.Tensor{x}})
	step := trainer.Step(layers, main.Constant(tensor.Scalar(float32(1e-3))), main.Constant(tensor.Scalar(int32(1))))
	session, err := ir.NewSession(p)
	return session, step, err
}

// rtsCases are the ways to take a step that are compared. A bucket is none, so that each parameter goes by itself; a
// layer's parameters; or four layers'.
var rtsCases = []struct {
	name    string
	over    int
	trainer rts.Trainer
}{
	{"whole", 1, rts.Trainer{}},
	{"overlap=off/bucket=none", 0, rts.Trainer{BucketBytes: 1}},
	{"overlap=off/bucket=layer", 0, rts.Trainer{BucketBytes: rtsLayerBytes}},
	{"overlap=off/bucket=four", 0, rts.Trainer{BucketBytes: 4 * rtsLayerBytes}},
	{"overlap=on/bucket=none", 0, rts.Trainer{BucketBytes: 1, Overlap: true}},
	{"overlap=on/bucket=layer", 0, rts.Trainer{BucketBytes: rtsLayerBytes, Overlap: true}},
	{"overlap=on/bucket=four", 0, rts.Trainer{BucketBytes: 4 * rtsLayerBytes, Overlap: true}},
	{"overlap=on/bucket=layer/keep", 0, rts.Trainer{BucketBytes: rtsLayerBytes, Overlap: true, Keep: true}},
}

// BenchmarkRTSStep is a training step of a model in shards, with and without buckets and overlap, and with whole
// parameters on every replica for comparison: between replicas that share memory, and between replicas whose every
// Exchange is late by linkDelay.
func BenchmarkRTSStep(b *testing.B) {
	for _, n := range []int{2, 4} {
		for _, link := range []struct {
			name    string
			connect func(n int) ([]transport.Endpoint, error)
		}{{"memory", nil}, {"slow", slowLink}} {
			for _, c := range rtsCases {
				b.Run(fmt.Sprintf("n=%d/link=%s/%s", n, link.name, c.name), func(b *testing.B) {
					b.ReportAllocs()
					c.trainer.Optimizer = rts.Adam{}
					s, _, err := newRTSStep(n, rts.Sharding{Over: c.over}, c.trainer, link.connect)
					if err != nil {
						b.Fatal(err)
					}
					defer s.Close()
					if err := s.Enter(); err != nil {
						b.Fatal(err)
					}
					ctx := context.Background()
					for range 5 {
						if err := s.RunTo(ctx, nil, nil); err != nil {
							b.Fatal(err)
						}
					}
					stockUp()
					for b.Loop() {
						if err := s.RunTo(ctx, nil, nil); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// TestRTSStepAllocatesNothing is about a running session.
func TestRTSStepAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, c := range rtsCases {
		c.trainer.Optimizer = rts.Adam{}
		s, _, err := newRTSStep(2, rts.Sharding{Over: c.over}, c.trainer, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Enter(); err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if got := testing.AllocsPerRun(5, func() {
			if err := s.RunTo(ctx, nil, nil); err != nil {
				t.Fatal(err)
			}
		}); got > 0 {
			t.Errorf("%s: %v allocations a step", c.name, got)
		}
	}
}
