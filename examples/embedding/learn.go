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
	learnt, losses, err := train(ctx, cfg, b, capacity, from,
		func(epoch int, learnt *start, loss, perSecond float64) error {
			var err error
			if last, err = heldOutLoss(ctx, learnt, b, cfg.dim); err != nil {
				return err
			}
			out.Status(fmt.Sprintf("epoch %d/%d  loss %.4f  held-out loss %.4f  %.0f words/s",
				epoch+1, cfg.epochs, loss, last, perSecond))
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
	whole, wholeLosses, err := learnAlone(ctx, cfg, b, from)
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
		if v != bLosses[i] && !(math.IsNaN(v) && math.IsNaN(bLosses[i])) {
			return fmt.Errorf("the loss of epoch %d is %v, and %v on one replica with the whole table",
				i+1, v, bLosses[i])
		}
	}
	for i, v := range a.table {
		if !same(v, b.table[i]) {
			return fmt.Errorf("number %d of row %d of the table is %v, and %v on one replica with the whole table",
				i%dim, i/dim, v, b.table[i])
		}
	}
	for i, x := range a.layers {
		v, err := tensor.Of[float32](x)
		if err != nil {
			return err
		}
		w, err := tensor.Of[float32](b.layers[i])
		if err != nil {
			return err
		}
		if !slices.EqualFunc(v, w, same) {
			return fmt.Errorf("weights %d are not the same as on one replica with the whole table", i)
		}
	}
	return nil
}

// same reports whether two numbers have the same bits, or are NaN both: which one, processors differ in.
func same(v, w float32) bool {
	return math.Float32bits(v) == math.Float32bits(w) || v != v && w != w
}

// train learns, and returns what has been learnt and the mean loss of each epoch. It tells after.
func train(ctx context.Context, cfg config, b *book, capacity int, from *start,
	after func(epoch int, learnt *start, loss, perSecond float64) error) (learnt *start, losses []float64, err error) {
	s, err := newStep(cfg, capacity, from)
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
				if err := f.fill(batch); err != nil {
					return err
				}
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
			if err := after(epoch, learnt, loss, perSecond); err != nil {
				return err
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
	in, out map[*ir.Stream]*tensor.Tensor

	want, places [][]uint32 // by replica
	answers      [][]int32
	number       []int32 // one, of the step
	loss         []float32
	words        []int32
}

func (s *step) newFeed(cfg config, b *book, capacity int) (*feed, error) {
	f := &feed{cfg: cfg, book: b, router: newRouter(len(b.words), cfg.replicas), in: map[*ir.Stream]*tensor.Tensor{},
		out: map[*ir.Stream]*tensor.Tensor{}}
	f.router.capacity = capacity
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
	want, places, answers := host(f.in, s.want), host(f.in, s.places), host(f.in, s.answers)
	if err != nil {
		return nil, err
	}
	if f.number, err = tensor.Of[int32](number); err != nil {
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

// split is the elements of a tensor, by part.
func split[T tensor.Element](t *tensor.Tensor, parts int) (out [][]T, err error) {
	v, err := tensor.Of[T](t)
	if err != nil {
		return nil, err
	}
	n := len(v) / parts
	for k := range parts {
		out = append(out, v[k*n:(k+1)*n:(k+1)*n])
	}
	return out, nil
}

// fill makes a batch of the words at some places of the book what the next step is given.
func (f *feed) fill(places []int) error {
	f.number[0]++
	part, none := f.cfg.part(), uint32(len(f.book.words)) // no row of any table
	for k, want := range f.want {
		for i := range want {
			want[i] = none
		}
		f.words = f.words[:0]
		for i, at := range places[k*part : (k+1)*part] {
			f.words = wordsAround(f.words, f.book.train, at)
			f.answers[k][i] = classOf(f.book.train[at])
		}
		if err := f.router.ask(f.words, want, f.places[k]); err != nil {
			return err
		}
	}
	return nil
}
