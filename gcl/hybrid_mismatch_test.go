package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/topology"
)

// crossing has the calls of a Comm by Hybrid cross between domains one way.
type crossing func(c *gcl.Comm) *gcl.Comm

func byPrice(c *gcl.Comm) *gcl.Comm   { return c }
func byAll(c *gcl.Comm) *gcl.Comm     { return gcl.CrossBy(c, false) }
func byLeaders(c *gcl.Comm) *gcl.Comm { return gcl.CrossBy(c, true) }

// hybridVariants lists calls of which any two differ, most of them by Hybrid.
func hybridVariants(n, size int, cross crossing) []variant {
	o := gcl.Options{Implementation: gcl.Hybrid}
	withOptions := func(c *gcl.Comm, o gcl.Options) *gcl.Comm { return cross(withOptions(c, o)) }
	text := func(format string, args ...any) []string { return []string{fmt.Sprintf(format, args...)} }
	reduced := text("all-reduce #1 (ADD float32 x %d, ", size)
	f := func() []float32 { return make([]float32, size) }
	add := func(o gcl.Options) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, withOptions(c, o), f(), gcl.Add)
		}
	}
	out := []variant{
		{name: "base", text: reduced, call: add(o)},
		{name: "implementation=Auto", text: reduced, call: add(gcl.Options{})},
		{name: "implementation=Syncless", text: reduced, call: add(gcl.Options{Implementation: gcl.Syncless})},
		{name: "implementation=Syncful", text: reduced, call: add(gcl.Options{Implementation: gcl.Syncful})},
		{name: "method=clockwise_ring", text: reduced, call: add(gcl.Options{Implementation: gcl.Hybrid, Method: methods.ClockwiseRing})},
		{name: "reproducible, hence not in phases, which shows", text: reduced, call: add(gcl.Options{Implementation: gcl.Hybrid, Reproducible: true})},
		{name: "operator=MAX", text: text("all-reduce #1 (MAX float32 x %d, ", size),
			call: func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, withOptions(c, o), f(), gcl.Max)
			}},
		{name: "operator=MEAN", text: text("all-reduce #1 (MEAN float32 x %d, ", size),
			call: func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, withOptions(c, o), f(), gcl.Mean) // which sends what ADD does
			}},
		{name: "dtype=int32", text: text("all-reduce #1 (ADD int32 x %d, ", size),
			call: func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, withOptions(c, o), make([]int32, size), gcl.Add)
			}},
		{name: "length+1", text: text("all-reduce #1 (ADD float32 x %d, ", size+1),
			call: func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, withOptions(c, o), make([]float32, size+1), gcl.Add)
			}},
		{name: "length-1", text: text("all-reduce #1 (ADD float32 x %d, ", size-1),
			call: func(ctx context.Context, c *gcl.Comm) error {
				// as long when it is padded
				return gcl.AllReduceInPlace(ctx, withOptions(c, o), make([]float32, size-1), gcl.Add)
			}},
		{name: "collective=reduce-scatter", text: text("reduce-scatter #1 (ADD float32 x %d, ", size),
			call: func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.ReduceScatter(ctx, withOptions(c, o), f(), gcl.Add)
				return err
			}},
		{name: "collective=reduce-scatter/length-1", text: text("reduce-scatter #1 (ADD float32 x %d, ", size-1),
			call: func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.ReduceScatter(ctx, withOptions(c, o), f()[1:], gcl.Add)
				return err
			}},
		{name: "collective=all-gather", text: text("all-gather #1 (float32 x %d, ", size),
			call: func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.AllGather(ctx, withOptions(c, o), f())
				return err
			}},
		{name: "collective=all-to-all", text: text("all-to-all #1 (float32 x %d, ", size),
			call: func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllToAllInPlace(ctx, withOptions(c, o), f())
			}},
		{name: "collective=barrier", text: []string{"barrier #1 ("}, call: func(ctx context.Context, c *gcl.Comm) error { return withOptions(c, o).Barrier(ctx) }},
		{name: "order", text: []string{fmt.Sprintf("all-reduce #2 (ADD float32 x %d, ", size), "barrier #1 ("},
			call: func(ctx context.Context, c *gcl.Comm) error {
				if err := c.Barrier(ctx); err != nil {
					return err
				}
				return add(o)(ctx, c)
			}},
	}
	for _, root := range []int{0, 1, n - 1} {
		out = append(out, variant{name: fmt.Sprintf("broadcast/root=%d", root),
			text: text("broadcast #1 (float32 x %d, root %d, ", size, root),
			call: func(ctx context.Context, c *gcl.Comm) error {
				return gcl.BroadcastInPlace(ctx, withOptions(c, o), f(), root)
			}})
	}
	for _, g := range []commgroup.Group{{Type: commgroup.Consecutive, Size: n / 2},
		{Type: commgroup.Orthogonal, Size: 2}} {
		out = append(out, variant{name: fmt.Sprintf("group=%v", g), text: reduced, group: g,
			call: func(ctx context.Context, c *gcl.Comm) error {
				return add(o)(ctx, grouped(c, g))
			}})
	}
	return out
}

// TestHybridMismatch tries every pair of calls in bubbles, where a hang shows at once: every replica gets ErrMismatch,
// with both calls.
func TestHybridMismatch(t *testing.T) {
	tried := 0
	for _, x := range []struct {
		machine topology.Topology
		cross   crossing
	}{{hosts(t, 2, 2), byPrice}, {hosts(t, 3, 3), byPrice}, {hosts(t, 2, 2), byAll}, {dealtOut(t, 0, 1, 1, 0), byAll},
		{dealtOut(t, 0, 1, 2, 2, 0, 1), byLeaders}} {
		n, opts := x.machine.Replicas(), gcl.WithTopology(x.machine)
		for _, size := range []int{24, 4104} {
			all := hybridVariants(n, size, x.cross)
			for i, theirs := range all {
				for j, ours := range all {
					if i == j {
						continue
					}
					for odd := range n {
						if underRace && (i+j+odd)%(5*n-5) != 0 || !*full && odd != oddOne(n, i, j) {
							continue
						}
						tried++
						var wrong []string
						synctest.Test(t, func(t *testing.T) {
							wrong = confuse(watched(t), t, n, odd, theirs, ours, opts)
						})
						for _, w := range wrong {
							t.Errorf("domains %v, size %d: %s", domainsOf(x.machine), size, w)
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases", tried)
}

// TestHybridWaysDiffer: replicas of which one crosses another way, since it knows other prices, get ErrMismatch.
func TestHybridWaysDiffer(t *testing.T) {
	for _, machine := range []topology.Topology{hosts(t, 2, 2), hosts(t, 3, 3), dealtOut(t, 0, 1, 1, 0)} {
		n := machine.Replicas()
		for _, size := range []int{24, 4104} {
			all, leaders := hybridVariants(n, size, byAll), hybridVariants(n, size, byLeaders)
			for i := range all {
				switch name := all[i].name; {
				case strings.HasPrefix(name, "implementation="), strings.HasPrefix(name, "group="),
					strings.HasPrefix(name, "reproducible"), name == "collective=all-to-all", name == "order":
					continue // goes in no phases, or not by leaders
				}
				for odd := range n {
					for _, two := range [][2]variant{{all[i], leaders[i]}, {leaders[i], all[i]}} {
						synctest.Test(t, func(t *testing.T) {
							wrong := confuse(watched(t), t, n, odd, two[0], two[1], gcl.WithTopology(machine))
							for _, w := range wrong {
								t.Errorf("domains %v, size %d: %s", domainsOf(machine), size, w)
							}
						})
					}
				}
			}
		}
	}
}

// TestHybridBroadcastUnheard: of a broadcast by Hybrid every replica hears who disagreed, although the one that did
// comes when all who could have their data have left, and waits for a member that has had no part in that phase.
func TestHybridBroadcastUnheard(t *testing.T) {
	for _, cross := range []crossing{byAll, byLeaders} {
		tryBroadcastUnheard(t, cross)
	}
}

func tryBroadcastUnheard(t *testing.T, cross crossing) {
	cast := func(size, root int) variant {
		return variant{name: fmt.Sprintf("%d from %d", size, root),
			text: []string{fmt.Sprintf("broadcast #1 (int32 x %d, root %d, ", size, root)},
			call: func(ctx context.Context, c *gcl.Comm) error {
				return gcl.BroadcastInPlace(ctx, cross(c), make([]int32, size), root)
			}}
	}
	for _, machine := range []topology.Topology{hosts(t, 2, 2), hosts(t, 3, 3), dealtOut(t, 0, 1, 1, 0)} {
		n := machine.Replicas()
		opts := []gcl.CommOption{gcl.WithTopology(machine),
			gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid})}
		for root := range n {
			for odd := range n {
				for other := range n {
					ours, theirs := cast(1, root), cast(1, other)
					switch other {
					case root:
						theirs = cast(2, other)
					case (root + 1) % n: // which does not go in phases
						theirs = variant{name: "several tensors",
							text: []string{"all-reduce #1 (ADD tensors, int32 x 3 in all, "},
							call: func(ctx context.Context, c *gcl.Comm) error {
								return gcl.AllReduceManyInPlace(ctx, c, [][]int32{make([]int32, 3)}, gcl.Add)
							}}
					}
					calls, before := make([]variant, n), make([]time.Duration, n)
					for r := range n {
						calls[r] = ours
					}
					calls[odd], before[odd] = theirs, 100*time.Millisecond
					synctest.Test(t, func(t *testing.T) {
						for r, err := range lives(watched(t), t, calls, before, make([]time.Duration, n), opts...) {
							if !errors.Is(err, gcl.ErrMismatch) || !ours.in(err.Error()) || !theirs.in(err.Error()) {
								t.Errorf("domains %v, replica %d makes %s, the others %s: replica %d: %v",
									domainsOf(machine), odd, theirs.name, ours.name, r, err)
							}
						}
					})
				}
			}
		}
	}
}

// Of nothing at all, every disagreement is found as well.
func TestHybridMismatchOfNothing(t *testing.T) {
	for odd := range 4 {
		synctest.Test(t, func(t *testing.T) {
			for r, err := range failuresIn(watched(t), t, 4, func(ctx context.Context, c *gcl.Comm) error {
				op := gcl.Add
				if c.Replica()/2 == odd/2 && odd%2 == 0 || c.Replica() == odd { // a domain, or a replica
					op = gcl.Max
				}
				if c.Replica()%2 == 1 && odd == 3 { // those at one place
					op = gcl.Max
				}
				_, err := gcl.ReduceScatter(ctx, c, []int32{}, op)
				return errors.Join(err, last(ctx, c))
			}, gcl.WithTopology(hosts(t, 2, 2)), gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid})) {
				if !errors.Is(err, gcl.ErrMismatch) {
					t.Errorf("odd %d: replica %d: %v", odd, r, err)
				}
			}
		})
	}
}

// The text names the outer call, with the phase.
func TestHybridErrorText(t *testing.T) {
	errs := failures(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		n := 10
		if c.Replica() >= 2 {
			n = 11
		}
		return gcl.AllReduceInPlace(ctx, c, make([]float32, n), gcl.Mean)
	}, gcl.WithTopology(hosts(t, 2, 2)), gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid}))
	for r, err := range errs {
		if !errors.Is(err, gcl.ErrMismatch) || !strings.HasPrefix(err.Error(), "gcl: all-reduce #2: ") ||
			!strings.Contains(err.Error(), "all-reduce #2 (MEAN float32 x 10, broadcast, Hybrid phase 2, round 0, "+
				"group ") ||
			!strings.Contains(err.Error(), "all-reduce #2 (MEAN float32 x 11, broadcast, Hybrid phase 2, round 0, "+
				"group ") {
			t.Errorf("replica %d: %v", r, err)
		}
	}
}

// Replicas that do not agree on where they sit, the last one being the odd one.
func TestHybridDomainsDiffer(t *testing.T) {
	for _, odd := range [][]int{{1, 1, 1, 1}, {4}, {1, 2, 1}} {
		for _, memory := range []bool{true, false} {
			endpoints, _ := witnesses(t, 4, memory)
			machines := []topology.Topology{hosts(t, 2, 2), hosts(t, 2, 2), hosts(t, 2, 2), hosts(t, odd...)}
			ctx, errs := watched(t), make(chan error, 4)
			for r, e := range endpoints {
				go func() {
					c, err := gcl.New(e, gcl.WithTopology(machines[r]))
					if err == nil && r == 3 && len(odd) == 3 {
						// {2} and {3} of {1 2 1}
						c, err = c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: 2})
					}
					if err == nil {
						c, err = c.With(gcl.Options{Implementation: gcl.Hybrid})
					}
					if err == nil {
						err = gcl.AllReduceInPlace(ctx, c, make([]float32, 100), gcl.Add)
					}
					errs <- err
				}()
			}
			for range endpoints {
				if err := <-errs; !errors.Is(err, gcl.ErrMismatch) {
					t.Errorf("hosts %v, memory %v: %v", odd, memory, err)
				}
			}
		}
	}
}

// Refused calls are counted, by all Comms of the group, whatever their implementation and ring.
func TestHybridCountsCalls(t *testing.T) {
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		hybrid := withOptions(c, gcl.Options{Implementation: gcl.Hybrid})
		for i := range 30 {
			by := []*gcl.Comm{c, hybrid, hybrid, withOptions(c, gcl.Options{Implementation: gcl.Syncless})}[i%4]
			if i%3 == 0 {
				refused := hybrid
				if c.Rank()%2 == 0 {
					refused = c
				}
				if err := gcl.AllReduceTo(ctx, refused, make([]int32, 1), make([]int32, 2), gcl.Add); err == nil {
					return errors.New("a wrong length is no error")
				}
			}
			got, err := gcl.AllReduce(ctx, by, []int32{int32(i)}, gcl.Add)
			if err := errors.Join(err, check("sum", got, []int32{int32(4 * i)})); err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		dup, err := hybrid.Dup(ctx)
		if err != nil {
			return err
		}
		got, err := gcl.AllReduce(ctx, dup, []int32{1, 2}, gcl.Add)
		work := hybrid.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, got, gcl.Add)
		})
		return errors.Join(err, work.Wait(), check("sum of sums", got, []int32{16, 32}))
	}, gcl.WithTopology(hosts(t, 2, 2)))
}

// TestHybridAbortSettlesBroadcast: a broadcast that members never came to is told of once, by the error that a later
// call has, also where that fails before its first phase. Close says nothing more.
func TestHybridAbortSettlesBroadcast(t *testing.T) {
	var both atomic.Int32
	boom, over := errors.New("boom"), make(chan struct{})
	err := gcl.Run(t.Context(), 4, func(ctx context.Context, c *gcl.Comm) error {
		c, err := c.With(gcl.Options{Implementation: gcl.Hybrid})
		if err != nil {
			return err
		}
		data := make([]int32, 5)
		if c.Rank()%2 != 0 { // neither the root nor across from it
			<-over
			return nil
		}
		if err := gcl.BroadcastInPlace(ctx, c, data, 0); err != nil {
			return err
		}
		if both.Add(1) == 2 {
			c.Abort(boom)
			close(over)
		}
		<-over
		if err := gcl.BroadcastInPlace(ctx, c, data, 0); !errors.Is(err, boom) {
			return fmt.Errorf("after the abort: %v", err)
		}
		return nil
	}, gcl.WithTopology(hosts(t, 2, 2)))
	if err != nil {
		t.Error(err)
	}
}
