package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gogcl.dev/internal/progress"
)

// Streams of random numbers from one seed.
const (
	weightStream = iota // what the parameters begin with
	batchStream         // where the windows of batches begin
	sampleStream        // the characters that are made up
)

// Of the text held out, this is looked at while training goes on: pieces of it, evenly spread.
const (
	excerptPieces = 16
	excerptPiece  = 256 // characters
)

// reports is how often a training tells how far it is.
const reports = 24

// runAll trains, evaluates, and makes up some text.
func runAll(ctx context.Context, cfg config, book *text, out *progress.Printer) (err error) {
	s := sizeFor(cfg.parameters, len(book.vocabulary))
	out.Line(fmt.Sprintf("%d characters to train on, %d held out, %d different; entropy %.2f nats, given the one before %.2f",
		len(book.train), len(book.heldOut), len(book.vocabulary), unigramEntropy(book.all()), bigramEntropy(book.all())))
	what := fmt.Sprintf("%d parameters: %d blocks, width %d, heads: %d, window %d; batch: %d, method: %v",
		s.parameters(), s.depth, s.width, s.heads, s.window, cfg.batch, cfg.method)
	if cfg.compare {
		out.Line(what)
		return compare(ctx, cfg, book, s, out)
	}
	out.Line(fmt.Sprintf("%s, replicas: %d", what, cfg.replicas))
	t, err := newTrainer(cfg.way, s, cfg.batch/cfg.replicas, cfg.seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	first, err := t.values()
	if err != nil {
		return err
	}
	e, err := newEvaluator(cfg.replicas, s, first)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	last, err := train(ctx, cfg, book, t, e, out)
	if err != nil {
		return err
	}
	if err := e.use(last); err != nil {
		return err
	}
	loss, err := e.loss(ctx, book.heldOut)
	if err != nil {
		return err
	}
	out.Line(fmt.Sprintf("held-out loss %.4f nats a character", loss))
	memory, err := t.memory()
	if err != nil {
		return err
	}
	out.Line(fmt.Sprintf("bytes on each replica: parameters %d, Adam's states %d, gathered %d, gradients %d, others %d, peak %d",
		memory.Parameters, memory.States, memory.Gathered, memory.Gradients, memory.Others, memory.Peak))
	if cfg.sample == 0 {
		return nil
	}
	g, err := newGenerator(s, last)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	begin, err := book.encode([]rune{'\n'})
	if err != nil {
		return err
	}
	sample, err := g.generate(ctx, rand.New(rand.NewPCG(cfg.seed, sampleStream)), begin, cfg.sample, cfg.temperature)
	if err != nil {
		return err
	}
	out.Line(book.decode(sample))
	return nil
}

// train trains for the time or the steps that cfg says, and returns the parameters. What the text held out has to say
// takes no part in it, and its time is not counted.
func train(ctx context.Context, cfg config, book *text, t *trainer, e *evaluator, out *progress.Printer) (values, error) {
	random := rand.New(rand.NewPCG(cfg.seed, batchStream))
	peak := cfg.peak(t.size)
	excerpt := book.excerpt(excerptPieces, excerptPiece)
	var took time.Duration // of the steps
	part := func(step int) float64 {
		if cfg.steps > 0 {
			return float64(step) / float64(cfg.steps)
		}
		return min(1, float64(took)/float64(cfg.duration()))
	}
	t.session.SetProfiling(true)
	sum, steps, last := 0.0, 0, time.Duration(0) // since the last report
	for step, reported := 1, 0; ; step++ {
		began := time.Now()
		book.drawBatch(random, t.chars, t.targets, t.size.window)
		loss, err := t.run(ctx, step, rateAt(peak, step, part(step-1)))
		if err != nil {
			return nil, err
		}
		took += time.Since(began)
		sum += loss
		steps++
		done := part(step)
		if int(done*reports) == reported {
			continue
		}
		reported = int(done * reports)
		v, err := t.values()
		if err != nil {
			return nil, err
		}
		if err := e.use(v); err != nil {
			return nil, err
		}
		heldOut, err := e.loss(ctx, excerpt)
		if err != nil {
			return nil, err
		}
		speed := float64(steps*len(t.chars)) / (took - last).Seconds()
		out.Status(fmt.Sprintf("%3.0f%%  step %d  loss %.4f  held out %.4f  %.0f characters/s  %.0f%% comm+wait",
			100*done, step, sum/float64(steps), heldOut, speed, 100*t.communication()))
		t.session.SetProfiling(true) // from zero
		sum, steps, last = 0, 0, took
		if done == 1 {
			return v, nil
		}
	}
}
