package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// rows are the samples of a replica.
const rows = 4

// model is a training step of a model of layers alike, x + relu(x w), and a session of it.
type model struct {
	session       *ir.Session
	step          *rts.Step
	params        []*rts.Variable
	x, rate, made *ir.Stream
	loss          *ir.Stream
	scale         float32
}

// newModel builds the program and makes a session of it, with parameters and states in the files of a directory. Where
// there are none, parameters begin as random numbers, or with from a checkpoint as zeros, of which nothing is stored.
func newModel(cfg config, dir string, fromCheckpoint bool) (*model, error) {
	p := ir.New(cfg.replicas)
	remote.UseStorage(p, remote.Dir(dir))
	sharding := rts.Sharding{Options: gcl.Options{Reproducible: true}}
	weights := ir.Spec{DType: tensor.F32, Shape: tensor.Shape{cfg.width, cfg.width}}
	shard, err := sharding.ShardShape(weights.Shape, cfg.replicas)
	if err != nil {
		return nil, err
	}
	layers := int(cfg.layers())
	m := &model{scale: float32(1 / (math.Sqrt(float64(cfg.width)) * float64(layers)))}
	b := remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: shard}, layers).Named("weights")
	for i := range layers {
		fill := randomNumbers(uint64(i), m.scale)
		if fromCheckpoint {
			fill = nil
		}
		m.params = append(m.params, rts.RemoteVariable(p, nil, b, i, sharding,
			remote.Name(fmt.Sprint("weights ", i)), remote.FirstValue(weights, fill)))
	}

	main := p.Main()
	m.x = p.HostToDevice("x", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{rows, cfg.width}})
	m.rate = p.HostToAll("rate", ir.Spec{DType: tensor.F32})
	m.made = p.HostToAll("step", ir.Spec{DType: tensor.I32})
	layer := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		x, w := in[0], in[1]
		return []*ir.Tensor{ops.Add(x, ops.Relu(ops.MatMul(x, w)))}
	}, m.x.Spec(), weights)
	loss := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.ReduceMean(ops.Square(in[0]))}
	}, m.x.Spec())
	var all []rts.Layer
	for _, v := range m.params {
		all = append(all, rts.Layer{Graph: layer, Params: []*rts.Variable{v}})
	}
	all[0].Inputs = []*ir.Tensor{main.HostLoad(m.x)}
	all = append(all, rts.Layer{Graph: loss})
	trainer := rts.Trainer{Optimizer: rts.Adam{}, BucketBytes: 1} // one layer in memory at a time
	m.step = trainer.Step(all, main.HostLoad(m.rate), main.HostLoad(m.made))
	m.loss = p.DeviceToHost("loss", ir.Spec{DType: tensor.F32})
	main.HostStore(m.loss, collective.Comm{Options: sharding.Options}.AllReduce(m.step.Outputs[0], gcl.Mean))
	m.session, err = ir.NewSession(p)
	return m, err
}

// randomNumbers makes first values: element i of a variable is the same on any number of replicas, because it is made
// of the seed and i alone.
func randomNumbers(seed uint64, scale float32) func(first int, dst *tensor.Tensor) error {
	var source rand.PCG
	random := rand.New(&source)
	return func(first int, dst *tensor.Tensor) error {
		v, err := tensor.Of[float32](dst)
		for i := range v {
			source.Seed(seed, uint64(first+i))
			v[i] = scale * float32(random.NormFloat64())
		}
		return err
	}
}

// train makes a step, the first being 1, and returns the loss before it.
func (m *model) train(ctx context.Context, number int32) (float32, error) {
	spec := m.session.HostSpec(m.x)
	x, err := tensor.New(spec.DType, spec.Shape...)
	if err != nil {
		return 0, err
	}
	v, err := tensor.Of[float32](x)
	if err != nil {
		return 0, err
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range v {
		v[i] = float32(random.NormFloat64())
	}
	out, err := m.session.Run(ctx, map[*ir.Stream]*tensor.Tensor{
		m.x: x, m.rate: tensor.Scalar(m.scale / 64), m.made: tensor.Scalar(number),
	})
	if err != nil {
		return 0, err
	}
	losses, err := tensor.Of[float32](out[m.loss])
	if err != nil {
		return 0, err
	}
	return losses[0], nil
}

// sum is a checksum of all parameters, which are read shard by shard to the memory of one.
func (m *model) sum() (uint32, error) {
	var shard *tensor.Tensor
	sum := uint32(0)
	for _, v := range m.params {
		b, entry := v.Buffer()
		for replica := range v.Shards() {
			var err error
			if shard == nil {
				shard, err = b.Read(m.session, replica, entry)
			} else {
				err = b.ReadTo(m.session, replica, entry, shard)
			}
			if err != nil {
				return 0, err
			}
			sum = crc32.Update(sum, castagnoli, shard.Bytes())
		}
	}
	return sum, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
