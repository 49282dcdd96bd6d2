package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
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
			return gcl.BroadcastManyInPlace(ctx, withOptions(c, way.Options),
				[][]int32{make([]int32, 3), make([]int32, 2)}, 0)
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
	case testing.Short() || underRace:
		tries = 1500
	}
	rng := rand.New(rand.NewPCG(1, 7))
	for range tries {
		n, length := 2+rng.IntN(3), 1+rng.IntN(3)
		program := make([]int, length)
		for i := range program {
			program[i] = rng.IntN(rooted)
			if rng.IntN(3) == 0 {
				program[i] = rng.IntN(len(calls))
			}
		}
		odd, at, other := rng.IntN(n), rng.IntN(length), rng.IntN(len(calls))
		if other == program[at] || other == local || program[at] == local {
			continue
		}
		before := make([][4]time.Duration, n)
		for r := range before {
			for i := range before[r] {
				before[r][i] = time.Duration(max(rng.IntN(8)-3, 0)) * 7 * time.Millisecond
			}
		}
		call := func(r, i int) int {
			if r == odd && i == at {
				return other
			}
			return program[i]
		}
		errs := make([]error, n)
		synctest.Test(t, func(t *testing.T) {
			ctx, comms := watched(t), joined(t, n)
			var all sync.WaitGroup
			for r, c := range comms {
				all.Go(func() {
					for i := 0; i < length && errs[r] == nil; i++ {
						time.Sleep(before[r][i])
						errs[r] = calls[call(r, i)].call(ctx, c)
					}
					time.Sleep(before[r][length])
					errs[r] = errors.Join(errs[r], c.Close())
				})
			}
			all.Wait()
		})
		refusal := false
		for i := range length {
			refusal = refusal || program[i] == refused || i == at && other == refused
		}
		for r, err := range errs {
			if errors.Is(err, gcl.ErrMismatch) || refusal && (err != nil || call(r, at) == refused) {
				continue
			}
			var text strings.Builder
			for q := range n {
				fmt.Fprintf(&text, "\nreplica %d:", q)
				for i := range length {
					fmt.Fprintf(&text, " after %v %s,", before[q][i], calls[call(q, i)].name)
				}
				fmt.Fprintf(&text, " after %v Close: %v", before[q][length], errs[q])
			}
			t.Errorf("replica %d gets no mismatch%s", r, text.String())
		}
	}
}
