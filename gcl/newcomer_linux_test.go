package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods"
)

// TestNewcomer: replicas fail in the middle, and newcomers come in their place, one after the other. They get the state
// and the count of steps, and all end after the same number of steps. Bodies only return their errors.
func TestNewcomer(t *testing.T) {
	for _, gone := range [][]int{{1}, {0}, {0, 3}} {
		t.Run(fmt.Sprint(gone), func(t *testing.T) {
			leaktest.Check(t)
			const n = 4
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cfg := gcl.JoinConfig{Size: n, Job: "newcomer", Timeout: time.Minute,
				Rendezvous: fmt.Sprintf("unix:@gcl-newcomer-%d-%d-%d", os.Getpid(), len(gone), gone[0])}
			elastic := gcl.WithElastic(gcl.Elastic{Min: 1, Max: n})
			var mu sync.Mutex
			came, ends := 0, map[string]int{}
			var all sync.WaitGroup
			for r := range n {
				all.Go(func() {
					own := cfg
					own.Rank = r
					dies := slices.Contains(gone, r)
					training := &training{replicas: n, dies: dies}
					if err := gcl.RunProcess(ctx, own, training.run, elastic); (err != nil) != dies {
						t.Errorf("replica %d: %v", r, err)
					} else if !dies {
						mu.Lock()
						defer mu.Unlock()
						ends[training.String()]++
					}
				})
			}
			for range gone {
				all.Go(func() {
					own := cfg
					own.Newcomer = true
					training := &training{replicas: n, newcomer: true}
					err := gcl.RunProcess(ctx, own, training.run, elastic)
					if err != nil {
						t.Error("newcomer: ", err)
					}
					mu.Lock()
					defer mu.Unlock()
					came++
					ends[training.String()]++
				})
			}
			all.Wait()
			if came != len(gone) || len(ends) != 1 {
				t.Errorf("%d newcomers, want %d, and %v", came, len(gone), ends)
			}
		})
	}
}

// training is a replica that counts steps in its state, until there have been 30 and the job is whole again.
type training struct {
	replicas       int
	dies, newcomer bool

	state, step int64
	next        []int64 // the state of the step that is being made
	whole       bool
}

func (t *training) String() string { return fmt.Sprintf("%d after %d", t.state, t.step) }

func (t *training) run(ctx context.Context, c *gcl.Comm) error {
	change, changed := c.Change()
	switch {
	case changed == (c.Size() == t.replicas && t.step == 0 && !t.newcomer):
		return fmt.Errorf("a change of %d replicas after %d steps: %+v", c.Size(), t.step, change)
	case t.newcomer && t.step == 0 && !slices.Contains(change.Came, c.Replica()):
		return fmt.Errorf("a newcomer is %d of %d: %+v", c.Replica(), c.Size(), change)
	case changed:
		if change.Committed > uint64(t.step) && t.next != nil {
			t.take()
		}
	}
	if len(change.Came) > 0 {
		all := []int64{t.state, t.step}
		if err := gcl.BroadcastInPlace(ctx, c, all, change.Givers[0]); err != nil {
			return err
		}
		t.state, t.step = all[0], all[1]
		t.whole = c.Size() == t.replicas
	}
	for t.step < 30 || !t.whole {
		if t.dies && t.step == 5 {
			return errors.New("it dies")
		}
		done, err := c.Commit(ctx, func() (err error) {
			t.next, err = gcl.AllReduce(ctx, c, []int64{t.state + 1}, gcl.Max)
			return err
		})
		if done {
			t.take()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *training) take() {
	t.state, t.step, t.next = t.next[0], t.step+1, nil
}

// TestNewcomerWithoutState: replicas that have the state close their Comm before a newcomer has got it. While one of
// them is left the newcomer still counts as one that has come. Alone it does not go on, as if it had the state.
func TestNewcomerWithoutState(t *testing.T) {
	for _, stay := range []bool{true, false} {
		t.Run(fmt.Sprint("one stays ", stay), func(t *testing.T) {
			leaktest.Check(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cfg := gcl.JoinConfig{Size: 2, Job: "state", Timeout: time.Minute,
				Rendezvous: fmt.Sprintf("unix:@%d-state-%v", os.Getpid(), stay)}
			elastic := gcl.WithElastic(gcl.Elastic{Min: 1, Max: 3})
			var all sync.WaitGroup
			came := make(chan struct{})
			// after rejoins when the newcomer has come and others have left, and looks at the change.
			after := func(who string, c *gcl.Comm) {
				next, change, err := gcl.Rejoin(ctx, c)
				if !stay {
					const want = "have not got the state of the 1 steps that are done"
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %v", who, err)
					}
					return
				}
				if err != nil {
					t.Errorf("%s: %v", who, err)
					return
				}
				defer next.Close()
				if !slices.Equal(change.Came, []int{1}) || !slices.Equal(change.Givers, []int{0}) ||
					change.Committed != 1 {
					t.Errorf("%s: %+v, want replica 1 as one that has come", who, change)
				}
				done, err := next.Commit(ctx, func() error { return nil }) // which it can only vote for with the state
				if !done || err != nil {
					t.Errorf("%s: done=%v, error %v", who, done, err)
				}
				last, change, err := gcl.Rejoin(ctx, next)
				if err != nil || len(change.Came) != 0 || len(change.Givers) != 2 {
					t.Errorf("%s: %+v, %v, want none that has come", who, change, err)
					return
				}
				last.Close()
			}
			for r := range 2 {
				all.Go(func() {
					own := cfg
					own.Rank = r
					c, err := gcl.Join(ctx, own, elastic)
					if err != nil {
						t.Error(err)
						return
					}
					done, err := c.Commit(ctx, func() error { return nil })
					if !done || err != nil && !errors.Is(err, gcl.ErrMembersChanged) {
						t.Errorf("done=%v, error %v", done, err)
					}
					for c.Size() == 2 { // until it has come
						if c, _, err = gcl.Rejoin(ctx, c); err != nil {
							t.Error(err)
							return
						}
					}
					<-came
					if stay && r == 1 {
						after("replica 1", c)
					}
					c.Close()
				})
			}
			all.Go(func() {
				own := cfg
				own.Newcomer = true
				c, err := gcl.Join(ctx, own, elastic)
				close(came)
				if err != nil {
					t.Error(err)
					return
				}
				after("newcomer", c)
				c.Close()
			})
			all.Wait()
		})
	}
}

// TestNewcomerEnvironment: what GCL_OPTIONS says is among the options that a job began with. So it may rejoin where
// newcomers may come, again and again. With options of the program it may not.
func TestNewcomerEnvironment(t *testing.T) {
	leaktest.Check(t)
	t.Setenv("GCL_OPTIONS", `{"strict": true, "method": "direct"}`)
	cfg := gcl.JoinConfig{Size: 2, Job: "environment", Timeout: time.Minute,
		Rendezvous: fmt.Sprintf("unix:@%d-environment", os.Getpid())}
	var all sync.WaitGroup
	for r := range cfg.Size {
		all.Go(func() {
			own := cfg
			own.Rank = r
			c, err := gcl.Join(t.Context(), own, gcl.WithElastic(gcl.Elastic{Min: 1, Max: 3}))
			for range 2 {
				if err != nil {
					break
				}
				c, _, err = gcl.Rejoin(t.Context(), c)
			}
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			o := c.Options()
			if !o.Strict || o.Method != methods.Direct {
				t.Errorf("it goes on with %+v", o)
			}
			o.CheckFinite = true
			other, err := c.With(o)
			if err != nil {
				t.Error(err)
				return
			}
			_, _, err = gcl.Rejoin(t.Context(), other)
			if err == nil || !strings.Contains(err.Error(), "other options") {
				t.Errorf("with another option: %v", err)
			}
		})
	}
	all.Wait()
}
