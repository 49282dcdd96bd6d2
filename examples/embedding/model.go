package main

import (
	"math"
	"math/rand/v2"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/ir/ops"
	"gogcl.dev/ir/slice"
	"gogcl.dev/popops"
	"gogcl.dev/tensor"
)

// adamRate is the learning rate of Adam, for all weights but the table.
const adamRate = 0.003

// start is what learning begins with: a table of all words, and the weights of the layers. All follow from the seed.
type start struct {
	table  []float32 // by word: dim numbers each
	layers []*tensor.Tensor
}

// newStart draws the table and the hidden layer; the last layer begins with what is known of frequencies alone.
func newStart(cfg config, b *book) (*start, error) {
	r := rand.New(rand.NewPCG(cfg.seed, tableStream))
	s := &start{table: make([]float32, len(b.words)*cfg.dim)}
	draw := func(v []float32, most float64) {
		for i := range v {
			v[i] = float32(most * (2*r.Float64() - 1))
		}
	}
	draw(s.table, 0.5)
	for _, shape := range layers(cfg.dim) {
		x, err := tensor.New(tensor.F32, shape...)
		if err != nil {
			return nil, err
		}
		s.layers = append(s.layers, x)
	}
	hidden, err := tensor.Of[float32](s.layers[0])
	if err != nil {
		return nil, err
	}
	draw(hidden, math.Sqrt(3/float64(len(around)*cfg.dim))) // a variance of 1 in, one of 1 out
	bias, err := tensor.Of[float32](s.layers[3])
	if err != nil {
		return nil, err
	}
	for i, f := range frequencies(b.train) {
		bias[i] = float32(math.Log(f))
	}
	return s, nil
}

// layers are the shapes of weights and bias of the hidden layer, and those of the last.
func layers(dim int) []tensor.Shape {
	return []tensor.Shape{{len(around) * dim, dim}, {dim}, {dim, classes}, {classes}}
}

// guess is the mean loss of guesses, given the rows of the words around, (words, 4 dim), and the answers.
func guess(rows, answers *ir.Tensor, layers []*ir.Tensor) *ir.Tensor {
	hidden := ops.Tanh(ops.Add(ops.MatMul(rows, layers[0]), layers[1]))
	return ops.CrossEntropy(ops.Add(ops.MatMul(hidden, layers[2]), layers[3]), answers)
}

// step is a program that learns from one batch, the table split over its replicas, and a session of it.
type step struct {
	session *ir.Session

	// What a replica is given: the rows it wants, by replica and place, a row that is not there if a place is left
	// over; for each word around one to guess, the place of its row; and the answers.
	want, places, answers *ir.Stream

	number *ir.Stream
	loss   *ir.Stream
	table  *ir.Variable
	layers []*ir.Variable
}

// all are all replicas. Sums are the left fold in their order, which one replica can do as well, by any method.
var all = collective.Comm{Options: gcl.Options{Reproducible: true}}

// entries are what slices of a table are: single rows.
var entries = slice.Form{Kind: slice.Multi, Dims: []int{0}, Sizes: []int{1}}

// newStep builds the program for look-ups of so many places for each pair of replicas.
func newStep(cfg config, capacity int, from *start) (*step, error) {
	n := cfg.replicas
	rows := shardRows(len(from.table)/cfg.dim, n)
	s, p := &step{}, ir.New(n)
	main := p.Main()
	if err := s.variables(p, cfg, from, rows); err != nil {
		return nil, err
	}
	layers := make([]*ir.Tensor, len(s.layers))
	inputs := []ir.Input{ // of the graph that guesses
		ir.Spec{Shape: tensor.Shape{n * capacity, 1, cfg.dim}, DType: tensor.F32},
		ir.Spec{Shape: tensor.Shape{cfg.part() * len(around), 1}, DType: tensor.U32},
		ir.Spec{Shape: tensor.Shape{cfg.part()}, DType: tensor.I32},
	}
	for i, l := range s.layers {
		layers[i] = l.Tensor
		inputs = append(inputs, l.Tensor)
	}
	graph := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		rows := all.AllToAll(ops.Reshape(in[0], n, capacity, cfg.dim)) // back to who wanted them
		rows = ops.Reshape(rows, n*capacity, cfg.dim)
		rows = entries.Slice(rows, in[1])
		return []*ir.Tensor{guess(ops.Reshape(rows, cfg.part(), -1), in[2], in[3:])}
	}, inputs...)
	var wanted []*ir.Tensor
	if p.Err() == nil {
		wanted = append([]*ir.Tensor{graph.Inputs()[0]}, graph.Inputs()[3:]...)
	}
	gradient := ir.Autodiff(graph, ir.ForInputs(wanted...))
	if err := p.Err(); err != nil {
		return nil, err
	}
	// replicas are workers enough
	plan, err := popops.NewPlan(tensor.F32, rows, cfg.dim, []int{n * capacity}, popops.PlanOptions{Workers: 1})
	if err != nil {
		return nil, err
	}

	load := func(name string, dtype tensor.DType, shape ...int) (*ir.Stream, *ir.Tensor) {
		stream := p.HostToDevice(name, ir.Spec{Shape: shape, DType: dtype})
		return stream, main.HostLoad(stream)
	}
	share := main.Constant(tensor.Scalar(1 / float32(n)))
	var want, places, answers *ir.Tensor
	s.want, want = load("want", tensor.U32, n, capacity)
	s.places, places = load("places", tensor.U32, cfg.part()*len(around), 1)
	s.answers, answers = load("answers", tensor.I32, cfg.part())
	s.number = p.HostToAll("step", ir.Spec{DType: tensor.I32})
	number := main.HostLoad(s.number)

	at := ops.Reshape(all.AllToAll(want), n*capacity, 1) // with whose rows they are
	planned := entries
	planned.Plan = plan
	found := planned.Slice(s.table.Tensor, at)
	forward := main.CallWithInfo(graph, nil, append([]*ir.Tensor{found, places, answers}, layers...)...)
	by := gradient.By(forward)
	by[gradient.Grads[0]] = share // of the mean over all replicas
	back := main.CallWithInfo(gradient.Graph, by).Outputs()
	if err := p.Err(); err != nil {
		return nil, err
	}
	minusRate := main.Constant(tensor.Scalar(float32(-cfg.rate)))
	planned.UpdateAddInPlace(s.table.Tensor, back[0], at, minusRate)
	sums := all.AllReduceMany(append(back[1:], forward.Outputs()[0]), gcl.Add)
	if err := p.Err(); err != nil {
		return nil, err
	}
	rate := main.Constant(tensor.Scalar(float32(adamRate)))
	for i, l := range s.layers {
		zeros, err := tensor.New(tensor.F32, l.Shape()...)
		if err != nil {
			return nil, err
		}
		state := ops.AdamState{Mean: p.Variable(zeros).Tensor, Square: p.Variable(zeros).Tensor}
		ops.Adam{}.Update(l.Tensor, state, sums[i], rate, number)
	}
	s.loss = p.DeviceToHost("loss", ir.Spec{DType: tensor.F32})
	main.HostStore(s.loss, ops.Mul(sums[len(s.layers)], share))
	p.CheckFinite(cfg.finite)
	s.session, err = ir.NewSession(p)
	return s, err
}

// variables makes the variables. A replica has so many rows of the table: those of its words, and zeros past the last
// word.
func (s *step) variables(p *ir.Program, cfg config, from *start, rows int) error {
	n, dim := p.Replicas(), cfg.dim
	shape := []int{rows, dim}
	if n > 1 {
		shape = append([]int{n}, shape...)
	}
	data, err := tensor.New(tensor.F32, shape...)
	if err != nil {
		return err
	}
	table, err := tensor.Of[float32](data)
	if err != nil {
		return err
	}
	for w := range len(from.table) / dim {
		replica, row := owner(w, n)
		copy(table[(replica*rows+row)*dim:], from.table[w*dim:(w+1)*dim])
	}
	each := commgroup.Group{Type: commgroup.Consecutive, Size: 1} // each replica begins with rows of its own
	s.table = p.Variable(data, ir.VariableName("table"), ir.VariableGroups(each))
	for _, l := range from.layers {
		s.layers = append(s.layers, p.Variable(l))
	}
	return nil
}

// read is what has been learnt so far, in the form of what it began with.
func (s *step) read(cfg config, words int) (*start, error) {
	data, err := s.session.Read(s.table)
	if err != nil {
		return nil, err
	}
	shards, err := tensor.Of[float32](data)
	if err != nil {
		return nil, err
	}
	n := s.session.Program().Replicas()
	rows := len(shards) / n / cfg.dim
	learnt := &start{table: make([]float32, words*cfg.dim)}
	for w := range words {
		replica, row := owner(w, n)
		copy(learnt.table[w*cfg.dim:(w+1)*cfg.dim], shards[(replica*rows+row)*cfg.dim:])
	}
	for _, l := range s.layers {
		x, err := s.session.Read(l)
		if err != nil {
			return nil, err
		}
		learnt.layers = append(learnt.layers, x)
	}
	return learnt, nil
}
