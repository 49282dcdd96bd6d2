// Command ddp trains a small net of gonum matrices, data parallel. Every replica draws points of its own, and computes
// gradients from the last parameter to the first. Package gcl/ddp reduces each while those before it are computed.
//
//	go run ./examples/ddp -n 4 -steps 1000
//
// Replicas are goroutines, or under a launcher processes. Both print the same:
//
//	go build -o ddp ./examples/ddp
//	go run ./cmd/gclrun -n 4 ./ddp -steps 1000
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/ddp"
	"gogcl.dev/internal/command"
)

func main() { command.Main("ddp", run) }

// run reads the command line, trains, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("ddp", flag.ContinueOnError)
	n := flags.Int("n", 0, "`number` of replicas; 0: those of the launcher, or one for each processor")
	steps := flags.Int("steps", 500, "`number` of updates")
	micros := flags.Int("accumulate", 1, "accumulate gradients over this `number` of batches for an update")
	if code, ok := command.Flags(flags, args, stdout, stderr, "Trains a small net of gonum matrices."); !ok {
		return code
	}
	for _, f := range []struct {
		name       string
		got, least int
	}{{"n", *n, 0}, {"steps", *steps, 1}, {"accumulate", *micros, 1}} {
		if f.got < f.least {
			return command.Mistake("ddp", fmt.Errorf("-%s %d, want %d or more", f.name, f.got, f.least), stderr)
		}
	}
	err := gcl.RunOrJoin(ctx, *n, func(ctx context.Context, c *gcl.Comm) error {
		params, err := train(ctx, c, *steps, *micros, stdout)
		if err != nil || c.Rank() != 0 {
			return err
		}
		_, err = fmt.Fprintf(stdout, "parameters of %d replicas: %016x\n", c.Size(), sum(params))
		return err
	})
	if err != nil {
		return command.Ended(ctx, "ddp", err, stderr)
	}
	return command.OK
}

// train returns the parameters after some updates, each of the gradients of some batches at every replica.
func train(ctx context.Context, c *gcl.Comm, steps, micros int, w io.Writer) ([][]float64, error) {
	c, err := c.With(gcl.Options{Reproducible: true})
	if err != nil {
		return nil, err
	}
	params, grads := begin(c.Rank()), zeros()
	if err := ddp.Broadcast(ctx, c, params); err != nil {
		return nil, err
	}
	// The net is small, so its buckets are: each of the gradients has one.
	r, err := ddp.New(ctx, c, grads, ddp.Options{BucketBytes: 1})
	if err != nil {
		return nil, err
	}
	ready := func(i int) error { return r.Ready(ctx, i) }
	for step := range steps {
		for _, g := range grads {
			clear(g)
		}
		loss := []float64{0}
		for micro := range micros {
			if micro < micros-1 { // the last one reduces what all have added up
				if err := r.NoSync(); err != nil {
					return nil, err
				}
			}
			l, err := backward(params, grads, points(step, micro, c.Rank()), ready)
			if err == nil {
				err = r.Finish(ctx)
			}
			if err != nil {
				return nil, err
			}
			loss[0] += l
		}
		update(params, grads, micros)
		if (step+1)%100 == 0 || step == steps-1 {
			if err := gcl.ReduceInPlace(ctx, c, loss, gcl.Mean, 0); err != nil {
				return nil, err
			}
			if c.Rank() == 0 {
				if _, err := fmt.Fprintf(w, "step %d: loss %.6f\n", step+1, loss[0]/float64(micros)); err != nil {
					return nil, err
				}
			}
		}
	}
	return params, nil
}

// The net is tanh(x·W + b)·V + c, of which the parameters are W, b, V and c.
const (
	inputs = 2
	hidden = 16
	batch  = 32
)

var lengths = [...]int{inputs * hidden, hidden, hidden, 1}

// zeros are slices of the parameters' lengths.
func zeros() [][]float64 {
	out := make([][]float64, len(lengths))
	for i, n := range lengths {
		out[i] = make([]float64, n)
	}
	return out
}

// begin draws what the parameters begin with.
func begin(seed int) [][]float64 {
	random, params := rand.New(rand.NewPCG(1, uint64(seed))), zeros()
	for _, p := range []int{0, 2} {
		for j := range params[p] {
			params[p][j] = random.NormFloat64() / math.Sqrt(float64(lengths[p]/hidden))
		}
	}
	for j := range params[2] {
		params[2][j] /= math.Sqrt(hidden)
	}
	return params
}

// sample is a batch: points, and what the net should make of them.
type sample struct{ x, y *mat.Dense }

// points draws the batch of a replica. The function to learn is sin(πx)·y.
func points(step, micro, rank int) sample {
	random := rand.New(rand.NewPCG(uint64(step), uint64(micro*1000+rank)))
	s := sample{mat.NewDense(batch, inputs, nil), mat.NewDense(batch, 1, nil)}
	for i := range batch {
		x, y := 2*random.Float64()-1, 2*random.Float64()-1
		s.x.SetRow(i, []float64{x, y})
		s.y.Set(i, 0, math.Sin(math.Pi*x)*y)
	}
	return s
}

// backward adds the gradients of the mean squared error to grads, and returns that error. It calls ready for each that
// is complete.
func backward(params, grads [][]float64, s sample, ready func(i int) error) (loss float64, err error) {
	weights, bias := mat.NewDense(inputs, hidden, params[0]), params[1]
	out, outBias := mat.NewDense(hidden, 1, params[2]), params[3][0]

	var h, wrong mat.Dense
	h.Mul(s.x, weights)
	h.Apply(func(_, j int, v float64) float64 { return math.Tanh(v + bias[j]) }, &h)
	wrong.Mul(&h, out)
	wrong.Apply(func(i, _ int, v float64) float64 { return v + outBias - s.y.At(i, 0) }, &wrong)
	loss = mat.Dot(wrong.ColView(0), wrong.ColView(0)) / batch

	wrong.Scale(2./batch, &wrong) // the gradient of the output
	grads[3][0] += mat.Sum(&wrong)
	if err := ready(3); err != nil {
		return 0, err
	}
	addProduct(grads[2], h.T(), &wrong)
	if err := ready(2); err != nil {
		return 0, err
	}
	var dh mat.Dense
	dh.Mul(&wrong, out.T())
	dh.Apply(func(i, j int, v float64) float64 { return v * (1 - h.At(i, j)*h.At(i, j)) }, &dh)
	for j := range hidden {
		grads[1][j] += mat.Sum(dh.ColView(j))
	}
	if err := ready(1); err != nil {
		return 0, err
	}
	addProduct(grads[0], s.x.T(), &dh)
	return loss, ready(0)
}

// addProduct adds a·b to the matrix that is in dst.
func addProduct(dst []float64, a, b mat.Matrix) {
	var product mat.Dense
	product.Mul(a, b)
	rows, columns := product.Dims()
	sum := mat.NewDense(rows, columns, dst)
	sum.Add(sum, &product)
}

// update takes a step down the mean of the gradients that have been added up.
func update(params, grads [][]float64, micros int) {
	for i, g := range grads {
		for j := range g {
			params[i][j] -= 0.2 / float64(micros) * g[j]
		}
	}
}

// sum is a number that tells parameters apart by their bits.
func sum(params [][]float64) uint64 {
	h := fnv.New64a()
	for _, p := range params {
		if err := binary.Write(h, binary.LittleEndian, p); err != nil {
			panic(err) // a hash takes all that is written
		}
	}
	return h.Sum64()
}
