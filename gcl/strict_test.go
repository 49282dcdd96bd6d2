package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// TestStrict: a call that the method does not do is an error that lists those that do. Nothing has been sent, and the
// communicator stays usable.
func TestStrict(t *testing.T) {
	const n = 4
	endpoints, seen := witnesses(t, n, true)
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		for _, k := range []struct {
			method         methods.Method
			implementation gcl.Implementation
			call           func(c *gcl.Comm) error
			want           []string // of the error; none: there is none
		}{
			{own(t, "star"), 0, func(c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, c, []float32{1}, gcl.Add)
			}, nil},
			{own(t, "star"), 0, func(c *gcl.Comm) error { return c.Barrier(ctx) }, nil},
			{own(t, "star"), 0, func(c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, c, []float32{1}, gcl.Local)
			}, nil},
			{own(t, "star"), 0, func(c *gcl.Comm) error {
				_, err := gcl.AllGather(ctx, c, []float32{1})
				return err
			}, []string{"all-gather #", "the method star does not do all-gather of 4 ranks, which Options.Strict refuses",
				"want one of auto, broadcast, ", "recursive_doubling", ", circulant", "a star does all-reduce only"}},
			{own(t, "star"), 0, func(c *gcl.Comm) error {
				return c.Batch(schedule.Gather, 0, 1).Run(ctx)
			}, []string{"gather #", "the method star does not do gather of 4 ranks"}},
			{own(t, "star"), gcl.Syncful, func(c *gcl.Comm) error {
				_, err := gcl.ReduceScatterMany(ctx, c, [][]int32{{1, 2}, {3}}, gcl.Add)
				return err
			}, []string{"the method star does not do reduce-scatter of 4 ranks"}},
			{own(t, "star"), gcl.Hybrid, func(c *gcl.Comm) error { return c.Barrier(ctx) }, nil},
			{own(t, "star"), gcl.Hybrid, func(c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, c, []float32{1, 2}, gcl.Add)
			}, []string{"the method star does not do reduce-scatter of 2 ranks"}},
			{methods.ClockwiseRing, 0, func(c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, c, []float32{1}, gcl.Add)
			}, nil},
			{methods.ClockwiseRing, 0, func(c *gcl.Comm) error { return exchange(ctx, c) },
				[]string{"the method clockwise_ring does not do all-to-all by counts of 4 ranks", "want one of auto, direct: "}},
			{methods.Direct, 0, func(c *gcl.Comm) error { return exchange(ctx, c) }, nil},
			{methods.Auto, 0, func(c *gcl.Comm) error { return exchange(ctx, c) }, nil},
		} {
			mine := withOptions(c, gcl.Options{Method: k.method, Implementation: k.implementation, Strict: true})
			before := *seen[c.Replica()]
			err := k.call(mine)
			if len(k.want) == 0 {
				if err != nil {
					return err
				}
				continue
			}
			if !errors.Is(err, errors.ErrUnsupported) || isArgumentError(err) != nil || *seen[c.Replica()] != before {
				t.Errorf("replica %d: %v; sent %+v, before %+v", c.Replica(), err, *seen[c.Replica()], before)
			}
			for _, want := range k.want {
				if !contains(err, want) {
					t.Errorf("replica %d: %v, want %q", c.Replica(), err, want)
				}
			}
		}
		star := withOptions(c, gcl.Options{Method: own(t, "star"), Strict: true})
		if _, err := star.Explain(schedule.Gather, 16, tensor.F32); !errors.Is(err, errors.ErrUnsupported) ||
			!contains(err, "the method star does not do gather of 4 ranks") {
			t.Errorf("explained: %v", err)
		}
		if e, err := star.Explain(schedule.AllReduce, 16, tensor.F32); err != nil || e.Method != own(t, "star") {
			t.Errorf("explained: %v, %v", e.Method, err)
		}
		return nil
	}, gcl.WithMethod("star", star), gcl.WithTopology(hosts(t, 2, 2)), gcl.WithEndpoints(endpoints))
}

// TestStrictWithinReplica: an error among the IPUs would end the communicator.
func TestStrictWithinReplica(t *testing.T) {
	replicas(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		mine := withOptions(c, gcl.Options{Method: own(t, "star"), Strict: true})
		_, err := gcl.ReduceScatterWithinReplica(ctx, mine, [][]int32{{1, 2}, {3, 4}}, gcl.Add)
		return err
	}, gcl.WithMethod("star", star))
}

// exchange is an all-to-all by counts: a rank sends one element to each, and two to rank 0.
func exchange(ctx context.Context, c *gcl.Comm) error {
	sent, received := make([]int, c.Size()), make([]int, c.Size())
	for r := range sent {
		sent[r], received[r] = 1, 1
		if r == 0 {
			sent[r] = 2
		}
		if c.Rank() == 0 {
			received[r] = 2
		}
	}
	_, err := gcl.AllToAllV(ctx, c, make([]int32, c.Size()+1), sent, received)
	return err
}

// TestNotStrict: without it the first such call of a collective is logged, by one rank.
func TestNotStrict(t *testing.T) {
	for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful, gcl.Hybrid} {
		text := logged(t, func() {
			replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
				for range 2 {
					mine := withOptions(c, gcl.Options{Method: own(t, "star"), Implementation: i})
					if _, err := mine.Explain(schedule.AllGather, 16, tensor.F32); err != nil {
						return err
					}
					for range 3 {
						if _, err := gcl.AllGather(ctx, mine, []float32{1}); err != nil {
							return err
						}
					}
				}
				return nil
			}, gcl.WithMethod("star", star), gcl.WithTopology(hosts(t, 2, 2)))
		})
		want := 1
		if i == gcl.Hybrid { // by leaders: a gather, an all-gather and a broadcast
			want = 3
		}
		if strings.Count(text, "\n") != want ||
			!strings.Contains(text, `msg="gcl: a call goes as by auto, since the method does not do it" method=star collective=all-gather`) {
			t.Errorf("%v: logged %q, want %d lines", i, text, want)
		}
	}
}

// TestNotStrictByCounts: the parts of an all-to-all by counts go straight, whatever the method. IPUs say nothing.
func TestNotStrictByCounts(t *testing.T) {
	text := logged(t, func() {
		replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			c = withOptions(c, gcl.Options{Method: methods.ClockwiseRing})
			return errors.Join(exchange(ctx, c), exchange(ctx, c))
		})
		replicas(t, 1, func(ctx context.Context, c *gcl.Comm) error {
			mine := withOptions(c, gcl.Options{Method: own(t, "star")})
			_, err := gcl.ReduceScatterWithinReplica(ctx, mine, [][]int32{{1, 2}, {3, 4}}, gcl.Add)
			return err
		}, gcl.WithMethod("star", star))
	})
	if strings.Count(text, "\n") != 1 ||
		!strings.Contains(text, `method=clockwise_ring collective="all-to-all by counts"`) {
		t.Errorf("logged %q, want one line", text)
	}
}

// TestStrictMustAgree: members that have Strict and members that have it not disagree.
func TestStrictMustAgree(t *testing.T) {
	for r, err := range failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, withOptions(c, gcl.Options{Strict: c.Rank() == 0}), []float32{1}, gcl.Add)
	}) {
		if !errors.Is(err, gcl.ErrMismatch) || !contains(err, "Strict") {
			t.Error(fmt.Errorf("replica %d: %w", r, err))
		}
	}
}
