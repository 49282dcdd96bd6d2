package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"gogcl.dev/rts/checkpoint"
)

// mistake is an error of the command line that is found only when what it names is looked at.
type mistake struct{ error }

// openCheckpoint opens the directory of -checkpoint, if there is one, and says where training begins: with -resume
// where the checkpoint in it has come to, and without there must be none that would be lost. Nobody else may save to
// the directory until it is closed.
func openCheckpoint(ctx context.Context, cfg config, images int) (_ *checkpoint.Directory, at position, err error) {
	dir := cfg.checkpoint
	if dir == "" {
		return nil, cfg.start(), nil
	}
	none := mistake{fmt.Errorf("-resume: there is no checkpoint in %s", dir)}
	if _, err := os.Stat(dir); cfg.resume && errors.Is(err, fs.ErrNotExist) {
		return nil, at, none // and Open would make the directory
	}
	d, err := checkpoint.Open(dir)
	if err != nil {
		return nil, at, mistake{err}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	meta, err := d.Meta(ctx)
	switch {
	case errors.Is(err, checkpoint.ErrNone) && cfg.resume:
		return nil, at, none
	case errors.Is(err, checkpoint.ErrNone):
		return d, cfg.start(), nil
	case err != nil:
		return nil, at, err
	case !cfg.resume:
		return nil, at, mistake{fmt.Errorf("-checkpoint %s: it has a checkpoint already: -resume goes on from it", dir)}
	}
	if at, err = parseMeta(meta, images); err != nil {
		return nil, at, fmt.Errorf("the checkpoint in %s: %w", dir, err)
	}
	if err := at.fits(cfg); err != nil {
		return nil, at, mistake{err}
	}
	return d, at, nil
}

// load takes parameters and states from the checkpoint, to the model and to the reference.
func (t *trainer) load(ctx context.Context) error {
	tensors, err := t.model.step.Checkpoint(t.model.session)
	if err != nil {
		return err
	}
	if _, err := t.saves.Load(ctx, tensors); err != nil || t.reference == nil {
		return err
	}
	made := len(t.at.Passes)*t.cfg.steps(t.train.Len()) + t.at.Step // and not by number, which is to be verified
	return t.reference.load(ctx, t.saves, made, t.model)
}

// save keeps parameters, states and position, if that is wanted.
func (t *trainer) save(ctx context.Context) error {
	if t.saves == nil {
		return nil
	}
	tensors, err := t.model.step.Checkpoint(t.model.session)
	if err != nil {
		return err
	}
	meta, err := t.at.meta()
	if err != nil {
		return err
	}
	return t.saves.Save(ctx, tensors, meta)
}
