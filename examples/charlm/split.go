package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// decoder is one replica's part of a model whose layers are split over the replicas. It reads one character after the
// other. As Megatron-LM does (Shoeybi et al., arXiv:1909.08053), it splits the first matrices of each half of a block
// by columns and the last one by rows, so that one all-reduce makes the half whole:
//
//	                        replica 0                         replica 1
//	x                       whole                             whole, the same bits
//	query, key, value       columns: those of its heads       columns
//	attention               its heads                         its heads
//	projection              rows: those of its heads          rows
//	                        part ◀────── all-reduce ──────▶ part
//	x                       x + the sum of the parts          the same bits
//	mlp in                  columns                           columns
//	mlp out                 rows                              rows
//	                        part ◀────── all-reduce ──────▶ part
//	x                       x + the sum of the parts          the same bits
//	logits                  whole                             whole, the same bits
//
// Norms, the embedding and the head are whole on each replica.
type decoder struct {
	size       size
	comm       *gcl.Comm
	embeddings [][]float32 // the parameters of embeddingParams
	blocks     []*block
	head       [][]float32 // the parameters of headParams
	output     blas32.General

	at     int       // characters that the caches of the blocks hold
	part   []float32 // this replica's part of half a block, and then the sum of all parts
	x      []float32 // what the blocks add to
	normed []float32
	query  []float32 // of this replica's heads
	seen   []float32 // what its heads have seen
	scores []float32 // by position
	hidden []float32 // this replica's columns within the mlp
	logits []float32 // of what may follow the last character that was read
}

// block is a replica's part of a block.
type block struct {
	query, key, value, projection, in, out blas32.General

	params       [][]float32 // those of blockParams, for what is whole
	inBias       []float32   // of the columns of in
	keys, values []float32   // the cache: a row for each position
}

// splits is an error if the layers cannot be split over n replicas: each has as many heads.
func (s size) splits(n int) error {
	if s.heads%n == 0 {
		return nil
	}
	var fit []int
	for k := 1; k <= s.heads; k++ {
		if s.heads%k == 0 {
			fit = append(fit, k)
		}
	}
	return fmt.Errorf("the layers cannot be split over %d replicas, each with as many of the %d heads: want a number of "+
		"replicas among %d, or another -size", n, s.heads, fit)
}

// newDecoder takes this replica's part of the parameters. Errors: the layers cannot be split over the replicas; there
// is no memory for collectives.
func newDecoder(c *gcl.Comm, s size, v values) (*decoder, error) {
	rank, n := c.Rank(), c.Size()
	if err := s.splits(n); err != nil {
		return nil, err
	}
	layers := make([][][]float32, len(v))
	for i, layer := range v {
		for _, t := range layer {
			data, err := tensor.Of[float32](t)
			if err != nil {
				return nil, err
			}
			layers[i] = append(layers[i], data)
		}
	}
	part, err := gcl.Alloc[float32](c, s.width) // which processes of one host reach without a copy
	if err != nil {
		return nil, err
	}
	own := s.width / n
	head := layers[len(layers)-1]
	d := &decoder{
		size: s, comm: c, embeddings: layers[0], head: head, output: columns(head[2], s.width, 0, 1), part: part,
		x: make([]float32, s.width), normed: make([]float32, s.width),
		query: make([]float32, own), seen: make([]float32, own), scores: make([]float32, s.window),
		hidden: make([]float32, s.hidden()/n), logits: make([]float32, s.vocabulary),
	}
	for _, p := range layers[1 : len(layers)-1] {
		d.blocks = append(d.blocks, &block{
			query: columns(p[2], s.width, rank, n), key: columns(p[3], s.width, rank, n),
			value: columns(p[4], s.width, rank, n), projection: rows(p[5], s.width, rank, n),
			in: columns(p[8], s.width, rank, n), out: rows(p[10], s.hidden(), rank, n),
			params: p, inBias: p[9][rank*s.hidden()/n:],
			keys: make([]float32, s.window*own), values: make([]float32, s.window*own),
		})
	}
	return d, nil
}

// columns copies the columns of a matrix that a replica has. rows is how many rows the matrix has.
func columns(matrix []float32, rows, rank, n int) blas32.General {
	all := len(matrix) / rows
	own := all / n
	m := blas32.General{Rows: rows, Cols: own, Stride: own, Data: make([]float32, 0, rows*own)}
	for row := range slices.Chunk(matrix, all) {
		m.Data = append(m.Data, row[rank*own:][:own]...)
	}
	return m
}

// rows copies the rows of a matrix that a replica has. all is how many rows the matrix has.
func rows(matrix []float32, all, rank, n int) blas32.General {
	cols, own := len(matrix)/all, all/n
	return blas32.General{Rows: own, Cols: cols, Stride: cols, Data: slices.Clone(matrix[rank*own*cols:][:own*cols])}
}

// parameters is how many numbers this replica's parts of the matrices have. What is whole on each replica is aside.
func (d *decoder) parameters() int {
	n := 0
	for _, b := range d.blocks {
		for _, m := range []blas32.General{b.query, b.key, b.value, b.projection, b.in, b.out} {
			n += len(m.Data)
		}
	}
	return n
}

// read reads a character, and leaves in logits what may follow it. There must be room for it in the window.
func (d *decoder) read(ctx context.Context, char int32) error {
	width := d.size.width
	copy(d.x, d.embeddings[0][int(char)*width:])
	add(d.x, d.embeddings[1][d.at*width:])
	for _, b := range d.blocks {
		normalize(d.normed, d.x, b.params[0], b.params[1])
		d.attend(b)
		multiply(d.part, d.seen, b.projection)
		if err := d.addParts(ctx); err != nil {
			return err
		}
		normalize(d.normed, d.x, b.params[6], b.params[7])
		multiply(d.hidden, d.normed, b.in)
		for i, v := range d.hidden {
			v = max(0, v+b.inBias[i])
			d.hidden[i] = v * v
		}
		multiply(d.part, d.hidden, b.out)
		if err := d.addParts(ctx); err != nil {
			return err
		}
		add(d.x, b.params[11])
	}
	normalize(d.normed, d.x, d.head[0], d.head[1])
	multiply(d.logits, d.normed, d.output)
	add(d.logits, d.head[3])
	d.at++
	return nil
}

// addParts adds the parts of all replicas to x. It allocates nothing.
func (d *decoder) addParts(ctx context.Context) error {
	if err := gcl.AllReduceInPlace(ctx, d.comm, d.part, gcl.Add); err != nil {
		return err
	}
	add(d.x, d.part)
	return nil
}

// attend has this replica's heads look at the characters read, and at this one.
func (d *decoder) attend(b *block) {
	own, each := len(d.query), d.size.width/d.size.heads
	multiply(d.query, d.normed, b.query)
	multiply(b.keys[d.at*own:][:own], d.normed, b.key)
	multiply(b.values[d.at*own:][:own], d.normed, b.value)
	clear(d.seen)
	scores := d.scores[:d.at+1]
	for head := 0; head < own; head += each {
		greatest := float32(math.Inf(-1))
		for i := range scores {
			sum := float32(0)
			for k, q := range d.query[head : head+each] {
				sum += q * b.keys[i*own+head+k]
			}
			scores[i] = sum / float32(math.Sqrt(float64(each)))
			greatest = max(greatest, scores[i])
		}
		sum := float32(0)
		for i, v := range scores {
			scores[i] = float32(math.Exp(float64(v - greatest)))
			sum += scores[i]
		}
		for i, v := range scores {
			for k := range each {
				d.seen[head+k] += v / sum * b.values[i*own+head+k]
			}
		}
	}
}

// multiply sets y to the product of the row x and a matrix.
func multiply(y, x []float32, m blas32.General) {
	blas32.Gemv(blas.Trans, 1, m, blas32.Vector{N: len(x), Inc: 1, Data: x}, 0,
		blas32.Vector{N: len(y), Inc: 1, Data: y})
}

// add adds values to y. There may be more of them than y has.
func add(y, values []float32) {
	for i := range y {
		y[i] += values[i]
	}
}

// normalize sets y to the layer norm of x.
func normalize(y, x, gain, bias []float32) {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += float64(v) / float64(len(x))
	}
	for _, v := range x {
		square += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
	}
	scale := 1 / math.Sqrt(square+epsilon)
	for i, v := range x {
		y[i] = float32((float64(v)-mean)*scale)*gain[i] + bias[i]
	}
}

// generate is [generator.generate] on all replicas, which have the same text. random is from the same seed on each, and
// so all draw the same characters. When the window is full, its last half is read anew from the first position on.
func (d *decoder) generate(ctx context.Context, random *rand.Rand, text []int32, chars int,
	temperature float64) ([]int32, error) {
	d.at = 0
	next := max(0, len(text)-d.size.window) // of the text, to be read
	for range chars {
		if d.at == d.size.window {
			d.at, next = 0, len(text)-d.size.window/2
		}
		for ; next < len(text); next++ {
			if err := d.read(ctx, text[next]); err != nil {
				return nil, err
			}
		}
		text = append(text, int32(draw(random, d.logits, temperature)))
	}
	return text, nil
}

// onReplicas has the body run on the replicas of this process: its own in a job, and else all, as goroutines.
func (cfg config) onReplicas(ctx context.Context, body func(context.Context, *gcl.Comm) error) error {
	split := func(ctx context.Context, c *gcl.Comm) error {
		// Reproducible, so that replicas that are processes have the bits of replicas that are goroutines.
		c, err := c.With(gcl.Options{Method: cfg.method, Reproducible: true})
		if err != nil {
			return err
		}
		return body(ctx, c)
	}
	if cfg.me.InJob() {
		return split(ctx, cfg.me.Comm())
	}
	return gcl.Run(ctx, cfg.replicas, split)
}

// generateSplit makes up a text with the layers split over the replicas. parameters is [decoder.parameters].
func (cfg config) generateSplit(ctx context.Context, s size, v values, begin []int32) (text []int32, parameters int,
	err error) {
	err = cfg.onReplicas(ctx, func(ctx context.Context, c *gcl.Comm) error {
		d, err := newDecoder(c, s, v)
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(cfg.seed, sampleStream))
		made, err := d.generate(ctx, random, slices.Clone(begin), cfg.sample, cfg.temperature)
		if c.Rank() == 0 || cfg.me.InJob() {
			text, parameters = made, d.parameters()
		}
		return err
	})
	return text, parameters, err
}
