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
)

// TestNewcomer: a replica leaves in the middle, a newcomer comes in its place, the state and the count of steps with it,
// and all end after the same number of steps. With 2 of 4 gone two newcomers come, one after the other.
func TestNewcomer(t *testing.T) {
	for _, gone := range [][]int{{1}, {0}, {0, 3}} {
		t.Run(fmt.Sprint(gone), func(t *testing.T) {
			leaktest.Check(t)
			const n, steps = 4, 30
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cfg := gcl.JoinConfig{Size: n, Job: "newcomer", Rendezvous: fmt.Sprintf("unix:@%d-", os.Getpid()) + strings.NewReplacer("/", "-", "[", "-",
				"]", "-").Replace(t.Name()), Timeout: time.Minute}
			elastic := gcl.WithElastic(gcl.Elastic{Min: 1, Max: n})
			var mu sync.Mutex
			ends := map[string]int{}
			came := 0
			body := func(dies bool) func(context.Context, *gcl.Comm) error {
				return func(ctx context.Context, c *gcl.Comm) error {
					state := []int64{0}
					step := uint64(0)
					take := func(change gcl.Change) error { // those that have come get the state of one that has it
						if len(change.Came) == 0 {
							return nil
						}
						both := []int64{state[0], int64(step)}
						err := gcl.BroadcastInPlace(ctx, c, both, change.Givers[0])
						state[0], step = both[0], uint64(both[1])
						return err
					}
					change, changed := c.Change()
					if changed {
						mu.Lock()
						came++
						mu.Unlock()
						if !slices.Contains(change.Came, c.Replica()) || c.Replica() != c.Size()-1 {
							return fmt.Errorf("a newcomer is %d of %d: %+v", c.Replica(), c.Size(), change)
						}
						if err := take(change); err != nil {
							return err
						}
					}
					whole := c.Size() == n && changed
					for step < steps || !whole {
						if dies && step == 5 {
							return errors.New("it dies")
						}
						var next []int64
						done, err := c.Commit(ctx, func() (err error) {
							next, err = gcl.AllReduce(ctx, c, []int64{state[0] + 1}, gcl.Max)
							return err
						})
						for err != nil {
							for {
								c, change, err = gcl.Rejoin(ctx, c)
								if err != nil {
									return err
								}
								done = change.Committed > step
								break
							}
							if done {
								state, step, done = next, step+1, false
							}
							if err = take(change); err == nil {
								whole = whole || len(change.Came) > 0 && c.Size() == n
							}
						}
						if done {
							state, step = next, step+1
						}
					}
					mu.Lock()
					defer mu.Unlock()
					ends[fmt.Sprintf("%d after %d of %d", state[0], step, c.Size())]++
					return nil
				}
			}
			var all sync.WaitGroup
			for r := range n {
				dies := false
				for _, g := range gone {
					dies = dies || g == r
				}
				all.Go(func() {
					own := cfg
					own.Rank = r
					if err := gcl.RunProcess(ctx, own, body(dies), elastic); (err != nil) != dies {
						t.Errorf("replica %d: %v", r, err)
					}
				})
			}
			for range gone {
				all.Go(func() {
					own := cfg
					own.Newcomer = true
					if err := gcl.RunProcess(ctx, own, body(false), elastic); err != nil {
						t.Error("newcomer: ", err)
					}
				})
			}
			all.Wait()
			if came != len(gone) || len(ends) != 1 {
				t.Errorf("%d newcomers, want %d, and %v", came, len(gone), ends)
			}
		})
	}
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
