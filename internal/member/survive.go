package member

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

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
	await   awaited
}

// Add adds the flags to a set.
func (f *SurvivalFlags) Add(flags *flag.FlagSet) {
	flags.BoolVar(&f.Survive, "survive", false, "go on when replicas die, from the last copy of their shards in the "+
		"memory of others")
	flags.IntVar(&f.every, "copy", 10, "with -survive, `steps` from copy to copy")
	flags.TextVar(&f.die, "die", deaths(nil), "with -survive, have replicas fail, and kill those that are "+
		"processes: `replica:step`, or several with commas; the first step is 1")
	flags.TextVar(&f.await, "await", awaited{}, "with -survive, take no newcomer before a step, and from there "+
		"on wait for newcomers where there are fewer replicas than so many: `replicas:step`")
}

// Options are those of a job that the training joins: with -survive newcomers come in the place of those that have
// died, but where the job meets in a directory, in which none find it.
func (f *SurvivalFlags) Options() []gcl.CommOption {
	if !f.Survive {
		return nil
	}
	return []gcl.CommOption{gcl.WithElastic(gcl.Elastic{Min: 1, Replace: f.findable()})}
}

// findable reports whether newcomers find the job.
func (f *SurvivalFlags) findable() bool {
	return !strings.HasPrefix(os.Getenv("GCL_RENDEZVOUS"), "dir:")
}

// Check reports the first value that makes no sense.
func (f *SurvivalFlags) Check() error {
	switch {
	case f.every < 1:
		return fmt.Errorf("-copy %d: there must be at least 1 step from copy to copy", f.every)
	case len(f.die) > 0 && !f.Survive:
		return errors.New("-die: there is no -survive")
	case f.await != awaited{} && !f.Survive:
		return errors.New("-await: there is no -survive")
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
		r, s, ok := numbers(part)
		if !ok || r < 0 || s < 1 {
			return fmt.Errorf("%.100q: want replica:step, as 2:45", part)
		}
		*d = append(*d, death{r, s})
	}
	return nil
}

// awaited is the value of -await: newcomers are taken in from a step on, and from there on there must be so many
// replicas. The zero value is none.
type awaited struct{ replicas, step int }

// MarshalText implements encoding.TextMarshaler.
func (a awaited) MarshalText() ([]byte, error) {
	if a == (awaited{}) {
		return nil, nil
	}
	return fmt.Appendf(nil, "%d:%d", a.replicas, a.step), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *awaited) UnmarshalText(text []byte) error {
	r, s, ok := numbers(string(text))
	if !ok || r < 1 || s < 1 {
		return fmt.Errorf("%.100q: want replicas:step, as 4:200", text)
	}
	*a = awaited{r, s}
	return nil
}

// numbers are those on both sides of a colon.
func numbers(text string) (a, b int, ok bool) {
	before, after, _ := strings.Cut(text, ":")
	a, err1 := strconv.Atoi(before)
	b, err2 := strconv.Atoi(after)
	return a, b, err1 == nil && err2 == nil
}

// Survival is what a replica of a training keeps when others die. A nil Survival is of a training that ends then.
type Survival struct {
	me     *Member
	told   context.Context // done when the program is told to stop
	out    *progress.Printer
	copies rts.Copies
	first  int // the replica's number at the beginning; -1: of a newcomer
	die    deaths
	await  awaited
	died   bool        // by die
	local  bool        // the replicas are goroutines
	change *gcl.Change // the last; nil: nobody has died or come
}

// Survive calls train on each of so many replicas: in a job that of this process, and in none all, as goroutines. When
// some die it calls train again on those that are left, and when one comes, on all. What train prints goes to out, as
// long as the replica speaks for all. A job has been joined with the flags' Options.
func (m *Member) Survive(ctx context.Context, f SurvivalFlags, replicas int, stdout io.Writer,
	train func(ctx context.Context, s *Survival, me *Member, out *progress.Printer) error) error {
	switch {
	case f.await != awaited{} && !m.InJob():
		return Mistake{errors.New("-await: the replicas are goroutines, and newcomers are processes: start them by gclrun")}
	case f.await != awaited{} && !f.findable():
		return Mistake{errors.New("-await: the job meets in a directory, where no newcomer finds it: want GCL_RENDEZVOUS " +
			"to be a socket")}
	case f.await.replicas > replicas && !m.came():
		return Mistake{fmt.Errorf("-await %d:%d: there are %d replicas, and never more", f.await.replicas, f.await.step,
			replicas)}
	}
	one := func(ctx context.Context, me *Member, local bool) error {
		s := &Survival{me: me, told: ctx, copies: rts.Copies{Every: f.every}, first: me.comm.Replica(), die: f.die,
			await: f.await, local: local}
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
		s.out = out
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
		before, _ := s.me.comm.Change()
		s.me.comm = c
		// Else it would come again. One who has heard ErrMembersChanged may find that the newcomer is gone, while
		// another has heard of that one's Rejoin only: the step tells them both.
		same := len(change.Left)+len(change.Came) == 0 && change.Committed == before.Committed
		if same && !errors.Is(err, gcl.ErrMembersChanged) {
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

// Say says who has died and who has come, if somebody has, and from which step all go on.
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
	if len(all) == 0 { // a newcomer has waited, and is gone
		return
	}
	what := "go on"
	if s.me.comm.Size() == 1 {
		what = "goes on"
	}
	out.Line(fmt.Sprintf("%s: %d %s from step %d", strings.Join(all, ", "), s.me.comm.Size(), what, step))
}

// Commit makes a step, and a copy when it is time. In a step of -die the replica dies. By -await it waits for newcomers
// before.
func (s *Survival) Commit(ctx context.Context, number int, run func() error) (done bool, err error) {
	s.copies.Hold = number < s.await.step
	if !s.copies.Hold && s.me.comm.Size() < s.await.replicas {
		if err := s.wait(ctx, number); err != nil {
			return false, err
		}
	}
	return s.copies.Commit(ctx, func() error {
		if slices.Contains(s.die, (death{s.first, number})) {
			s.died = true
			err := fmt.Errorf("replica %d is told to die in step %d", s.first, number)
			if !s.local {
				err = errors.Join(err, killSelf())
			}
			return err
		}
		return run()
	})
}

// killSelf ends this process without a word, as the kernel does that is out of memory.
func killSelf() error {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err == nil {
		select {} // until the signal comes
	}
	return err
}

// wait makes steps in which nothing happens until a newcomer waits to be taken in, which is a gcl.ErrMembersChanged, or
// the program is told to stop, in whatever process.
func (s *Survival) wait(ctx context.Context, number int) error {
	s.out.Line(fmt.Sprintf("step %d waits: %d of %d replicas are here", number, s.me.comm.Size(), s.await.replicas))
	for {
		stop, _, err := s.me.Agree(ctx, s.told.Err() != nil, 0)
		if stop || err != nil {
			return err
		}
		if _, err := s.copies.Commit(ctx, func() error {
			time.Sleep(10 * time.Millisecond)
			return nil
		}); err != nil {
			return err
		}
	}
}
