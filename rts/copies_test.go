package rts_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/rts"
	"gogcl.dev/rts/checkpoint"
	"gogcl.dev/tensor"
)

var errDies = errors.New("it dies")

// elastic runs body on n replicas of which one has to be left. What is logged goes nowhere.
func elastic(t testing.TB, n int, body func(context.Context, *gcl.Comm) error) {
	t.Helper()
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	defer slog.SetDefault(before)
	if err := gcl.Run(t.Context(), n, body, gcl.WithElastic(gcl.Elastic{Min: 1})); err != nil {
		t.Error(err)
	}
}

// member is a replica's part of the model.
type member struct {
	*model
	t    testing.TB
	comm *gcl.Comm
	at   int // committed steps
}

// join builds the model for the replicas of c.
func join(ctx context.Context, t testing.TB, c *gcl.Comm, trainer rts.Trainer) (*member, error) {
	s := rts.Sharding{Options: reproducible}
	if c.Size() == 1 {
		s.Over = 1
	}
	m := &member{buildModel(t, c.Size(), s, trainer, false, untied), t, c, 0}
	var err error
	m.session, err = ir.NewSession(m.program, collective.WithComm(ctx, c))
	return m, err
}

// samplesOf are the images and labels of this replica in a step. All replicas have those of the step between them.
func (m *member) samplesOf(step int) (images, labels *tensor.Tensor) {
	rng := rand.New(rand.NewPCG(uint64(step), 1))
	var x []float32
	var y []int32
	for range samples {
		label := rng.IntN(classes)
		y = append(y, int32(label))
		for k := range inputs {
			x = append(x, float32(rng.NormFloat64())+float32(label*k)/4)
		}
	}
	shape := m.session.HostSpec(m.images).Shape
	rows, r := shape[0], m.comm.Rank()
	labels, err := tensor.FromSlice(y[r*rows:(r+1)*rows], rows)
	if err != nil {
		m.t.Fatal(err)
	}
	return floats(m.t, x[r*rows*inputs:(r+1)*rows*inputs], shape...), labels
}

// run makes the step that comes next, and returns the loss.
func (m *member) run(ctx context.Context) (float32, error) {
	images, labels := m.samplesOf(m.at)
	got, err := m.session.Run(ctx, map[*ir.Stream]*tensor.Tensor{
		m.images: images, m.labels: labels,
		m.rate: tensor.Scalar(float32(0.05)), m.number: tensor.Scalar(int32(m.at + 1)),
	})
	if err != nil {
		return 0, err
	}
	return values(m.t, got[m.all])[0], nil
}

// meta says where the training is.
func (m *member) meta() (map[string]string, error) {
	return map[string]string{"step": strconv.Itoa(m.at)}, nil
}

// set goes to where a map of meta says.
func (m *member) set(meta map[string]string) (err error) {
	if meta != nil {
		m.at, err = strconv.Atoi(meta["step"])
	}
	return err
}

// outcome reads the parameters.
func (m *member) outcome(losses []float32) (outcome, error) {
	out := outcome{losses: losses}
	for _, v := range m.params {
		x, err := v.Read(m.session)
		if err != nil {
			return out, err
		}
		out.params = append(out.params, values(m.t, x))
	}
	return out, nil
}

// fresh is the outcome of a job of n replicas that makes some steps and saves, and of one of m that loads that and goes
// on. Each further n is a job that goes on from the step before it.
func fresh(t *testing.T, trainer rts.Trainer, jobs []stage, steps int) outcome {
	dir := t.TempDir()
	var out outcome
	for i, j := range jobs {
		until := steps
		if i+1 < len(jobs) {
			until = jobs[i+1].from
		}
		err := gcl.Run(t.Context(), j.replicas, func(ctx context.Context, c *gcl.Comm) (err error) {
			m, err := join(ctx, t, c, trainer)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, m.session.Close()) }()
			d, err := checkpoint.OpenTogether(ctx, dir, collective.Job(c))
			if err != nil {
				return err
			}
			defer d.Close()
			tensors, err := m.step.Checkpoint(m.session)
			if err != nil {
				return err
			}
			if i > 0 {
				meta, err := d.Load(ctx, tensors)
				if err != nil || m.set(meta) != nil {
					return err
				}
			}
			var losses []float32
			for ; m.at < until; m.at++ {
				loss, err := m.run(ctx)
				if err != nil {
					return err
				}
				losses = append(losses, loss)
			}
			meta, err := m.meta()
			if err == nil {
				err = d.Save(ctx, tensors, meta)
			}
			if err != nil {
				return err
			}
			o, err := m.outcome(losses)
			if c.Rank() == 0 {
				out = o
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// stage is a job of so many replicas from a step on.
type stage struct{ replicas, from int }

// death is that of a replica, by its first number, in a step: in its function, or as a copy begins before it.
type death struct {
	replica, step int
	inCopy        bool
}

// survivor is what became of a replica that has come to the end.
type survivor struct {
	stages []stage
	lost   []*checkpoint.LostError
	outcome
}

// survive trains on n replicas of which some die, and returns what became of the others, which is the same.
func survive(t *testing.T, n, every, steps int, trainer rts.Trainer, deaths []death, together bool) survivor {
	t.Helper()
	var mu sync.Mutex // guards what follows
	var all []survivor
	elastic(t, n, func(ctx context.Context, c *gcl.Comm) error {
		l := leg{t: t, first: c.Replica(), steps: steps, trainer: trainer, deaths: deaths,
			copies: &rts.Copies{Every: every}}
		dies := slices.ContainsFunc(deaths, func(d death) bool { return d.replica == l.first })
		for {
			err := l.run(ctx, c)
			if l.died || err != nil && dies && together {
				return err
			}
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, l.survivor)
				return nil
			}
			if c, _, err = gcl.Rejoin(ctx, c); err != nil {
				return err
			}
		}
	})
	if len(all) != n-len(deaths) {
		t.Fatalf("%d replicas came to the end, want %d", len(all), n-len(deaths))
	}
	for _, s := range all {
		if !slices.Equal(s.stages, all[0].stages) {
			t.Errorf("stages %v and %v", s.stages, all[0].stages)
		}
		equalOutcome(t, s.outcome, all[0].outcome)
	}
	for i, s := range all[0].stages[1:] {
		if before := all[0].stages[i]; s.from < before.from && len(all[0].lost) == 0 {
			t.Errorf("%d replicas go on from step %d, and %d from step %d after them", before.replicas, before.from,
				s.replicas, s.from)
		}
	}
	return all[0]
}

// leg is a replica's way from one death to the next.
type leg struct {
	t       testing.TB
	first   int // its number at the beginning
	steps   int
	trainer rts.Trainer
	deaths  []death
	copies  *rts.Copies
	died    bool
	more    int // if above 0: it makes so many steps, in place of steps
	at      int // committed steps at the end of run
	survivor
}

// run trains on c until the end or an error.
func (l *leg) run(ctx context.Context, c *gcl.Comm) (err error) {
	m, err := join(ctx, l.t, c, l.trainer)
	if err != nil {
		return err
	}
	defer func() { l.at, err = m.at, errors.Join(err, m.session.Close()) }()
	dies := func(inCopy bool) error {
		if slices.Contains(l.deaths, death{l.first, m.at, inCopy}) {
			l.died = true
			return errDies
		}
		return nil
	}
	position := func() (map[string]string, error) {
		if err := dies(true); err != nil {
			return nil, err
		}
		return m.meta()
	}
	meta, err := l.copies.Restore(ctx, c, m.session, position, m.step)
	if lost := (*checkpoint.LostError)(nil); errors.As(err, &lost) {
		l.lost = append(l.lost, lost)
		meta, err = l.copies.Restore(ctx, c, m.session, position, m.step)
	}
	if err != nil {
		return err
	}
	if err := m.set(meta); err != nil {
		return err
	}
	l.stages = append(l.stages, stage{c.Size(), m.at})
	if l.more > 0 {
		l.steps = m.at + l.more
	}
	var losses []float32
	for m.at < l.steps {
		var loss float32
		done, err := l.copies.Commit(ctx, func() (err error) {
			if err := dies(false); err != nil {
				return err
			}
			loss, err = m.run(ctx)
			return err
		})
		if !done {
			return err
		}
		losses = append(losses, loss)
		m.at++
	}
	l.outcome, err = m.outcome(losses)
	return err
}

// TestCopies: whoever dies, the others go on from the last copied step, with the bits of a fresh job of as many
// replicas that has loaded that state.
func TestCopies(t *testing.T) {
	const steps, last = 8, 5
	optimizers := []rts.Optimizer{rts.Adam{}, rts.SGD{}, rts.SGD{Momentum: 0.9}}
	for n := 2; n <= 5; n++ {
		for every := 1; every <= 3; every++ {
			for i, optimizer := range optimizers {
				if testing.Short() && (n+every+i)%3 > 0 {
					continue
				}
				for dead := range n {
					name := fmt.Sprintf("%T%v/n=%d/every=%d/dead=%d", optimizer, optimizer, n, every, dead)
					t.Run(name, func(t *testing.T) {
						trainer := rts.Trainer{Optimizer: optimizer, ClipNorm: float64(i) / 2, Overlap: dead%2 == 1}
						got := survive(t, n, every, steps, trainer, []death{{dead, last, false}}, false)
						stages := got.stages
						if len(stages) != 2 || stages[0] != (stage{n, 0}) || stages[1].replicas != n-1 {
							t.Fatalf("stages %v", stages)
						}
						copied := last / every * every
						from := stages[1].from
						if from != copied && (copied < last || from != last-every) {
							t.Errorf("they went on from step %d, want %d", from, copied)
						}
						equalOutcome(t, got.outcome, fresh(t, trainer, stages, steps))
					})
				}
			}
		}
	}
}

// TestCopiesOfACopyCutShort: a replica dies as a copy begins, so that nobody has its shards of that step. The others go
// on from the copy before.
func TestCopiesOfACopyCutShort(t *testing.T) {
	trainer := rts.Trainer{Optimizer: rts.Adam{}}
	for dead := range 3 {
		got := survive(t, 3, 2, 7, trainer, []death{{dead, 4, true}}, false)
		if want := []stage{{3, 0}, {2, 2}}; !slices.Equal(got.stages, want) {
			t.Errorf("replica %d dies: stages %v, want %v", dead, got.stages, want)
		}
		equalOutcome(t, got.outcome, fresh(t, trainer, got.stages, 7))
	}
}

// TestCopiesAgain: replicas die one after the other, down to the last.
func TestCopiesAgain(t *testing.T) {
	const steps = 10
	trainer := rts.Trainer{Optimizer: rts.SGD{Momentum: 0.9}}
	for _, deaths := range [][]death{
		{{replica: 1, step: 3}, {replica: 2, step: 5}},
		{{replica: 0, step: 3}, {replica: 1, step: 5}, {replica: 3, step: 7}},
		{{replica: 3, step: 1}, {replica: 2, step: 2}, {replica: 1, step: 3}},
	} {
		got := survive(t, 4, 2, steps, trainer, deaths, false)
		want := []stage{{4, 0}}
		for i := range deaths {
			want = append(want, stage{3 - i, got.stages[min(i+1, len(got.stages)-1)].from})
		}
		if !slices.Equal(got.stages, want) {
			t.Errorf("%v: stages %v", deaths, got.stages)
		}
		equalOutcome(t, got.outcome, fresh(t, trainer, got.stages, steps))
	}
}

// TestCopiesBeforeTheNext: a replica dies before the first copy after a death. They go back to where the last copy was
// made, and their position is that of it.
func TestCopiesBeforeTheNext(t *testing.T) {
	trainer := rts.Trainer{Optimizer: rts.SGD{Momentum: 0.9}}
	got := survive(t, 4, 3, 8, trainer, []death{{replica: 3, step: 4}, {replica: 2, step: 5}}, false)
	if want := []stage{{4, 0}, {3, 3}, {2, 3}}; !slices.Equal(got.stages, want) {
		t.Errorf("stages %v, want %v", got.stages, want)
	}
	equalOutcome(t, got.outcome, fresh(t, trainer, got.stages, 8))
}

// TestCopiesTogether: where a replica dies together with the one that keeps its copy, the error names both, and they go
// on from what is loaded then. Others may die together.
func TestCopiesTogether(t *testing.T) {
	const steps = 6
	trainer := rts.Trainer{Optimizer: rts.Adam{}}
	for _, tt := range []struct {
		dead []int
		want string
	}{
		{[]int{1, 2}, "replicas [1 2] are gone, and nobody else has had shards [1] of the copy in memory: load the last " +
			"checkpoint"},
		{[]int{0, 3}, "replicas [0 3] are gone, and nobody else has had shards [3] "},
		{[]int{0, 1, 2}, "replicas [0 1 2] are gone, and nobody else has had shards [0 1] "},
		{[]int{0, 2}, ""},
	} {
		var deaths []death
		for _, r := range tt.dead {
			deaths = append(deaths, death{replica: r, step: 3})
		}
		got := survive(t, 4, 2, steps, trainer, deaths, true)
		var text strings.Builder
		for _, err := range got.lost {
			text.WriteString(err.Error())
		}
		if !strings.HasPrefix(text.String(), tt.want) || tt.want == "" && text.String() != "" {
			t.Errorf("%v die: %s, want %s", tt.dead, text.String(), tt.want)
		}
		want := []stage{{4, 0}, {4 - len(tt.dead), 2}}
		if tt.want != "" {
			want = []stage{{4 - len(tt.dead), 0}} // nothing is loaded
			got.stages = got.stages[1:]
		}
		if !slices.Equal(got.stages, want) {
			t.Errorf("%v die: stages %v, want %v", tt.dead, got.stages, want)
		}
		equalOutcome(t, got.outcome, fresh(t, trainer, want, steps))
	}
}

// TestCopiesOfANewcomer: a replica without copies gets its shards of the others.
func TestCopiesOfANewcomer(t *testing.T) {
	const steps = 6
	trainer := rts.Trainer{Optimizer: rts.Adam{}}
	var mu sync.Mutex // guards got
	var got []survivor
	elastic(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		l := leg{t: t, first: c.Replica(), steps: steps, trainer: trainer, copies: &rts.Copies{Every: 3},
			deaths: []death{{replica: 1, step: 5}}}
		err := l.run(ctx, c)
		if l.first == 1 || err == nil {
			return errDies
		}
		if l.first == 3 { // it forgets all
			l = leg{t: t, first: 3, steps: steps, trainer: trainer, copies: &rts.Copies{Every: 3}}
		}
		if c, _, err = gcl.Rejoin(ctx, c); err != nil {
			return err
		}
		if err := l.run(ctx, c); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, l.survivor)
		return nil
	})
	if len(got) != 3 {
		t.Fatalf("%d have come to the end, want 3", len(got))
	}
	want := fresh(t, trainer, []stage{{4, 0}, {3, 3}}, steps)
	for _, s := range got {
		equalOutcome(t, s.outcome, want)
	}
}

// TestCopiesErrors: what cannot be is an error before anything is sent: one replica alone makes the calls.
func TestCopiesErrors(t *testing.T) {
	elastic(t, 2, func(ctx context.Context, c *gcl.Comm) (err error) {
		m, err := join(ctx, t, c, rts.Trainer{Optimizer: rts.SGD{}})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.session.Close()) }()
		if c.Rank() == 1 {
			return nil
		}
		alone := newModel(t, 2, rts.Sharding{}, rts.Trainer{Optimizer: rts.SGD{}})
		once := &rts.Copies{Every: 1}
		step := func() error { return errors.New("it is called") }
		for _, e := range []struct {
			want string
			call func() error
		}{
			{"Every is 0, want 1 step", func() error {
				_, err := new(rts.Copies).Restore(ctx, c, m.session, m.meta, m.step)
				return err
			}},
			{"Every is -1, want 1 step", func() error {
				_, err := (&rts.Copies{Every: -1}).Restore(ctx, c, m.session, m.meta, m.step)
				return err
			}},
			{"want Copies, a context, a Comm and a function", func() error {
				_, err := once.Restore(ctx, c, m.session, nil, m.step)
				return err
			}},
			{"want a session of the Comm's Job", func() error {
				_, err := once.Restore(ctx, c, alone.session, m.meta, alone.step)
				return err
			}},
			{"want a session of the Comm's Job", func() error {
				_, err := once.Restore(ctx, c, nil, m.meta, m.step)
				return err
			}},
			{"two tensors have the name", func() error {
				_, err := once.Restore(ctx, c, m.session, m.meta, m.step, m.params[0])
				return err
			}},
			{"call Restore first", func() error { _, err := once.Commit(ctx, step); return err }},
			{"want Copies, a context and a function", func() error { _, err := once.Commit(ctx, nil); return err }},
		} {
			if err := e.call(); err == nil || !strings.Contains(err.Error(), e.want) {
				t.Errorf("%v, want %s", err, e.want)
			}
		}
		return nil
	})
}

// TestCopiesMemory: a replica has four times the memory of its shards, and no more with time.
func TestCopiesMemory(t *testing.T) {
	elastic(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		l := leg{t: t, trainer: rts.Trainer{Optimizer: rts.Adam{}}}
		for _, steps := range []int{1, 2, 7} {
			copies := min(steps, 2)
			l.copies, l.steps = &rts.Copies{Every: 1}, steps
			if err := l.run(ctx, c); err != nil {
				return err
			}
			bytes := 0 // of shards
			for _, shape := range paramShapes {
				n, err := shape.Elements()
				if err != nil {
					return err
				}
				bytes += 3 * 4 * ((n + 2) / 3)
			}
			names := 18 * 100 // and some more for the names of tensors
			if got, want := l.copies.Bytes(), 2*copies*bytes; got < want || got > want+2*copies*names {
				t.Errorf("%d steps: %d bytes, want %d and few more", steps, got, want)
			}
		}
		return nil
	})
}
