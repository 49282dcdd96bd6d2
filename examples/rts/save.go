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

// begin makes the directory of -checkpoint ready: with -resume training goes on from what is there, and without there
// must be nothing that would be lost.
func (t *trainer) begin(ctx context.Context) error {
	dir := t.cfg.checkpoint
	if dir == "" {
		return nil
	}
	if t.cfg.resume {
		return t.restore(ctx, dir)
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return mistake{fmt.Errorf("-checkpoint %s: %w", dir, cause(err))}
	}
	if info, err := os.Stat(dir); err != nil {
		return mistake{fmt.Errorf("-checkpoint %s: %w", dir, cause(err))}
	} else if !info.IsDir() {
		return mistake{fmt.Errorf("-checkpoint %s: it is not a directory", dir)}
	}
	switch _, err := checkpoint.Load(ctx, dir, nil); {
	case errors.Is(err, fs.ErrPermission):
		return mistake{fmt.Errorf("-checkpoint %s: %w", dir, cause(err))}
	case !errors.Is(err, checkpoint.ErrNone): // it wants its tensors to be loaded, or is damaged
		return mistake{fmt.Errorf("-checkpoint %s: it has a checkpoint already: -resume goes on from it", dir)}
	}
	return nil
}

// cause is an error without the path, which the message has already.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// restore loads the newest checkpoint, also into the reference.
func (t *trainer) restore(ctx context.Context, dir string) error {
	tensors, err := t.model.step.Checkpoint(t.model.session)
	if err != nil {
		return err
	}
	meta, err := checkpoint.Load(ctx, dir, tensors)
	if errors.Is(err, checkpoint.ErrNone) {
		return mistake{fmt.Errorf("-resume: there is no checkpoint in %s", dir)}
	}
	if err != nil {
		return err
	}
	if t.at, err = parseMeta(meta, t.train.Len()); err != nil {
		return fmt.Errorf("the checkpoint in %s: %w", dir, err)
	}
	if err := t.at.fits(t.cfg); err != nil {
		return mistake{err}
	}
	if t.reference == nil {
		return nil
	}
	_, err = checkpoint.Load(ctx, dir, t.reference.loaded())
	return err
}

// save keeps parameters, states and position, if that is wanted.
func (t *trainer) save(ctx context.Context) error {
	if t.cfg.checkpoint == "" {
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
	return checkpoint.Save(ctx, t.cfg.checkpoint, tensors, meta)
}
