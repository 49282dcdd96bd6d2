package member

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/progress"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/rts"
	"gogcl.dev/rts/checkpoint"
)

// SurvivalFlags are the flags of a training whose replicas go on when others die.
type SurvivalFlags struct {
	Survive bool
	every   int // steps from copy to copy
	die     deaths
}

// Add adds the flags to a set.
func (f *SurvivalFlags) Add(flags *flag.FlagSet) {
	flags.BoolVar(&f.Survive, "survive", false, "go on when replicas die, from the last copy of their shards in the "+
		"memory of others")
	flags.IntVar(&f.every, "copy", 10, "with -survive, `steps` from copy to copy")
	flags.TextVar(&f.die, "die", deaths(nil), "with -survive, have replicas fail: `replica:step`, or several with "+
		"commas; the first step is 1")
}

// Check reports the first value that makes no sense.
func (f *SurvivalFlags) Check() error {
	switch {
	case f.every < 1:
		return fmt.Errorf("-copy %d: there must be at least 1 step from copy to copy", f.every)
	case len(f.die) > 0 && !f.Survive:
		return errors.New("-die: there is no -survive")
	}
	return nil
}

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

// Survival is what a replica of a training keeps when others die. A nil Survival is of a training that ends then.
type Survival struct {
	me     *Member
	copies rts.Copies
	first  int // the replica's number at the beginning
	die    deaths
	died   bool        // by die
	local  bool        // the replicas are goroutines
	change *gcl.Change // the last; nil: nobody has died
}

// Survive calls train on each of so many replicas: in a job that of this process, and in none all, as goroutines. When
// some die it calls train again on those that are left. What train prints goes to out, as long as the replica speaks
// for all.
func (m *Member) Survive(ctx context.Context, f SurvivalFlags, replicas int, stdout io.Writer,
	train func(ctx context.Context, s *Survival, me *Member, out *progress.Printer) error) error {
	one := func(ctx context.Context, me *Member, local bool) error {
		s := &Survival{me: me, copies: rts.Copies{Every: f.every}, first: me.comm.Replica(), die: f.die, local: local}
		if change, came := me.comm.Change(); came { // the training has begun before
			s.change, s.first = &change, -1
		}
		return s.run(ctx, stdout, train)
	}
	if m.InJob() {
		return one(ctx, m, false)
	}
	return gcl.Run(ctx, replicas, func(ctx context.Context, c *gcl.Comm) error {
		return one(ctx, &Member{comm: c}, true)
	}, gcl.WithElastic(gcl.Elastic{Min: 1}))
}

func (s *Survival) run(ctx context.Context, stdout io.Writer,
	train func(ctx context.Context, s *Survival, me *Member, out *progress.Printer) error) error {
	for {
		out := progress.New(s.me.Output(stdout)) // replica 0 may be another than before
		err := train(ctx, s, s.me, out)
		out.Close()
		if err == nil && out.Err() != nil {
			return &command.OutputError{Err: out.Err()}
		}
		if err == nil || s.died || errors.Is(err, ErrInterrupted) || errors.As(err, new(Mistake)) || out.Err() != nil {
			return err
		}
		c, change, again := gcl.Rejoin(ctx, s.me.comm)
		if again != nil {
			return errors.Join(err, again)
		}
		if s.me.comm = c; len(change.Left)+len(change.Came) == 0 { // the error would come again
			return err
		}
		s.change = &change
	}
}

// Again reports whether replicas have died or come, so that the training has begun before.
func (s *Survival) Again() bool { return s != nil && s.change != nil }

// Local reports whether the replicas are goroutines that survive others.
func (s *Survival) Local() bool { return s != nil && s.local }

// OpenCheckpoint is Member.OpenCheckpoint. Where replicas have died the checkpoint is that of the training itself, and
// the map is nil.
func (s *Survival) OpenCheckpoint(ctx context.Context, me *Member, dir string, resume bool) (*checkpoint.Directory,
	map[string]string, error) {
	if !s.Again() || dir == "" {
		return me.OpenCheckpoint(ctx, dir, resume)
	}
	d, err := checkpoint.OpenTogether(ctx, dir, collective.Job(me.comm))
	return d, nil, err
}

// Restore goes to the last copy in memory, or where it has lost shards, to the last checkpoint, if there are saves. set
// is called with the position that goes with that; where nobody has died it is not called. position is as meta of
// rts.Copies.Restore.
func (s *Survival) Restore(ctx context.Context, session *ir.Session, step *rts.Step, saves *checkpoint.Directory,
	position func() (map[string]string, error), set func(map[string]string) error, out *progress.Printer) error {
	meta, err := s.copies.Restore(ctx, s.me.comm, session, position, step)
	if errors.As(err, new(*checkpoint.LostError)) && saves != nil {
		out.Line(err.Error())
		tensors, err := step.Checkpoint(session)
		if err != nil {
			return err
		}
		meta, err := saves.Load(ctx, tensors)
		if err == nil {
			err = set(meta)
		}
		if err != nil {
			return err
		}
		_, err = s.copies.Restore(ctx, s.me.comm, session, position, step)
		return err
	}
	if err == nil && meta != nil {
		err = set(meta)
	}
	return err
}

// Say says who has died, if somebody has, and from which step the others go on.
func (s *Survival) Say(step int, out *progress.Printer) {
	if !s.Again() {
		return
	}
	var gone, all []string
	for _, d := range s.change.Left {
		gone = append(gone, strconv.Itoa(d.Replica))
	}
	switch len(gone) {
	case 0:
	case 1:
		all = append(all, "replica "+gone[0]+" has died")
	default:
		all = append(all, "replicas "+strings.Join(gone, ", ")+" have died")
	}
	for _, r := range s.change.Came {
		all = append(all, fmt.Sprintf("replica %d has come", r))
	}
	what := "go on"
	if s.me.comm.Size() == 1 {
		what = "goes on"
	}
	out.Line(fmt.Sprintf("%s: %d %s from step %d", strings.Join(all, ", "), s.me.comm.Size(), what, step))
}

// Commit makes a step, and a copy when it is time. In a step of -die it fails.
func (s *Survival) Commit(ctx context.Context, number int, run func() error) (done bool, err error) {
	return s.copies.Commit(ctx, func() error {
		if slices.Contains(s.die, (death{s.first, number})) {
			s.died = true
			return fmt.Errorf("replica %d is told to die in step %d", s.first, number)
		}
		return run()
	})
}
