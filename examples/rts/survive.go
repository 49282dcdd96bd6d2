package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/member"
	"gogcl.dev/internal/progress"
	"gogcl.dev/ir/collective"
	"gogcl.dev/rts"
	"gogcl.dev/rts/checkpoint"
)

// death is that of a replica, by its number at the beginning, in a step.
type death struct{ replica, step int }

// deaths are the value of -die.
type deaths []death

// MarshalText implements encoding.TextMarshaler.
func (d deaths) MarshalText() ([]byte, error) {
	var parts []string
	for _, one := range d {
		parts = append(parts, fmt.Sprintf("%d:%d", one.replica, one.step))
	}
	return []byte(strings.Join(parts, ",")), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *deaths) UnmarshalText(text []byte) error {
	*d = nil
	for part := range strings.SplitSeq(string(text), ",") {
		replica, step, _ := strings.Cut(part, ":")
		r, err1 := strconv.Atoi(replica)
		s, err2 := strconv.Atoi(step)
		if err1 != nil || err2 != nil || r < 0 || s < 1 {
			return fmt.Errorf("%.100q: want replica:step, as 2:45", part)
		}
		*d = append(*d, death{r, s})
	}
	return nil
}

// survival is what a replica keeps when others die.
type survival struct {
	copies  rts.Copies
	first   int // its number at the beginning
	die     deaths
	died    bool
	process bool        // the replicas are of one
	change  *gcl.Change // the last; nil: nobody has died
}

// again reports whether the training has begun before.
func (s *survival) again() bool { return s != nil && s.change != nil }

// inProcess reports whether the replicas are goroutines.
func (s *survival) inProcess() bool { return s != nil && s.process }

// surviveAll trains with those that are left when some die: in a job, or in one process.
func surviveAll(ctx context.Context, cfg config, train, test perceptron.Images, stdout io.Writer) error {
	if cfg.me.InJob() {
		return survive(ctx, cfg, train, test, stdout)
	}
	return gcl.Run(ctx, cfg.replicas, func(ctx context.Context, c *gcl.Comm) error {
		cfg := cfg
		cfg.me, cfg.alone = member.Of(c), true
		return survive(ctx, cfg, train, test, stdout)
	}, gcl.WithElastic(gcl.Elastic{Min: 1}))
}

// survive trains as one replica.
func survive(ctx context.Context, cfg config, train, test perceptron.Images, stdout io.Writer) error {
	s := &survival{copies: rts.Copies{Every: cfg.every}, first: cfg.me.Comm().Replica(), die: cfg.die,
		process: cfg.alone}
	cfg.survival = s
	for {
		out := progress.New(cfg.me.Output(stdout)) // replica 0 may be another now
		err := trainAll(ctx, cfg, train, test, out)
		out.Close()
		if err == nil && out.Err() != nil {
			return &command.OutputError{Err: out.Err()}
		}
		if err == nil || s.died || errors.Is(err, member.ErrInterrupted) || errors.As(err, new(member.Mistake)) ||
			out.Err() != nil {
			return err
		}
		change, again := cfg.me.Rejoin(ctx)
		if again != nil {
			return errors.Join(err, again)
		}
		if len(change.Left) == 0 { // nobody has died: it would come again
			return err
		}
		s.change, cfg.replicas = &change, cfg.me.Comm().Replicas()
	}
}

// openCheckpoint is the function openCheckpoint. Where replicas have died the checkpoint is their own.
func (s *survival) openCheckpoint(ctx context.Context, cfg config, images int) (*checkpoint.Directory, position,
	error) {
	if !s.again() || cfg.checkpoint == "" {
		return openCheckpoint(ctx, cfg, images)
	}
	d, err := checkpoint.OpenTogether(ctx, cfg.checkpoint, collective.Job(cfg.me.Comm()))
	return d, cfg.start(), err
}

// restore goes to the last copy in memory, if there is one, or to the last checkpoint where it has lost shards.
func (t *trainer) restore(ctx context.Context) error {
	s, comm := t.cfg.survival, t.cfg.me.Comm()
	position := func() (map[string]string, error) { return t.at.meta() }
	meta, err := s.copies.Restore(ctx, comm, t.model.session, position, t.model.step)
	if errors.As(err, new(*checkpoint.LostError)) && t.saves != nil {
		t.out.Line(err.Error())
		if err := t.loadLast(ctx); err != nil {
			return err
		}
		meta, err = s.copies.Restore(ctx, comm, t.model.session, position, t.model.step)
	}
	if err != nil {
		return err
	}
	if meta != nil {
		if t.at, err = parseMeta(meta, t.train.Len()); err != nil {
			return err
		}
	}
	if s.again() {
		var gone []string
		for _, d := range s.change.Left {
			gone = append(gone, strconv.Itoa(d.Replica))
		}
		who := plural(len(gone), "replica "+gone[0]+" has", "replicas "+strings.Join(gone, ", ")+" have")
		t.out.Line(fmt.Sprintf("%s died: %d %s from step %d", who, t.cfg.replicas,
			plural(t.cfg.replicas, "goes on", "go on"), t.number()-1))
	}
	return nil
}

// loadLast loads the last checkpoint.
func (t *trainer) loadLast(ctx context.Context) error {
	tensors, err := t.model.step.Checkpoint(t.model.session)
	if err != nil {
		return err
	}
	meta, err := t.saves.Load(ctx, tensors)
	if err != nil {
		return err
	}
	t.at, err = parseMeta(meta, t.train.Len())
	return err
}

// commit makes a step, of which a copy is made when it is time. In a step of -die it fails.
func (s *survival) commit(ctx context.Context, number int, run func() error) (done bool, err error) {
	return s.copies.Commit(ctx, func() error {
		for _, d := range s.die {
			if d == (death{s.first, number}) {
				s.died = true
				return fmt.Errorf("replica %d is told to die in step %d", s.first, number)
			}
		}
		return run()
	})
}
