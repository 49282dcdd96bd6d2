package main

import (
	"gogcl.dev/chunks"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// gradients is the reference's program, on one replica. It computes the micro-batches of all replicas in turn, and
// folds what comes of them as Options.Reproducible promises for a reduction by Mean: ((x0 + x1) + x2) + ..., by rank,
// and one division at the end. With -accumulate the k micro-batches of a rank are added up before, in their order: a
// loss is then divided by k, and a gradient after it is reduced.
//
//	parameters ─▶ micro-batch 0 ─▶ loss, gradients ─┐
//	           ─▶ micro-batch 1 ─▶ loss, gradients ─┼─▶ fold, divide by n ─▶ norm, clip ─▶ gradients
//	              ...                               ┘
//
// The norm is made of sums of squares, and these depend on how elements are grouped: it adds the squares of each
// shard, then the shards of a replica in the order of the parameters, then the replicas by rank.
type gradients struct {
	shareStreams
	params     []*ir.Stream // in as well
	grads      []*ir.Stream // out
	loss, norm *ir.Stream   // likewise; norm is nil without clipping
}

// fold combines one tensor of each replica, by rank.
type fold func(parts []*ir.Tensor) *ir.Tensor

// leftFold is ((x0 + x1) + x2) + ....
func leftFold(parts []*ir.Tensor) *ir.Tensor {
	sum := parts[0]
	for _, t := range parts[1:] {
		sum = ops.Add(sum, t)
	}
	return sum
}

// newGradients builds the program.
func newGradients(p *ir.Program, cfg config, rows int, sum fold) (*gradients, error) {
	g := &gradients{shareStreams: newShareStreams(p, 1, rows)}
	main := p.Main()
	var values []*ir.Tensor
	for _, of := range params {
		stream := p.HostToDevice(of.name, of.spec())
		g.params = append(g.params, stream)
		values = append(values, main.HostLoad(stream))
	}
	b := newBackward(p, rows)
	losses, grads := make([]*ir.Tensor, cfg.replicas), make([][]*ir.Tensor, len(params))
	for rank := range cfg.replicas {
		var micro []*ir.Tensor
		all := make([][]*ir.Tensor, len(params))
		for range cfg.micro {
			loss, of := b.run(main, main.HostLoad(g.images), main.HostLoad(g.labels), main.HostLoad(g.weights), values)
			micro = append(micro, loss)
			for i, grad := range of {
				all[i] = append(all[i], grad)
			}
		}
		losses[rank] = ops.DivScalar(leftFold(micro), float64(cfg.micro))
		for i, grad := range all {
			grads[i] = append(grads[i], leftFold(grad))
		}
	}
	mean := func(parts []*ir.Tensor) *ir.Tensor { return ops.DivScalar(sum(parts), float64(cfg.replicas)) }
	g.loss = store(p, "loss", mean(losses))
	means := make([]*ir.Tensor, len(params))
	for i, parts := range grads {
		means[i] = ops.DivScalar(mean(parts), float64(cfg.micro))
	}
	if cfg.clip > 0 {
		norm, err := normOf(means, cfg.replicas, sum)
		if err != nil {
			return nil, err
		}
		g.norm = store(p, "norm", norm)
		limit, one := main.Constant(tensor.Scalar(float32(cfg.clip))), main.Constant(tensor.Scalar(float32(1)))
		factor := ops.Select(ops.LessEqual(norm, limit), one, ops.Div(limit, norm))
		for i, m := range means {
			means[i] = ops.Mul(m, factor)
		}
	}
	for i, m := range means {
		g.grads = append(g.grads, store(p, params[i].name+".grad", m))
	}
	return g, nil
}

// normOf is the Euclidean norm of the gradients of all parameters, as replicas have it that hold a shard of each.
func normOf(grads []*ir.Tensor, replicas int, sum fold) (*ir.Tensor, error) {
	squares := make([]*ir.Tensor, replicas)
	for i, g := range grads {
		n := params[i].elements()
		c := chunks.PerRank(n, replicas)
		flat := ops.Reshape(g, n)
		if padding := c*replicas - n; padding > 0 {
			zeros, err := tensor.New(tensor.F32, padding)
			if err != nil {
				return nil, err
			}
			flat = ops.Concat(0, flat, g.Graph().Constant(zeros))
		}
		for rank := range replicas {
			s := ops.ReduceSum(ops.Square(ops.SliceAxis(flat, 0, rank*c, (rank+1)*c)))
			if squares[rank] != nil {
				s = ops.Add(squares[rank], s)
			}
			squares[rank] = s
		}
	}
	return ops.Sqrt(sum(squares)), nil
}

// backward is the layers' graphs and their gradients.
type backward struct {
	hidden, loss         *ir.Graph
	hiddenGrad, lossGrad *ir.GradInfo
}

func newBackward(p *ir.Program, rows int) *backward {
	b := &backward{
		hidden: p.CreateGraph(hiddenLayer, imagesSpec(rows), params[0].spec(), params[1].spec()),
		loss: p.CreateGraph(lossLayer, hiddenSpec(rows), labelsSpec(rows), weightsSpec(rows), params[2].spec(),
			params[3].spec()),
	}
	in := b.hidden.Inputs()
	b.hiddenGrad = ir.Autodiff(b.hidden, ir.ForInputs(in[1], in[2]))
	in = b.loss.Inputs()
	b.lossGrad = ir.Autodiff(b.loss, ir.ForInputs(in[0], in[3], in[4]))
	return b
}

// run computes a micro-batch: its loss, and the gradient of each parameter.
func (b *backward) run(main *ir.Graph, images, labels, weights *ir.Tensor, values []*ir.Tensor) (loss *ir.Tensor,
	grads []*ir.Tensor) {
	first := main.CallWithInfo(b.hidden, nil, images, values[0], values[1])
	second := main.CallWithInfo(b.loss, nil, first.Outputs()[0], labels, weights, values[2], values[3])
	by := b.lossGrad.By(second)
	by[b.lossGrad.Grads[0]] = main.Constant(tensor.Scalar(float32(1)))
	above := main.CallWithInfo(b.lossGrad.Graph, by).Outputs()
	by = b.hiddenGrad.By(first)
	by[b.hiddenGrad.Grads[0]] = above[0]
	below := main.CallWithInfo(b.hiddenGrad.Graph, by).Outputs()
	return second.Outputs()[0], append(below, above[1:]...)
}
