package rts_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/rts"
)

// TestCopiesForANewcomer: one of three dies, and a newcomer comes. The two that are left go back to the last copy, and
// the three go on from the step at which the newcomer comes, not from that copy, with the bits of a fresh job that has
// loaded that state.
func TestCopiesForANewcomer(t *testing.T) {
	const n, never = 3, 1 << 30
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	defer slog.SetDefault(before)
	trainer := rts.Trainer{Optimizer: rts.Adam{}}
	var mu sync.Mutex // guards got
	var got []survivor
	left := make(chan struct{})
	two := sync.OnceFunc(func() { close(left) }) // when two go on
	body := func(ctx context.Context, c *gcl.Comm) error {
		l := leg{t: t, first: c.Replica(), steps: never, trainer: trainer, copies: &rts.Copies{Every: 50},
			deaths: []death{{replica: 1, step: 5}}}
		change, came := c.Change()
		if came {
			l.first = n
		}
		for {
			if len(change.Came) > 0 {
				l.more = 4
			}
			err := l.run(ctx, c)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, l.survivor)
				return nil
			}
			if l.died {
				return errDies
			}
			if c, change, err = gcl.Rejoin(ctx, c); err != nil {
				return err
			}
			if l.first == 0 && len(change.Came) == 0 {
				two()
			}
			if l.first == 0 && len(change.Came) > 0 {
				defer func(at int) {
					if last := l.stages[len(l.stages)-1]; last != (stage{n, at}) {
						t.Errorf("%d go on from step %d, after step %d with 2", last.replicas, last.from, at)
					}
				}(l.at)
			}
		}
	}
	cfg := gcl.JoinConfig{Size: n, Job: "copies", Rendezvous: fmt.Sprintf("unix:@copies-%d", os.Getpid())}
	var all sync.WaitGroup
	for r := range n + 1 {
		all.Go(func() {
			switch r {
			case n:
				<-left
			case 0:
				defer two() // after a failure
			}
			own := cfg
			own.Rank, own.Newcomer = r%n, r == n
			err := gcl.RunProcess(t.Context(), own, body, gcl.WithElastic(gcl.Elastic{Min: 1, Replace: true}))
			if (err != nil) != (r == 1) {
				t.Errorf("replica %d: %v", r, err)
			}
		})
	}
	all.Wait()
	if len(got) != n || t.Failed() {
		t.Fatalf("%d have come to the end, want %d", len(got), n)
	}
	i := slices.IndexFunc(got, func(s survivor) bool { return len(s.stages) > 1 })
	stages := got[i].stages
	want := fresh(t, trainer, stages, stages[len(stages)-1].from+4)
	for _, s := range got {
		equalOutcome(t, s.outcome, want)
	}
}
