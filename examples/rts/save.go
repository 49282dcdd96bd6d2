package main

import (
	"context"
	"errors"
	"fmt"

	"gogcl.dev/internal/member"
	"gogcl.dev/rts/checkpoint"
)

// openCheckpoint opens the directory of -checkpoint, if there is one, and says where training begins. Nobody else may
// save to the directory until it is closed.
func openCheckpoint(ctx context.Context, cfg config, images int) (*checkpoint.Directory, position, error) {
	d, meta, err := cfg.survival.OpenCheckpoint(ctx, cfg.me, cfg.checkpoint, cfg.resume)
	if err != nil || meta == nil {
		return d, cfg.start(), err
	}
	at, err := parseMeta(meta, images)
	if err != nil {
		err = fmt.Errorf("the checkpoint in %s: %w", cfg.checkpoint, err)
	} else if err = at.fits(cfg); err != nil {
		err = member.Mistake{Err: err}
	}
	if err != nil {
		return nil, at, errors.Join(err, d.Close())
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

// restore goes to where the others are when replicas have died.
func (t *trainer) restore(ctx context.Context) error {
	position := func() (map[string]string, error) { return t.at.meta() }
	set := func(meta map[string]string) (err error) {
		t.at, err = parseMeta(meta, t.train.Len())
		return err
	}
	err := t.cfg.survival.Restore(ctx, t.model.session, t.model.step, t.saves, position, set, t.out)
	if err == nil {
		t.cfg.survival.Say(t.number()-1, t.out)
	}
	return err
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
