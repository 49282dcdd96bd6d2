package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gogcl.dev/internal/progress"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// learn is the run after all has been checked.
func learn(ctx context.Context, cfg config, b *book, out *progress.Printer) error {
	capacity, words := cfg.capacity(b), len(b.words)
	out.Line(fmt.Sprintf("%d words to learn from, %d held out, %d different; replicas: %d, batch: %d",
		len(b.train), len(b.heldOut), words-1, cfg.replicas, cfg.batch))
	out.Line(fmt.Sprintf("table: %d rows of %d, %d on each replica, of which one asks another for %d a step at most",
		words, cfg.dim, shardRows(words, cfg.replicas), capacity))
	from, err := newStart(cfg, b)
	if err != nil {
		return err
	}
	var last float64
	learnt, losses, err := train(ctx, cfg, b, capacity, from, true, func(epoch int, learnt *start, loss, perSecond float64) error {
		var err error
		if last, err = heldOutLoss(ctx, learnt, b, cfg.dim); err != nil {
			return err
		}
		out.Status(fmt.Sprintf("epoch %d/%d  loss %.4f  held-out loss %.4f  %.0f words/s", epoch+1, cfg.epochs, loss, last, perSecond))
		return out.Err()
	})
	if err != nil {
		return err
	}
	out.Line(fmt.Sprintf("held-out loss %.4f nats a word; how frequent words are alone gives %.4f", last, b.baseline()))
	for _, w := range cfg.near {
		out.Line(fmt.Sprintf("nearest to %s: %s", w, strings.Join(b.nearest(learnt.table, cfg.dim, w, 5), ", ")))
	}
	if !cfg.verify {
		return nil
	}
	whole, wholeLosses, err := train(ctx, cfg, b, capacity, from, false, nil)
	if err != nil {
		return err
	}
	if err := compare(learnt, whole, losses, wholeLosses, cfg.dim); err != nil {
		return err
	}
	out.Line("table, weights and losses: the same to the bit as on one replica with the whole table")
	return nil
}

// compare returns the first difference of what has been learnt in two ways.
func compare(a, b *start, aLosses, bLosses []float64, dim int) error {
	for i, v := range aLosses {
		if v != bLosses[i] {
			return fmt.Errorf("the loss of epoch %d is %v, and %v on one replica with the whole table", i+1, v, bLosses[i])
		}
	}
	for i, v := range a.table {
		if math.Float32bits(v) != math.Float32bits(b.table[i]) {
			return fmt.Errorf("number %d of row %d of the table is %v, and %v on one replica with the whole table", i%dim, i/dim, v, b.table[i])
		}
	}
	for i, x := range a.layers {
		if !slices.Equal(x.Bytes(), b.layers[i].Bytes()) {
			return fmt.Errorf("weights %d are not the same as on one replica with the whole table", i)
		}
	}
	return nil
}

// train learns, and returns what has been learnt and the mean loss of each epoch. It tells after, if that is not nil.
func train(ctx context.Context, cfg config, b *book, capacity int, from *start, sharded bool, after func(epoch int, learnt *start, loss, perSecond float64) error) (learnt *start, losses []float64, err error) {
	s, err := newStep(cfg, capacity, from, sharded)
	if err != nil {
		return nil, nil, err
	}
	defer s.session.Close()
	f, err := s.newFeed(cfg, b, capacity)
	if err != nil {
		return nil, nil, err
	}
	all := newBatches(cfg.seed, b, cfg.batch)
	err = s.session.Within(func() error {
		for epoch := range cfg.epochs {
			began, sum := time.Now(), 0.0
			for _, batch := range all.next() {
				f.fill(batch)
				if err := s.session.RunTo(ctx, f.out, f.in); err != nil {
					return err
				}
				sum += float64(f.loss[0])
			}
			steps := len(all.list)
			loss, perSecond := sum/float64(steps), float64(steps*cfg.batch)/time.Since(began).Seconds()
			losses = append(losses, loss)
			if learnt, err = s.read(cfg, len(b.words)); err != nil {
				return err
			}
			if after != nil {
				if err := after(epoch, learnt, loss, perSecond); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return learnt, losses, err
}

// feed is what a step is given, and gives.
type feed struct {
	cfg     config
	book    *book
	router  *router
	sharded bool
	in, out map[*ir.Stream]*tensor.Tensor

	want, places [][]uint32 // by part of the batch
	answers      [][]int32
	numbers      []int32   // by replica
	loss         []float32 // the same
	words        []int32
}

func (s *step) newFeed(cfg config, b *book, capacity int) (*feed, error) {
	f := &feed{cfg: cfg, book: b, router: newRouter(len(b.words), cfg.replicas), in: map[*ir.Stream]*tensor.Tensor{}, out: map[*ir.Stream]*tensor.Tensor{}}
	f.router.capacity = capacity
	f.sharded = len(s.parts) < cfg.replicas // of one replica both are the same
	var err error
	host := func(of map[*ir.Stream]*tensor.Tensor, stream *ir.Stream) *tensor.Tensor {
		spec := s.session.HostSpec(stream)
		x, failed := tensor.New(spec.DType, spec.Shape...)
		if failed != nil && err == nil {
			err = failed
		}
		of[stream] = x
		return x
	}
	number, loss := host(f.in, s.number), host(f.out, s.loss)
	var want, places, answers []*tensor.Tensor
	for _, p := range s.parts {
		want, places, answers = append(want, host(f.in, p.want)), append(places, host(f.in, p.places)), append(answers, host(f.in, p.answers))
	}
	if err != nil {
		return nil, err
	}
	if f.numbers, err = tensor.Of[int32](number); err != nil {
		return nil, err
	}
	if f.loss, err = tensor.Of[float32](loss); err != nil {
		return nil, err
	}
	if f.want, err = split[uint32](want, cfg.replicas); err != nil {
		return nil, err
	}
	if f.places, err = split[uint32](places, cfg.replicas); err != nil {
		return nil, err
	}
	f.answers, err = split[int32](answers, cfg.replicas)
	return f, err
}

// split is the elements of tensors, one for each part of the batch or one for all, by part.
func split[T tensor.Element](ts []*tensor.Tensor, parts int) (out [][]T, err error) {
	for _, t := range ts {
		v, err := tensor.Of[T](t)
		if err != nil {
			return nil, err
		}
		n := len(v) / (parts / len(ts))
		for ; len(v) > 0; v = v[n:] {
			out = append(out, v[:n:n])
		}
	}
	return out, nil
}

// fill makes a batch of the words at some places of the book what the next step is given.
func (f *feed) fill(places []int) {
	for i := range f.numbers {
		f.numbers[i]++
	}
	n, words := f.cfg.replicas, len(f.book.words)
	part := f.cfg.part()
	for k, want := range f.want {
		none := uint32(words) // no row of any table
		for i := range want {
			want[i] = none
		}
		f.words = f.words[:0]
		for i, at := range places[k*part : (k+1)*part] {
			f.words = wordsAround(f.words, f.book.train, at)
			f.answers[k][i] = classOf(f.book.train[at])
		}
		f.router.ask(f.words, want, f.places[k])
		if f.sharded {
			continue
		}
		for i, row := range want {
			if row != none { // the number of the word, whose row it is
				want[i] = row*uint32(n) + uint32(i/f.router.capacity)
			}
		}
	}
}
