package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// programCalls lists calls any two of which differ. The first ones are those with a root. The last one is compared with
// nothing.
func programCalls() (calls []variant, rooted int) {
	ways := []struct {
		name string
		gcl.Options
	}{
		{"auto", gcl.Options{}},
		{"ring by messages", gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncless}},
		{"direct by messages", gcl.Options{Method: methods.Direct, Implementation: gcl.Syncless}},
		{"ring on peer memory", gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncful}},
	}
	add := func(name string, call func(ctx context.Context, c *gcl.Comm) error) {
		calls = append(calls, variant{name: name, call: call})
	}
	for _, way := range ways {
		for root := range 2 {
			for _, size := range []int{5, 6, 500, 5000} {
				add(fmt.Sprintf("broadcast/%s/root=%d/size=%d", way.name, root, size),
					func(ctx context.Context, c *gcl.Comm) error {
						return gcl.BroadcastInPlace(ctx, withOptions(c, way.Options), make([]int32, size), root)
					})
			}
		}
		add("broadcast/"+way.name+"/tensors", func(ctx context.Context, c *gcl.Comm) error {
			return batchInPlace(ctx, withOptions(c, way.Options), schedule.Broadcast,
				[][]int32{make([]int32, 3), make([]int32, 2)}, 0, 0)
		})
	}
	for _, way := range ways { // of these some ranks do not wait for others either
		for root := range 2 {
			for _, n := range []int{5, 5000} {
				add(fmt.Sprintf("reduce/%s/root=%d/size=%d", way.name, root, n),
					func(ctx context.Context, c *gcl.Comm) error {
						return gcl.ReduceInPlace(ctx, withOptions(c, way.Options), make([]int32, n), gcl.Add, root)
					})
				add(fmt.Sprintf("gather/%s/root=%d/size=%d", way.name, root, n),
					func(ctx context.Context, c *gcl.Comm) error {
						_, err := gcl.Gather(ctx, withOptions(c, way.Options), make([]int32, n), root)
						return err
					})
				add(fmt.Sprintf("scatter/%s/root=%d/size=%d", way.name, root, n),
					func(ctx context.Context, c *gcl.Comm) error {
						return gcl.ScatterTo(ctx, withOptions(c, way.Options), make([]int32, n),
							make([]int32, n*c.Size()), root)
					})
			}
		}
	}
	rooted = len(calls)
	for _, way := range ways {
		add("all-reduce/"+way.name, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, withOptions(c, way.Options), make([]int32, 5), gcl.Add)
		})
	}
	add("barrier", func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) })
	add("refused", func(ctx context.Context, c *gcl.Comm) error {
		refuse(ctx, c)
		return nil
	})
	add("local", func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, c, make([]int32, 5), gcl.Local)
	})
	return calls, rooted
}

// TestProgramsPart: replicas make up to three calls, one of which differs at one replica, and leave. Every replica gets
// an error, ErrMismatch but where a call was refused for its arguments, however late or early each of them calls and
// leaves. Calls with a root that follow, and those who leave before the others find out, do not hide who was where.
func TestProgramsPart(t *testing.T) {
	calls, rooted := programCalls()
	refused, local := len(calls)-2, len(calls)-1
	tries := 2000
	switch {
	case *full:
		tries = 6000
	case underRace:
		tries = 300
	case testing.Short():
		tries = 1500
	}
	rng := rand.New(rand.NewPCG(1, 7))
	for range tries {
		p := newOddProgram(rng, calls, rooted, len(calls))
		if common := p.program[p.at]; p.other == common || p.other == local || common == local {
			continue
		}
		p.delay(func() time.Duration { return time.Duration(max(rng.IntN(8)-3, 0)) * 7 * time.Millisecond })
		errs := make([]error, p.replicas)
		synctest.Test(t, func(t *testing.T) {
			ctx, comms := watched(t), joined(t, p.replicas)
			var all sync.WaitGroup
			for r, c := range comms {
				all.Go(func() { errs[r] = p.run(ctx, r, c) })
			}
			all.Wait()
		})
		refusal := false
		for i := range p.program {
			refusal = refusal || p.program[i] == refused || i == p.at && p.other == refused
		}
		for r, err := range errs {
			if errors.Is(err, gcl.ErrMismatch) || refusal && (err != nil || p.call(r, p.at) == refused) {
				continue
			}
			t.Errorf("replica %d gets no mismatch%s", r, p.text(errs))
		}
	}
}
