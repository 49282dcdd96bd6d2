package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// reference learns what a step does, with nothing of its routes, batches and feed: words come straight from the book,
// rows are looked up and learnt by plain loops on the one table of all words. Only what guesses, and learns its own
// weights, is a program: of one replica, without collectives, a part of the batch after the other.
type reference struct {
	cfg     config
	text    []int32
	table   []float32
	session *ir.Session
	layers  []*ir.Variable
	in, out map[*ir.Stream]*tensor.Tensor
	parts   []referencePart // for each replica what it would do
	number  []int32
	loss    []float32
}

// referencePart is what a part of the batch is given and gives: the rows of the words around each word to guess,
// (words, 4, dim), the answers, and the gradients of the rows.
type referencePart struct {
	rows, grads []float32
	answers     []int32
}

// newReference begins with a copy of from's table.
func newReference(cfg config, b *book, from *start) (*reference, error) {
	r := &reference{cfg: cfg, text: b.train, table: append([]float32(nil), from.table...),
		in: map[*ir.Stream]*tensor.Tensor{}, out: map[*ir.Stream]*tensor.Tensor{}}
	p, each := ir.New(1), cfg.batch/cfg.replicas
	main := p.Main()
	inputs := []ir.Input{
		ir.Spec{Shape: tensor.Shape{each, 4 * cfg.dim}, DType: tensor.F32},
		ir.Spec{Shape: tensor.Shape{each}, DType: tensor.I32},
	}
	var layers []*ir.Tensor
	for _, l := range from.layers {
		v := p.Variable(l)
		r.layers, layers, inputs = append(r.layers, v), append(layers, v.Tensor), append(inputs, v.Tensor)
	}
	graph := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{guess(in[0], in[1], in[2:])}
	}, inputs...)
	if err := p.Err(); err != nil {
		return nil, err
	}
	gradient := ir.Autodiff(graph, ir.ForInputs(append([]*ir.Tensor{graph.Inputs()[0]}, graph.Inputs()[2:]...)...))
	if err := p.Err(); err != nil {
		return nil, err
	}
	share := main.Constant(tensor.Scalar(1 / float32(cfg.replicas)))
	var loss *ir.Tensor
	var sums []*ir.Tensor // of the gradients of the layers
	r.parts = make([]referencePart, cfg.replicas)
	for k := range r.parts {
		part := &r.parts[k]
		rows, err := give(r.in, &part.rows, p.HostToDevice("rows", inputs[0].(ir.Spec)), each, 4*cfg.dim)
		if err != nil {
			return nil, err
		}
		answers, err := give(r.in, &part.answers, p.HostToDevice("answers", inputs[1].(ir.Spec)), each)
		if err != nil {
			return nil, err
		}
		forward := main.CallWithInfo(graph, nil,
			append([]*ir.Tensor{main.HostLoad(rows), main.HostLoad(answers)}, layers...)...)
		by := gradient.By(forward)
		by[gradient.Grads[0]] = share
		back := main.CallWithInfo(gradient.Graph, by).Outputs()
		if err := p.Err(); err != nil {
			return nil, err
		}
		grads, err := give(r.out, &part.grads, p.DeviceToHost("gradients", inputs[0].(ir.Spec)), each, 4*cfg.dim)
		if err != nil {
			return nil, err
		}
		main.HostStore(grads, back[0])
		if k == 0 {
			loss, sums = forward.Outputs()[0], back[1:]
			continue
		}
		loss = ops.Add(loss, forward.Outputs()[0])
		for i, g := range back[1:] {
			sums[i] = ops.Add(sums[i], g)
		}
	}
	number, err := give(r.in, &r.number, p.HostToDevice("step", ir.Spec{DType: tensor.I32}))
	if err != nil {
		return nil, err
	}
	at, rate := main.HostLoad(number), main.Constant(tensor.Scalar(float32(adamRate)))
	for i, l := range layers {
		zeros, err := tensor.New(tensor.F32, l.Shape()...)
		if err != nil {
			return nil, err
		}
		ops.Adam{}.Update(l, ops.AdamState{Mean: p.Variable(zeros).Tensor, Square: p.Variable(zeros).Tensor}, sums[i],
			rate, at)
	}
	mean, err := give(r.out, &r.loss, p.DeviceToHost("loss", ir.Spec{DType: tensor.F32}))
	if err != nil {
		return nil, err
	}
	main.HostStore(mean, ops.Mul(loss, share))
	r.session, err = ir.NewSession(p)
	return r, err
}

// give makes memory of the host for a stream, and returns the stream.
func give[T tensor.Element](of map[*ir.Stream]*tensor.Tensor, words *[]T, stream *ir.Stream,
	shape ...int) (*ir.Stream, error) {
	x, err := tensor.New(tensor.DTypeOf[T](), shape...)
	if err != nil {
		return nil, err
	}
	of[stream] = x
	*words, err = tensor.Of[T](x)
	return stream, err
}

// step learns from the words at some places, and returns their mean loss.
func (r *reference) step(ctx context.Context, places []int) (float32, error) {
	r.number[0]++
	dim := r.cfg.dim
	for k := range r.parts {
		part := &r.parts[k]
		n := len(part.answers)
		for i, at := range places[k*n : (k+1)*n] {
			for j, w := range neighbours(r.text, at) {
				copy(part.rows[(4*i+j)*dim:(4*i+j+1)*dim], r.table[int(w)*dim:])
			}
			part.answers[i] = classes - 1
			if w := r.text[at]; w > 0 && w < classes {
				part.answers[i] = w - 1
			}
		}
	}
	if err := r.session.RunTo(ctx, r.out, r.in); err != nil {
		return 0, err
	}
	minusRate := float32(-r.cfg.rate)
	for k := range r.parts {
		part := &r.parts[k]
		n := len(part.answers)
		sums := map[int32][]float32{} // of the gradients of each word's row, over the part
		for i, at := range places[k*n : (k+1)*n] {
			for j, w := range neighbours(r.text, at) {
				if sums[w] == nil {
					sums[w] = make([]float32, dim)
				}
				for d, g := range part.grads[(4*i+j)*dim : (4*i+j+1)*dim] {
					sums[w][d] += g
				}
			}
		}
		for w, sum := range sums {
			for d, g := range sum {
				r.table[int(w)*dim+d] += float32(minusRate * g) // rounded before it is added
			}
		}
	}
	return r.loss[0], nil
}

// neighbours are the two words before a place and the two after it.
func neighbours(text []int32, at int) [4]int32 {
	return [4]int32{text[at-2], text[at-1], text[at+1], text[at+2]}
}

// read is what has been learnt so far; the table is the reference's own.
func (r *reference) read() (*start, error) {
	learnt := &start{table: r.table}
	for _, l := range r.layers {
		x, err := r.session.Read(l)
		if err != nil {
			return nil, err
		}
		learnt.layers = append(learnt.layers, x)
	}
	return learnt, nil
}

// alike is how near the losses of the program and of the host are, as a part of them: both are of float32s.
const alike = 1e-4

// learnAlone is all that train does, by a reference. In each pass it holds the loss of the first step against that of
// the host.
func learnAlone(ctx context.Context, cfg config, b *book, from *start) (learnt *start, losses []float64, err error) {
	r, err := newReference(cfg, b, from)
	if err != nil {
		return nil, nil, err
	}
	defer r.session.Close()
	random := rand.New(rand.NewPCG(cfg.seed, orderStream))
	order := random.Perm(len(r.text) - 4)
	batches := make([]int, len(order)/cfg.batch)
	for i := range batches {
		batches[i] = i
	}
	places := make([]int, cfg.batch)
	err = r.session.Within(func() error {
		for epoch := range cfg.epochs {
			random.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
			sum, host := 0.0, 0.0
			for i, batch := range batches {
				for j := range places {
					places[j] = order[batch*cfg.batch+j] + 2
				}
				if i == 0 {
					now, err := r.read()
					if err != nil {
						return err
					}
					if host, err = hostLoss(ctx, now, r.text, places, cfg.dim); err != nil {
						return err
					}
				}
				loss, err := r.step(ctx, places)
				if err != nil {
					return err
				}
				if i == 0 && !near(float64(loss), host) {
					return fmt.Errorf("the loss of the first step of epoch %d is %v, and %v by loops on the host",
						epoch+1, loss, host)
				}
				sum += float64(loss)
			}
			losses = append(losses, sum/float64(len(batches)))
		}
		learnt, err = r.read()
		return err
	})
	return learnt, losses, err
}

// near reports whether two losses are alike. What is not finite is not compared: sums run over in another order.
func near(loss, host float64) bool {
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return true
	}
	return math.Abs(loss-host) <= alike*max(1, math.Abs(host))
}
