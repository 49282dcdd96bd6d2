package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"gogcl.dev/internal/progress"
	"gogcl.dev/rts/checkpoint"
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
	if cfg.tokens {
		return runTokens(ctx, cfg, s, out)
	}
	say := out.Line
	if cfg.survival.Again() { // it has been said
		say = func(string) {}
	}
	say(fmt.Sprintf("%d characters to train on, %d held out, %d different; entropy %.2f nats, given the one "+
		"before %.2f",
		len(book.train), len(book.heldOut), len(book.vocabulary), unigramEntropy(book.all()),
		bigramEntropy(book.all())))
	what := fmt.Sprintf("%d parameters: %d blocks, width %d, heads: %d, window %d; batch: %d, method: %v",
		s.parameters(), s.depth, s.width, s.heads, s.window, cfg.batch, cfg.method)
	if cfg.compare {
		out.Line(what)
		return compare(ctx, cfg, book, s, out)
	}
	if cfg.replicas == 1 {
		say(what + ", replicas: 1, nothing is sharded")
	} else {
		say(fmt.Sprintf("%s, replicas: %d", what, cfg.replicas))
	}
	whole := context.WithoutCancel(ctx)
	saves, at, err := cfg.openCheckpoint(whole)
	if err != nil {
		return err
	}
	if saves != nil {
		defer func() { err = errors.Join(err, saves.Close()) }()
	}
	t, err := newTrainer(cfg.way, s, cfg.batch/cfg.replicas, cfg.seed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if cfg.resume && !cfg.survival.Again() {
		if err := t.load(whole, saves); err != nil {
			return err
		}
		out.Line(fmt.Sprintf("resumed from %s after step %d", cfg.checkpoint, at.Step))
	}
	if cfg.Survive {
		if at, err = t.restore(whole, cfg, saves, at, out); err != nil {
			return err
		}
	}
	first, err := t.values()
	if err != nil {
		return err
	}
	var e *evaluator // of the process that speaks for all
	if cfg.me.First() {
		if e, err = newEvaluator(s, first); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, e.close()) }()
	}
	last, err := train(ctx, cfg, book, t, e, saves, at, out)
	if err != nil {
		return err
	}
	resident, ways := "", ""
	if cfg.me.InJob() && !cfg.survival.Local() {
		ways = cfg.me.Ways()
		if resident, err = cfg.me.Resident(whole); err != nil {
			return err
		}
	}
	begin, err := book.encode([]rune{'\n'})
	if err != nil {
		return err
	}
	var sample []int32
	split := 0 // see decoder.parameters
	if cfg.split {
		if sample, split, err = cfg.generateSplit(ctx, s, last, begin); err != nil {
			return err
		}
	}
	if !cfg.me.First() {
		return nil
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
	if resident != "" {
		out.Line(resident)
	}
	if ways != "" {
		out.Line(ways)
	}
	out.Line(fmt.Sprintf("bytes on each replica: parameters %d, Adam's states %d, gathered %d, gradients %d, others "+
		"%d, peak %d",
		memory.Parameters, memory.States, memory.Gathered, memory.Gradients, memory.Others, memory.Peak))
	const beside = "beside that, %s: parameters %d, whole"
	switch {
	case cfg.sample == 0:
		out.Line(fmt.Sprintf(beside, "evaluation has a program of one replica", 4*s.parameters()))
		return nil
	case cfg.split:
		out.Line(fmt.Sprintf(beside, "evaluation has a program of one replica", 4*s.parameters()))
		out.Line(fmt.Sprintf("the sample has the matrices of blocks split: parameters %d on each replica", 4*split))
	default:
		out.Line(fmt.Sprintf(beside, "evaluation and the sample have a program of one replica each", 4*s.parameters()))
		if sample, err = cfg.generateWhole(ctx, s, last, begin); err != nil {
			return err
		}
	}
	out.Line(book.decode(sample))
	return nil
}

// generateWhole makes up a text by one replica.
func (cfg config) generateWhole(ctx context.Context, s size, v values, begin []int32) (text []int32, err error) {
	g, err := newGenerator(s, v)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	random := rand.New(rand.NewPCG(cfg.seed, sampleStream))
	return g.generate(ctx, random, begin, cfg.sample, cfg.temperature)
}

// train trains for the time or the steps that cfg says, from a position on, and returns the parameters. What the text
// held out has to say takes no part in it, but its time counts. A loss that is not finite is an error.
//
// When ctx is done, in whatever process, all end the same step, save, and return an interrupted.
func train(ctx context.Context, cfg config, book *text, t *trainer, e *evaluator, saves *checkpoint.Directory,
	at *position, out *progress.Printer) (values, error) {
	told, ctx := ctx, context.WithoutCancel(ctx)
	random := rand.New(at.random)
	peak := cfg.peak(t.size)
	excerpt := book.excerpt(excerptPieces, excerptPiece)
	begin := time.Now().Add(-at.Took)
	if err := t.session.SetProfiling(true); err != nil {
		return nil, err
	}
	steps, took := 0, time.Duration(0) // since the last report
	done := 0.0
	if at.Step > 0 {
		done = cfg.part(at.Step, at.Took)
	}
	if done == 1 {
		return t.values()
	}
	for reported := int(done * reports); ; {
		var loss float64
		began := time.Now()
		step := func() (err error) {
			at.Step++
			book.drawBatch(random, t.chars, t.targets, t.size.window)
			if loss, err = t.run(ctx, at.Step, rateAt(peak, at.Step, done)); err != nil {
				return err
			}
			return finite(loss, "loss", at.Step)
		}
		if cfg.Survive {
			if made, err := cfg.survival.Commit(ctx, at.Step+1, step); !made {
				return nil, err
			}
		} else if err := step(); err != nil {
			return nil, err
		}
		took += time.Since(began)
		steps++
		at.Sum += loss
		at.Summed++
		stop, now, err := cfg.me.Agree(ctx, told.Err() != nil, float64(time.Since(begin)))
		if err != nil {
			return nil, err
		}
		at.Took = time.Duration(now) // as it is where replica 0 is
		done = cfg.part(at.Step, at.Took)
		if int(done*reports) != reported {
			reported = int(done * reports)
			v, err := t.values()
			if err != nil {
				return nil, err
			}
			speed := float64(steps*len(t.chars)) / took.Seconds()
			text, err := t.report(ctx, e, v, excerpt, at.Step)
			if err != nil {
				return nil, err
			}
			out.Status(fmt.Sprintf("%3.0f%%  step %d  loss %.4f  held out %s  %.0f characters/s  %.0f%% comm+wait",
				100*done, at.Step, at.Sum/float64(at.Summed), text, speed, 100*t.waiting()))
			if err := t.session.SetProfiling(true); err != nil { // from zero
				return nil, err
			}
			steps, took = 0, 0
			at.Sum, at.Summed = 0, 0
			if err := t.save(ctx, saves, at); err != nil {
				return nil, err
			}
			if done == 1 {
				return v, nil
			}
		} else if stop {
			if err := t.save(ctx, saves, at); err != nil {
				return nil, err
			}
		}
		if stop {
			return nil, cfg.interrupted(at)
		}
	}
}

// report is the loss of the text held out with these parameters, in the process that speaks for all.
func (t *trainer) report(ctx context.Context, e *evaluator, v values, excerpt []int32, step int) (string, error) {
	if e == nil {
		return "", nil
	}
	if err := e.use(v); err != nil {
		return "", err
	}
	loss, err := e.loss(ctx, excerpt)
	if err == nil {
		err = finite(loss, "held-out loss", step)
	}
	return fmt.Sprintf("%.4f", loss), err
}

// finite is an error for a loss that training has not survived.
func finite(loss float64, what string, step int) error {
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return fmt.Errorf("step %d: the %s is %v: training has diverged, -lr should be less", step, what, loss)
	}
	return nil
}
