package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
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
						if change.Came[0] != c.Replica() || c.Replica() != c.Size()-1 {
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
