package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"gogcl.dev/chunks"
	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/gcl"
)

// Two streams of random numbers from one seed.
const (
	weightStream = iota // the first weights: drawn by rank 0
	orderStream         // the order of the images: drawn by every replica, the same on all
)

// trainer is one replica: its copy of the net, its optimiser, and its handle on the other replicas.
type trainer struct {
	comm  *gcl.Comm
	rate  float64
	batch int               // images in a step, over all replicas
	train perceptron.Images // all of them: each step has another share of them
	test  perceptron.Images // this replica's share

	net   *perceptron.Net
	opt   *perceptron.Adam
	order *rand.Rand
	share perceptron.Images // this replica's part of the batch

	// sums is the gradient and, behind it, one more number, the loss: one all-reduce brings all that a step needs.
	sums []float32
}

// newTrainer makes the replica behind comm. All replicas start from the weights that rank 0 draws.
func newTrainer(ctx context.Context, comm *gcl.Comm, cfg config, train, test perceptron.Images) (*trainer, error) {
	// Reproducible, so that replicas that are processes have the bits of replicas that are goroutines.
	comm, err := comm.With(gcl.Options{Method: cfg.method, Reproducible: true})
	if err != nil {
		return nil, err
	}
	lo, hi := chunks.Split(test.Len(), comm.Size(), comm.Rank())
	t := &trainer{
		comm:  comm,
		rate:  cfg.rate,
		batch: cfg.batch,
		train: train,
		test:  test.Slice(lo, hi),
		net:   perceptron.New(chunks.PerRank(max(cfg.batch, test.Len()), comm.Size())),
		opt:   perceptron.NewAdam(perceptron.NumParams),
		order: rand.New(rand.NewPCG(cfg.seed, orderStream)),
		sums:  make([]float32, perceptron.NumParams+1),
	}
	if comm.Rank() == 0 {
		t.net.Init(rand.New(rand.NewPCG(cfg.seed, weightStream)))
	}
	return t, gcl.BroadcastInPlace(ctx, comm, t.net.Params, 0)
}

// pass is what one pass over the training images came to, over all replicas.
type pass struct {
	loss             float64 // mean cross entropy of the training images, each before its step
	correct          int     // images held out that the net knew afterwards
	tested           int     // images held out
	samplesPerSecond float64 // of training
}

// accuracy is the part of the images held out that the net knew.
func (p pass) accuracy() float64 { return float64(p.correct) / float64(p.tested) }

// String is short enough for a status line on a terminal of 80 columns.
func (p pass) String() string {
	return fmt.Sprintf("loss %.4f  held-out accuracy %.4f  %.0f samples/s", p.loss, p.accuracy(), p.samplesPerSecond)
}

// pass trains on every image once, in a new order, and then tests. The replicas hold tested images between them.
func (t *trainer) pass(ctx context.Context, tested int) (pass, error) {
	began := time.Now()
	result := pass{tested: tested}
	order := t.order.Perm(t.train.Len())
	for lo := 0; lo < len(order); lo += t.batch {
		batch := order[lo:min(lo+t.batch, len(order))]
		loss, err := t.step(ctx, batch)
		if err != nil {
			return pass{}, err
		}
		result.loss += loss * float64(len(batch)) / float64(len(order))
	}
	result.samplesPerSecond = float64(len(order)) / time.Since(began).Seconds()

	correct := []int64{int64(t.net.Correct(t.test))}
	if err := gcl.AllReduceInPlace(ctx, t.comm, correct, gcl.Add); err != nil {
		return pass{}, err
	}
	result.correct = int(correct[0])
	return result, nil
}

// step moves the weights by the mean gradient of the training images that batch lists, and returns their mean loss.
//
// The n replicas share the batch out, b images in all, and the shares may differ by one image; at the end of a pass,
// when few are left, some may even be empty. The mean of the replicas' own means would then favour the images in
// small shares. So each replica weights each of its images by n/b, whatever its share, and Mean divides the sum by n:
// each image counts 1/b.
func (t *trainer) step(ctx context.Context, batch []int) (loss float64, err error) {
	lo, hi := chunks.Split(len(batch), t.comm.Size(), t.comm.Rank())
	t.share.Reset()
	for _, i := range batch[lo:hi] {
		t.share.Add(t.train.At(i))
	}
	weight := float32(t.comm.Size()) / float32(len(batch))
	grad := t.sums[:perceptron.NumParams]
	t.sums[perceptron.NumParams] = t.net.Gradient(grad, t.share, weight)
	if err := gcl.AllReduceInPlace(ctx, t.comm, t.sums, gcl.Mean); err != nil {
		return 0, err
	}
	t.opt.Step(t.net.Params, grad, t.rate)
	return float64(t.sums[perceptron.NumParams]), nil
}
