package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gogcl.dev/internal/member"
	"gogcl.dev/internal/progress"
	"gogcl.dev/rts/checkpoint"
)

// position is how far training has come, beside parameters and states, and the flags that the losses depend on.
type position struct {
	Seed    uint64  `json:"seed"`
	Batch   int     `json:"batch"`
	Size    int     `json:"size"`
	Rate    float64 `json:"lr"`
	Clip    float64 `json:"clip"`
	Steps   int     `json:"steps"`
	Minutes float64 `json:"minutes"`

	Step   int           `json:"step"` // steps made
	Took   time.Duration `json:"took"`
	Sum    float64       `json:"sum"` // of the losses since the last report
	Summed int           `json:"summed"`
	Random []byte        `json:"random"` // the state of random

	random *rand.PCG // where batches come from
}

// What the meta map of a checkpoint has.
const (
	programKey  = "program"
	programName = "gogcl.dev/examples/charlm"
	positionKey = "position"
)

// start is the position of a training that begins.
func (cfg config) start() *position {
	at := &position{Seed: cfg.seed, Batch: cfg.batch, Size: cfg.parameters, Rate: cfg.rate, Clip: cfg.clip,
		Steps: cfg.steps, Minutes: cfg.minutes, random: rand.NewPCG(cfg.seed, batchStream)}
	return at
}

// meta is the position as a checkpoint keeps it.
func (at *position) meta() (map[string]string, error) {
	var err error
	if at.Random, err = at.random.MarshalBinary(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	return map[string]string{programKey: programName, positionKey: string(text)}, nil
}

// parseMeta reads what meta has made.
func parseMeta(meta map[string]string) (*position, error) {
	if name := meta[programKey]; name != programName {
		return nil, fmt.Errorf("it is of the program %q, want %q", name, programName)
	}
	at := &position{random: &rand.PCG{}}
	err := json.Unmarshal([]byte(meta[positionKey]), at)
	if err == nil {
		err = at.random.UnmarshalBinary(at.Random)
	}
	if err == nil && (at.Step < 0 || at.Took < 0 || at.Summed < 0) {
		err = errors.New("a number is less than it can be")
	}
	if err != nil {
		return nil, fmt.Errorf("its position %q: %w", meta[positionKey], err)
	}
	return at, nil
}

// fits says which flag has to be another for training to go on from here.
func (at *position) fits(cfg config) error {
	for _, flag := range []struct {
		name      string
		is, saved any
	}{
		{"seed", cfg.seed, at.Seed}, {"batch", cfg.batch, at.Batch}, {"size", cfg.parameters, at.Size},
		{"lr", cfg.rate, at.Rate}, {"clip", cfg.clip, at.Clip}, {"steps", cfg.steps, at.Steps},
		{"minutes", cfg.minutes, at.Minutes},
	} {
		if flag.is != flag.saved {
			return fmt.Errorf("-%s %v: the checkpoint in %s is of -%[1]s %[4]v", flag.name, flag.is, cfg.checkpoint,
				flag.saved)
		}
	}
	return nil
}

// interrupted is the error of a training that was told to stop, and did so after a step.
type interrupted struct{ saved string }

func (e interrupted) Error() string { return "interrupted" + e.saved }
func (e interrupted) Unwrap() error { return member.ErrInterrupted }

func (cfg config) interrupted(at *position) error {
	if cfg.checkpoint == "" {
		return interrupted{}
	}
	return interrupted{fmt.Sprintf(" after step %d; -resume goes on from %s", at.Step, cfg.checkpoint)}
}

// openCheckpoint opens the directory of -checkpoint, if there is one, and says where training begins.
func (cfg config) openCheckpoint(ctx context.Context) (*checkpoint.Directory, *position, error) {
	d, meta, err := cfg.survival.OpenCheckpoint(ctx, cfg.me, cfg.checkpoint, cfg.resume)
	if err != nil || meta == nil {
		return d, cfg.start(), err
	}
	at, err := parseMeta(meta)
	if err != nil {
		err = fmt.Errorf("the checkpoint in %s: %w", cfg.checkpoint, err)
	} else if err = at.fits(cfg); err != nil {
		err = member.Mistake{Err: err}
	}
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	return d, at, nil
}

// load takes parameters and states from the checkpoint.
func (t *trainer) load(ctx context.Context, from *checkpoint.Directory) error {
	tensors, err := t.made.Checkpoint(t.session)
	if err != nil {
		return err
	}
	_, err = from.Load(ctx, tensors)
	return err
}

// restore goes to where the others are when replicas have died, and returns that position.
func (t *trainer) restore(ctx context.Context, cfg config, saves *checkpoint.Directory, at *position,
	out *progress.Printer) (*position, error) {
	now := at
	position := func() (map[string]string, error) { return now.meta() }
	set := func(meta map[string]string) (err error) {
		now, err = parseMeta(meta)
		return err
	}
	err := cfg.survival.Restore(ctx, t.session, t.made, saves, position, set, out)
	if err == nil {
		cfg.survival.Say(now.Step, out)
	}
	return now, err
}

// save keeps parameters, states and position, if that is wanted.
func (t *trainer) save(ctx context.Context, to *checkpoint.Directory, at *position) error {
	if to == nil {
		return nil
	}
	tensors, err := t.made.Checkpoint(t.session)
	if err != nil {
		return err
	}
	meta, err := at.meta()
	if err != nil {
		return err
	}
	return to.Save(ctx, tensors, meta)
}
