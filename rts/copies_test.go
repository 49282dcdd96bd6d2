package rts_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
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

// killed says that a replica, by its first number, dies in a step.
type killed struct{ replica, step int }

// survive trains on n replicas of which some die. It returns the stages that came of it and the outcome of the last.
func survive(t *testing.T, n, every, steps int, trainer rts.Trainer, dies ...killed) ([]stage, outcome) {
	var mu sync.Mutex // guards what follows
	stages := map[int][]stage{}
	outcomes := map[int]outcome{}
	elastic(t, n, func(ctx context.Context, c *gcl.Comm) error {
		first, copies := c.Replica(), &rts.Copies{Every: every}
		var own []stage
		for {
			o, committed, err := leg(ctx, t, c, copies, trainer, steps, &own, func(step int) error {
				if slices.Contains(dies, killed{first, step}) {
					return errDies
				}
				return nil
			})
			if errors.Is(err, errDies) && slices.ContainsFunc(dies, func(k killed) bool { return k.replica == first }) {
				return err
			}
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				stages[first], outcomes[first] = own, o
				return nil
			}
			var change gcl.Change
			before := own[len(own)-1].from
			if c, change, err = gcl.Rejoin(ctx, c); err != nil {
				return err
			}
			if change.Committed > 1<<20 || committed < before {
				t.Errorf("replica %d: %d committed steps", first, committed)
			}
		}
	})
	var who int
	for r, s := range stages {
		who = r
		if !slices.Equal(s, stages[who]) {
			t.Errorf("replica %d went through %v, and %d through %v", r, s, who, stages[who])
		}
	}
	for r, o := range outcomes {
		equalOutcome(t, o, outcomes[who])
		if len(o.losses) == 0 {
			t.Errorf("replica %d has no losses", r)
		}
	}
	if len(stages) != n-len(dies) {
		t.Fatalf("%d replicas came to the end, want %d", len(stages), n-len(dies))
	}
	return stages[who], outcomes[who]
}

// leg trains on c until the end or an error, and adds a stage.
func leg(ctx context.Context, t testing.TB, c *gcl.Comm, copies *rts.Copies, trainer rts.Trainer, steps int,
	stages *[]stage, before func(step int) error) (o outcome, committed int, err error) {
	m, err := join(ctx, t, c, trainer)
	if err != nil {
		return o, 0, err
	}
	defer func() { err = errors.Join(err, m.session.Close()) }()
	meta, err := copies.Restore(ctx, c, m.session, m.meta, m.step)
	if err != nil {
		return o, 0, err
	}
	if err := m.set(meta); err != nil {
		return o, 0, err
	}
	*stages = append(*stages, stage{c.Size(), m.at})
	var losses []float32
	for m.at < steps {
		var loss float32
		done, err := copies.Commit(ctx, func() (err error) {
			if err := before(m.at); err != nil {
				return err
			}
			loss, err = m.run(ctx)
			return err
		})
		if !done {
			return o, m.at, err
		}
		losses = append(losses, loss)
		m.at++
	}
	o, err = m.outcome(losses)
	return o, m.at, err
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
					name := fmt.Sprintf("%T/n=%d/every=%d/dead=%d", optimizer, n, every, dead)
					t.Run(fmt.Sprint(name, i), func(t *testing.T) {
						trainer := rts.Trainer{Optimizer: optimizer, ClipNorm: float64(i) / 2, Overlap: dead%2 == 1}
						stages, got := survive(t, n, every, steps, trainer, killed{dead, last})
						if len(stages) != 2 || stages[0] != (stage{n, 0}) || stages[1].replicas != n-1 {
							t.Fatalf("stages %v", stages)
						}
						copied := last / every * every
						from := stages[1].from
						if from != copied && (copied < last || from != last-every) {
							t.Errorf("they went on from step %d, want %d", from, copied)
						}
						equalOutcome(t, got, fresh(t, trainer, stages, steps))
					})
				}
			}
		}
	}
}
