package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/member"
	"gogcl.dev/internal/progress"
	"gogcl.dev/remote"
	"gogcl.dev/rts/checkpoint"
)

// trainer trains the net on all replicas, step by step.
type trainer struct {
	cfg         config
	train, test perceptron.Images
	out         *progress.Printer

	shares    *shares // of this process's replicas
	all       *shares // of all replicas, for the reference; nil without -verify
	model     *model
	stepper   *stepper        // of the model
	reference *reference      // nil without -verify
	net       *perceptron.Net // for the images held out
	dir       string          // of -storage file, if it is there still
	saves     *checkpoint.Directory
	at        position
	made      int // steps of this run
}

// newTrainer builds what the flags say, and loads what -resume goes on from. The caller closes it.
func newTrainer(ctx context.Context, cfg config, train, test perceptron.Images, out *progress.Printer) (_ *trainer,
	err error) {
	t := &trainer{cfg: cfg, train: train, test: test, out: out, net: perceptron.New(test.Len())}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if t.saves, t.at, err = openCheckpoint(ctx, cfg, train.Len()); err != nil {
		return nil, err
	}
	if t.shares, err = newShares(cfg.replicas*cfg.micro, cfg.micros(cfg.me.Own(cfg.replicas)), cfg.batch); err != nil {
		return nil, err
	}
	var storage remote.Storage
	if storage, t.dir, err = openStorage(cfg.storage); err != nil {
		return nil, err
	}
	start := firstWeights(cfg.seed)
	if t.model, err = newModel(ctx, cfg, t.shares.rows, cfg.sharding(), storage, start); err != nil {
		return nil, err
	}
	if t.dir != "" && os.RemoveAll(t.dir) == nil { // files that are open need no names, but on Windows
		t.dir = ""
	}
	if t.stepper, err = newStepper(t.model, t.shares); err != nil {
		return nil, err
	}
	if cfg.verify {
		if t.all, err = newShares(t.shares.n, member.All(t.shares.n), cfg.batch); err != nil {
			return nil, err
		}
		if t.reference, err = newReference(cfg, t.all, start, leftFold); err != nil {
			return nil, err
		}
	}
	if cfg.resume && !cfg.survival.Again() {
		err = t.load(ctx)
	}
	if err == nil && cfg.Survive {
		err = t.restore(ctx)
	}
	return t, err
}

// close ends the sessions and removes files that nobody needs any more.
func (t *trainer) close() error {
	var errs []error
	if t.model != nil {
		errs = append(errs, t.model.close())
	}
	if t.reference != nil {
		errs = append(errs, t.reference.close())
	}
	if t.dir != "" {
		errs = append(errs, os.RemoveAll(t.dir))
	}
	if t.saves != nil {
		errs = append(errs, t.saves.Close())
	}
	return errors.Join(errs...)
}

// interrupted is the error of a training that was told to stop, and did so between two steps.
type interrupted struct{ saved string }

func (e interrupted) Error() string { return "interrupted" + e.saved }
func (e interrupted) Unwrap() error { return member.ErrInterrupted }

// run trains until all passes are made. When ctx is done, in whatever process, all end the same step, save, and return
// an interrupted: a step that is cut short would leave parameters of different steps.
func (t *trainer) run(ctx context.Context) error {
	whole := context.WithoutCancel(ctx)
	for len(t.at.Passes) < t.cfg.epochs {
		speed, err := t.pass(ctx, whole)
		if err != nil {
			return err
		}
		if err := t.save(whole); err != nil {
			return err
		}
		t.out.Status(fmt.Sprintf("epoch %d/%d  %v  %v",
			len(t.at.Passes), t.cfg.epochs, t.at.Passes[len(t.at.Passes)-1], speed))
		if err := t.out.Err(); err != nil {
			return &command.OutputError{Err: err} // nobody reads on
		}
	}
	return nil
}

// pass makes the steps that remain of a pass over the training images, in an order of its own, and then tests.
func (t *trainer) pass(ctx, whole context.Context) (speed, error) {
	order := orderOf(t.cfg.seed, len(t.at.Passes), t.train.Len())
	if err := t.model.session.SetProfiling(true); err != nil {
		return speed{}, err
	}
	s := speed{replicas: t.cfg.replicas}
	for lo := t.at.Step * t.cfg.batch; lo < len(order); lo += t.cfg.batch {
		stop, _, err := t.cfg.me.Agree(whole, ctx.Err() != nil, 0)
		switch {
		case err != nil:
			return speed{}, err
		case stop:
			return speed{}, t.interrupt(whole)
		}
		batch := order[lo:min(lo+t.cfg.batch, len(order))]
		began := time.Now()
		loss, err := t.step(whole, batch)
		if err != nil {
			return speed{}, err
		}
		s.add(len(batch), time.Since(began))
		if t.reference != nil {
			if err := t.reference.check(whole, t.model, t.stepper); err != nil {
				return speed{}, err
			}
		}
		t.at.Step++
		t.at.Loss += number(float64(loss) * float64(len(batch)) / float64(len(order)))
		t.made++
	}
	s.waiting = t.model.session.Profile().Waiting()
	if err := t.model.read(t.net.Params); err != nil {
		return speed{}, err
	}
	accuracy := number(float64(t.net.Correct(t.test)) / float64(t.test.Len()))
	t.at.Passes = append(t.at.Passes, pass{Loss: t.at.Loss, Accuracy: accuracy})
	t.at.Step, t.at.Loss = 0, 0
	return s, nil
}

// number is that of the step that comes next, the first of the training being 1.
func (t *trainer) number() int { return len(t.at.Passes)*t.cfg.steps(t.train.Len()) + t.at.Step + 1 }

// step moves the parameters by the mean gradient of the training images that batch lists, and returns their mean loss.
func (t *trainer) step(ctx context.Context, batch []int) (float32, error) {
	t.shares.fill(t.train, batch)
	if t.all != nil {
		t.all.fill(t.train, batch)
	}
	run := func() error { return t.stepper.run(ctx, t.cfg.rate, t.number()) }
	if t.cfg.Survive {
		if done, err := t.cfg.survival.Commit(ctx, t.number(), run); !done {
			return 0, err
		}
	} else if err := run(); err != nil {
		return 0, err
	}
	return t.stepper.losses[0], nil
}

// interrupt saves, and says so.
func (t *trainer) interrupt(ctx context.Context) error {
	if err := t.save(ctx); err != nil {
		return err
	}
	if t.cfg.checkpoint == "" {
		return interrupted{}
	}
	return interrupted{fmt.Sprintf(" after %v; -resume goes on from %s", t.at, t.cfg.checkpoint)}
}
