package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// TestCommit: a step is done on all replicas or on none, and who is told which has failed. The Comm stays usable.
func TestCommit(t *testing.T) {
	boom := errors.New("boom")
	for _, fail := range [][]int{{}, {0}, {2}, {1, 2}, {0, 1, 2}} {
		replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			c = c.Named("w")
			fails := slices.Contains(fail, c.Rank())
			calls := 0
			for range 3 {
				done, err := c.Commit(ctx, func() error {
					calls++
					if err := c.Barrier(ctx); err != nil {
						return err
					}
					if fails {
						return boom
					}
					return nil
				})
				if len(fail) == 0 {
					if !done || err != nil {
						return fmt.Errorf("done=%v, error %w", done, err)
					}
					continue
				}
				step := (*gcl.StepError)(nil)
				failed := c.Rank()
				if !fails {
					failed = fail[0]
				}
				if done || !errors.As(err, &step) || step.Replica != failed || errors.Is(err, boom) != fails ||
					errors.Is(err, gcl.ErrAborted) {
					return fmt.Errorf("%v fail: done=%v, error %w", fail, done, err)
				}
				want := fmt.Sprintf("gcl: commit: replica %d: the step is not done: the function ", c.Rank())
				if fails {
					want += "has failed: boom"
				} else {
					want += fmt.Sprintf("of replica %d has failed", fail[0])
				}
				if err.Error() != want {
					return fmt.Errorf("%w, want %q", err, want)
				}
			}
			if calls != 3 {
				return fmt.Errorf("%d calls of the function, want 3", calls)
			}
			return c.Barrier(ctx)
		})
	}
}

// TestCommitOptions: the options of the Comm have no say in how replicas vote, and its Trace is told.
func TestCommitOptions(t *testing.T) {
	var w went
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, gcl.Options{Method: own(t, "star"), Implementation: gcl.Syncless, Strict: true,
			CheckEqual: 1, CheckFinite: true, Trace: w.trace()})
		for _, c := range []*gcl.Comm{c, withOptions(c, gcl.Options{}), c} {
			if done, err := c.Commit(ctx, func() error { return nil }); !done || err != nil {
				return fmt.Errorf("done=%v, error %w", done, err)
			}
		}
		return nil
	}, gcl.WithMethod("star", star))
	if got, want := w.list(), []string{"all-reduce: direct, small"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestCommitCrash: a panic, and a runtime.Goexit, fail the step for the others, and go on then.
func TestCommitCrash(t *testing.T) {
	quiet(t)
	for _, crash := range []func(){func() { panic(errDies) }, runtime.Goexit} {
		elastic(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			done, err := c.Commit(ctx, func() error {
				if c.Rank() == 1 {
					crash()
				}
				return nil
			})
			step := (*gcl.StepError)(nil)
			if done || !errors.As(err, &step) || step.Replica != 1 || step.Err != nil {
				return fmt.Errorf("done=%v, error %w", done, err)
			}
			_, change, err := gcl.Rejoin(ctx, c)
			if err == nil && (!slices.Equal(change.Replicas, []int{0, 2}) || change.Committed != 0) {
				err = fmt.Errorf("%+v", change)
			}
			return err
		})
	}
	err := gcl.Run(watched(t), 2, func(ctx context.Context, c *gcl.Comm) error {
		_, err := c.Commit(ctx, func() error { panic(errDies) })
		return err
	})
	if crash := (*gcl.PanicError)(nil); !errors.As(err, &crash) || crash.Value != errDies {
		t.Errorf("%v, want the panic", err)
	}
}

// TestCommitWithin: Commit and Rejoin within Commit are errors at once, and the step may go on.
func TestCommitWithin(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		var within []error
		done, err := c.Commit(ctx, func() error {
			_, err := c.Commit(ctx, func() error { return errors.New("called") })
			_, _, again := gcl.Rejoin(ctx, c)
			within = append(within, err, again)
			return nil
		})
		if !done || err != nil {
			return fmt.Errorf("done=%v, error %w", done, err)
		}
		for i, what := range []string{"Commit", "Rejoin"} {
			if err := within[i]; err == nil || err.Error() != "gcl: "+what+" within a Commit, or beside one" {
				return fmt.Errorf("%s within Commit: %w", what, err)
			}
		}
		return nil
	})
}

// TestCommitAborted: where the others cannot be told, the error has both: why, and that of the function.
func TestCommitAborted(t *testing.T) {
	boom := errors.New("boom")
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		c.Abort(boom)
		done, err := c.Commit(ctx, func() error { return errDies })
		if done || !errors.Is(err, errDies) || !errors.Is(err, gcl.ErrAborted) || !errors.Is(err, boom) {
			return fmt.Errorf("done=%v, error %w", done, err)
		}
		step := (*gcl.StepError)(nil)
		done, err = c.Commit(ctx, func() error { return nil })
		if done || errors.As(err, &step) || !errors.Is(err, boom) {
			return fmt.Errorf("done=%v, error %w", done, err)
		}
		return nil
	})
}

// TestCommitSplit: replica 0, in the middle of a star, has told replica 1 that the step is done, and dies before it
// tells replica 2. Rejoin tells it.
func TestCommitSplit(t *testing.T) {
	quiet(t)
	t.Setenv("GCL_OPTIONS", `{"method": "star", "collectiveImplementation": "Syncless"}`)
	knows := make(chan struct{})
	inTurn := methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
		b := schedule.NewBuilder(r.Collective, r.Size, 0, 1)
		for rank := 1; rank < r.Size; rank++ {
			b.Fold(0, rank, 0, 0, 1)
			b.Copy(rank, 0, rank, 0, 1)
		}
		return b.Build()
	})
	elastic(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 0 {
			c = withOptions(c, gcl.Options{Trace: &gcl.Trace{RoundStart: func(call gcl.TraceCall, round int) {
				if call.Seq == 2 && round == 2 {
					<-knows
					runtime.Goexit()
				}
			}}})
		}
		for step := range 2 {
			done, err := c.Commit(ctx, func() error { return nil })
			if knew := step == 0 || c.Rank() == 1; done != knew || (err == nil) != knew {
				return fmt.Errorf("rank %d, step %d: done=%v, error %w", c.Rank(), step, done, err)
			}
		}
		if c.Rank() == 1 {
			close(knows)
		}
		c, change, err := gcl.Rejoin(ctx, c)
		if err != nil {
			return err
		}
		if change.Committed != 2 || !slices.Equal(change.Givers, []int{0}) ||
			!slices.Equal(change.Replicas, []int{1, 2}) {
			return fmt.Errorf("%+v, want 2 steps, known by rank 0", change)
		}
		if done, err := c.Commit(ctx, func() error { return nil }); !done || err != nil {
			return fmt.Errorf("done=%v, error %w", done, err)
		}
		_, change, err = gcl.Rejoin(ctx, c)
		if err == nil && (change.Committed != 3 || len(change.Givers) != 2 || change.Generation != 2) {
			err = fmt.Errorf("%+v, want 3 steps, known by both", change)
		}
		return err
	}, gcl.WithMethod("star", inTurn))
}

// trainer is a replica of a job that makes steps by Commit.
type trainer struct {
	*ledger
	number int // in the first generation
	rng    *rand.Rand
	state  uint64 // a digest of all steps that are done
	next   uint64 // that with the step that is not known to be done or not
	steps  uint64 // done
}

// ledger is what all replicas have said.
type ledger struct {
	mu      sync.Mutex
	changes map[string]int // by text: how many replicas had it
	ends    map[string]int
}

func (l *ledger) note(in map[string]int, format string, arguments ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in[fmt.Sprintf(format, arguments...)]++
}

// step makes a step, or goes on with those that are left.
func (r *trainer) step(ctx context.Context, c *gcl.Comm) (*gcl.Comm, error) {
	done, err := c.Commit(ctx, func() error {
		sum, err := gcl.AllReduce(ctx, c, []uint64{r.state, uint64(r.number + 1)}, gcl.Add)
		if err != nil {
			return err
		}
		r.next = (r.state*31+sum[0])*31 + sum[1]
		if r.rng.IntN(10) == 0 {
			return errors.New("not this time")
		}
		return nil
	})
	step := (*gcl.StepError)(nil)
	switch {
	case done && err == nil:
		r.state = r.next
		r.steps++
		return c, nil
	case done || err == nil:
		return nil, fmt.Errorf("done=%v, error %w", done, err)
	case errors.As(err, &step) && !errors.Is(err, gcl.ErrAborted):
		return c, nil
	}
	return r.rejoin(ctx, c, step == nil)
}

// rejoin goes on with those that are left. voted says that this replica has voted for a step whose outcome it does not
// know.
func (r *trainer) rejoin(ctx context.Context, c *gcl.Comm, voted bool) (*gcl.Comm, error) {
	before := c.Size()
	c, change, err := gcl.Rejoin(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case change.Committed == r.steps+1 && voted:
		r.state = r.next
		r.steps++
	case change.Committed != r.steps:
		return nil, fmt.Errorf("%d steps are done, and here %d; voted=%v", change.Committed, r.steps, voted)
	}
	if len(change.Givers) == 0 || len(change.Replicas)+len(change.Left) != before {
		return nil, fmt.Errorf("%+v of %d", change, before)
	}
	r.note(r.changes, "generation %d: replicas %v, %d steps, givers %v, state %x", change.Generation, change.Replicas,
		change.Committed, change.Givers, r.state)
	return c, nil
}

// train makes steps until all that are left know that all are done.
func (r *trainer) train(ctx context.Context, c *gcl.Comm, steps uint64) error {
	for {
		var err error
		if r.steps < steps {
			c, err = r.step(ctx, c)
		} else if c.Barrier(ctx) == nil {
			r.note(r.ends, "state %x", r.state)
			return nil
		} else {
			c, err = r.rejoin(ctx, c, false)
		}
		if err != nil {
			return err
		}
	}
}

// TestCommitDeaths: whoever dies, at whatever event, those that are left agree on which steps are done, and on the
// state that these have made.
func TestCommitDeaths(t *testing.T) {
	quiet(t)
	seeds := uint64(200)
	if underRace {
		seeds = 40
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { testDeaths(t, seed) })
	}
}

func testDeaths(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 34))
	n, steps := 2+rng.IntN(4), uint64(1+rng.IntN(6))
	dies := map[int]int{} // the event, by replica
	for _, r := range rng.Perm(n)[:rng.IntN(n)] {
		dies[r] = rng.IntN(120)
	}
	t.Setenv("GCL_OPTIONS", []string{"", `{"method": "direct", "collectiveImplementation": "Syncless"}`,
		`{"method": "clockwise_ring", "collectiveImplementation": "Syncless"}`,
		`{"method": "recursive_doubling", "collectiveImplementation": "Syncful"}`}[rng.IntN(4)])
	l := &ledger{changes: map[string]int{}, ends: map[string]int{}}
	elastic(t, n, func(ctx context.Context, c *gcl.Comm) error {
		r := trainer{ledger: l, number: c.Replica(), rng: rand.New(rand.NewPCG(seed, uint64(c.Replica())))}
		event, mortal := dies[c.Replica()]
		if mortal {
			c = withOptions(c, gcl.Options{Trace: dieAt(event)})
		}
		err := r.train(ctx, c, steps)
		if err != nil {
			t.Errorf("replica %d: %v", r.number, err)
		}
		return err
	})
	if len(l.ends) != 1 {
		t.Errorf("%d ends: %v", len(l.ends), slices.Sorted(maps.Keys(l.ends)))
	}
	seen := map[string]bool{}
	for _, text := range slices.Sorted(maps.Keys(l.changes)) {
		generation := text[:len("generation 1")]
		if seen[generation] {
			t.Errorf("two versions of %q: %v", generation, slices.Sorted(maps.Keys(l.changes)))
		}
		seen[generation] = true
	}
}
