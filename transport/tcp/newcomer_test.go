package tcp

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
)

// TestNewcomers: replicas die, the others rejoin, and newcomers come in their place, one with each rejoining.
func TestNewcomers(t *testing.T) {
	for _, network := range []Network{TCP, Unix, Shm} {
		t.Run(string(network), func(t *testing.T) {
			leaktest.Check(t)
			const n = 3
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			c := Config{Size: n, Most: n, Network: network, Job: "newcomers", Secret: make([]byte, 32), form: smallForm}
			meeting := Meeting{Where: "unix:@gogcl-newcomers-" + string(network)}
			var all sync.WaitGroup
			var mu sync.Mutex
			var sizes []string
			// stay goes on until the job has been whole again twice.
			stay := func(name string, e transport.Endpoint) error {
				whole := 0
				for {
					if err := ringRound(ctx, e, 0, 10); err != nil && ctx.Err() != nil {
						return err
					}
					next, err := e.(transport.Rejoiner).Rejoin(ctx, 7)
					if err != nil {
						return fmt.Errorf("%s: %w", name, err)
					}
					e.Close()
					e = next.Endpoint
					if len(next.Came) > 0 {
						whole++
					}
					mu.Lock()
					sizes = append(sizes, fmt.Sprintf("%s: generation %d of %d", name, next.Generation, e.Size()))
					mu.Unlock()
					if whole == 2 {
						err := ringRound(ctx, e, 0, 10)
						e.Close()
						return err
					}
				}
			}
			for r := range n {
				all.Go(func() {
					own := c
					own.Rank = r
					e, err := Join(ctx, own, meeting)
					if err != nil {
						t.Error(err)
						return
					}
					if r == 0 { // the desk goes with it
						e.Close()
						return
					}
					if err := stay(fmt.Sprint("replica ", r), e); err != nil {
						t.Error(err)
					}
				})
			}
			all.Go(func() {
				for range 2 {
					joined, err := Come(ctx, c, meeting)
					if err != nil {
						t.Error("newcomer: ", err)
						return
					}
					e := joined.Endpoint
					if e.Rank() != n-1 || e.Size() != n {
						t.Errorf("a newcomer is %d of %d", e.Rank(), e.Size())
					}
					err = ringRound(ctx, e, 0, 10)
					e.Close()
				}
			})
			all.Wait()
			t.Log(sizes[max(0, len(sizes)-8):])
		})
	}
}
