package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/transport/tcp"
)

// TestTimeoutAcrossProcesses: a call of processes that times out says who has not come to it, and what that replica was
// doing, as in one process. So does the call of a replica whose own context goes on.
func TestTimeoutAcrossProcesses(t *testing.T) {
	const n = 4
	for name, c := range map[string]struct {
		late func(ctx context.Context, rank int, c *gcl.Comm) error // what replicas 2 and 3 do instead
		want string
	}{
		"no call": {func(context.Context, int, *gcl.Comm) error { return nil },
			`waiting for replica 2, which has made no call for T, since barrier #1 "start" of group {0, 1, 2, 3}, ` +
				`and for replica 3, which has made no call for T, since barrier #1 "start" of group {0, 1, 2, 3}; ` +
				`replica %d has come to it`},
		"another call": {func(ctx context.Context, rank int, c *gcl.Comm) error {
			if rank == 3 {
				return nil
			}
			pairs := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2})
			return gcl.AllReduceInPlace(ctx, pairs.Named("pairs"), make([]float32, 2), gcl.Add)
		}, `waiting for replica 2, which is in all-reduce #1 "pairs" of group {2, 3}, and for replica 3, which has ` +
			`made no call for T, since barrier #1 "start" of group {0, 1, 2, 3}; replica %d has come to it`},
	} {
		t.Run(name, func(t *testing.T) {
			onSockets(t, func(t *testing.T, network tcp.Network) {
				comms := apartOn(t, network, n)
				// where they are to be when the context ends; the first two have their errors; all have ended
				var arrived, failed, done sync.WaitGroup
				arrived.Add(n)
				failed.Add(2)
				ended, end := context.WithCancel(t.Context())
				errs := make([]error, n)
				for rank, comm := range comms {
					done.Go(func() {
						defer comm.Close()
						if err := comm.Named("start").Barrier(t.Context()); err != nil {
							t.Error(err)
						}
						started := sync.OnceFunc(arrived.Done)
						traced := withOptions(comm, gcl.Options{Trace: &gcl.Trace{
							CollectiveStart: func(gcl.TraceCall) { started() }}})
						if rank >= 2 {
							_ = c.late(t.Context(), rank, traced) // aborted
							started()
							failed.Wait()
							return
						}
						defer failed.Done()
						ctx := t.Context()
						if rank == 0 {
							ctx = ended
						}
						errs[rank] = gcl.AllReduceInPlace(ctx, traced.Named("grads"), make([]float32, 2), gcl.Add)
					})
				}
				arrived.Wait()
				end()
				done.Wait()
				for rank, err := range errs[:2] {
					want := fmt.Sprintf(", "+c.want, 1-rank)
					text := begun.ReplaceAllString(timeless(fmt.Sprint(err)), "has come to it") // as far as it may have
					if !strings.HasSuffix(text, want) ||
						rank == 0 && !errors.Is(err, context.Canceled) || rank == 1 && !errors.Is(err, gcl.ErrAborted) {
						t.Errorf("replica %d: %s, want it to end with\n%s", rank, text, want)
					}
				}
			})
		})
	}
}

var begun = regexp.MustCompile(`is in (?:the beginning|round \d) of it`)

// TestTimeoutWithoutRoom: what a replica of another process tells of itself has little room. It is not blamed for what
// had none.
func TestTimeoutWithoutRoom(t *testing.T) {
	const n, many = 3, 20
	for name, label := range map[string]string{"connections": "start", "a name": strings.Repeat("long", 500)} {
		t.Run(name, func(t *testing.T) {
			comms := apartOn(t, tcp.TCP, n)
			var arrived, failed, done sync.WaitGroup
			arrived.Add(n)
			failed.Add(n - 1)
			ctx, end := context.WithCancel(t.Context())
			errs := make([]error, n)
			for rank, comm := range comms {
				done.Go(func() {
					defer comm.Close()
					last := comm
					for range many {
						last = must(last.Dup(t.Context()))
						if err := last.Named(label).Barrier(t.Context()); err != nil {
							t.Error(err)
						}
					}
					started := sync.OnceFunc(arrived.Done)
					traced := withOptions(last, gcl.Options{Trace: &gcl.Trace{
						CollectiveStart: func(gcl.TraceCall) { started() }}})
					if rank == 2 {
						started()
						failed.Wait()
						return
					}
					defer failed.Done()
					errs[rank] = gcl.AllReduceInPlace(ctx, traced, make([]float32, 2), gcl.Add)
				})
			}
			arrived.Wait()
			end()
			done.Wait()
			for rank, err := range errs[:2] {
				if err == nil || strings.Contains(err.Error(), "has not opened") {
					t.Errorf("replica %d: %v", rank, err)
				}
			}
		})
	}
}
