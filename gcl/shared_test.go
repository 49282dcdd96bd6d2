package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// apart returns n elements that begin off elements after the start of a page, and what checks that nothing around them
// was written.
func apart[T tensor.Element](n, off int, mark T) (buf []T, whole func() error) {
	const around = 32
	all := make([]T, off+n+around)
	for i := range all {
		all[i] = mark
	}
	return all[off : off+n : off+n], func() error {
		for i, v := range all {
			if (i < off || i >= off+n) && v != mark {
				return fmt.Errorf("element %d beside the destination of %d to %d is written", i, off, off+n)
			}
		}
		return nil
	}
}

// streamed tries every collective with a cache of which the buffers take three quarters, and with one a little larger:
// with the first, what replaces no input is stored past it. The buffers begin off a cache line and have odd lengths.
func streamed[T tensor.Element](t *testing.T, n int) {
	t.Helper()
	bytes := tensor.DTypeOf[T]().Size()
	part := gcl.PieceBytes/bytes*5/4 + 7 // elements of a rank's part, in several pieces
	whole := part * n
	const root = 1
	in := inputs[T](gcl.Add, n, whole)
	parts := make([][]T, n) // of an all-gather
	for r := range in {
		parts[r] = in[r][:part]
	}
	outputs := func(c schedule.Collective, in [][]T) [][]T {
		return oracle.Outputs(oracle.Call{Collective: c, Operator: oracle.Add, Root: root}, in)
	}
	sums, shards, gathered := outputs(schedule.AllReduce, in), outputs(schedule.ReduceScatter, in),
		outputs(schedule.AllGather, parts)
	swapped, sent := outputs(schedule.AllToAll, in), outputs(schedule.Broadcast, in)
	mark := in[0][0]
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		rank := c.Rank()
		own := func(buf []T) []T { return buf[rank*part:][:part] }
		for _, x := range []struct {
			collective schedule.Collective
			in, want   []T
			footprint  int // of a rank's buffers that lie apart
			replaces   bool
			one        func(c *gcl.Comm, dst, src []T) error
			many       func(c *gcl.Comm, dst, src [][]T) error
		}{
			{schedule.AllReduce, in[rank], sums[rank], 2 * whole, true,
				func(c *gcl.Comm, dst, src []T) error { return gcl.AllReduceTo(ctx, c, dst, src, gcl.Add) },
				func(c *gcl.Comm, dst, src [][]T) error { return gcl.AllReduceManyTo(ctx, c, dst, src, gcl.Add) }},
			{schedule.ReduceScatter, in[rank], shards[rank], whole + part, true,
				func(c *gcl.Comm, dst, src []T) error { return gcl.ReduceScatterTo(ctx, c, dst, src, gcl.Add) },
				func(c *gcl.Comm, dst, src [][]T) error { return gcl.ReduceScatterManyTo(ctx, c, dst, src, gcl.Add) }},
			{schedule.AllGather, parts[rank], gathered[rank], part + whole, false,
				func(c *gcl.Comm, dst, src []T) error { return gcl.AllGatherTo(ctx, c, dst, src) },
				func(c *gcl.Comm, dst, src [][]T) error { return gcl.AllGatherManyTo(ctx, c, dst, src) }},
			{schedule.AllToAll, in[rank], swapped[rank], 2 * whole, true,
				func(c *gcl.Comm, dst, src []T) error { return gcl.AllToAllTo(ctx, c, dst, src) },
				func(c *gcl.Comm, dst, src [][]T) error { return batchTo(ctx, c, schedule.AllToAll, dst, src, 0, 0) }},
			{schedule.Broadcast, in[rank], sent[rank], whole, false,
				func(c *gcl.Comm, dst, src []T) error { return gcl.BroadcastTo(ctx, c, dst, src, root) },
				func(c *gcl.Comm, dst, src [][]T) error {
					return batchTo(ctx, c, schedule.Broadcast, dst, src, 0, root)
				}},
		} {
			for choice := range 1 << 3 {
				inPlace, beyond, many := choice&1 != 0, choice&2 != 0, choice&4 != 0
				what := fmt.Sprintf("%v of %d ranks, in place %v, beyond the caches %v, many %v",
					x.collective, n, inPlace, beyond, many)
				src := make([]T, len(x.in)+2*n+3)[2*rank+1:][:len(x.in)]
				dst, untouched := apart(len(x.want), rank+1, mark)
				footprint := x.footprint
				if inPlace {
					footprint = whole
					if x.collective == schedule.AllGather {
						src = own(dst)
					} else if dst = src; x.collective == schedule.ReduceScatter {
						dst = own(src)
					}
				}
				copy(src, x.in)
				cache := footprint * bytes * n / 3 * 4 // that three quarters of which they have
				if !beyond {
					cache += 4 * n
				}
				c, err := withOptions(c, gcl.Options{CacheBytes: cache}), error(nil)
				if many {
					err = x.many(c, [][]T{dst}, [][]T{src})
				} else {
					err = x.one(c, dst, src)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
				if got, want := gcl.Streamed(c), beyond && !(inPlace && x.replaces); got != want {
					return fmt.Errorf("%s: stored past the caches %v, want %v", what, got, want)
				}
				if err := errors.Join(check("the result", dst, x.want), untouched()); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
			}
		}
		return nil
	})
}

func TestStreamedOffALine(t *testing.T) {
	streamed[float32](t, 2)
	streamed[float32](t, 3)
	streamed[uint8](t, 2)
	streamed[tensor.BFloat16](t, 3)
	streamed[float64](t, 5)
}

// TestCacheBytes: what fits into the caches is the option, else what the machine says.
func TestCacheBytes(t *testing.T) {
	for _, x := range []struct{ given, want int }{{0, kernel.LastLevelCache()}, {1, 1}, {64 << 20, 64 << 20}} {
		alone(t, func(ctx context.Context, c *gcl.Comm) error {
			c = withOptions(c, gcl.Options{CacheBytes: x.given})
			_, err := gcl.AllReduceWithinReplica(ctx, c, [][]float32{{1}, {2}}, gcl.Add)
			if got, within := gcl.CacheBytes(c), gcl.CacheBytesWithin(c, 2); got != x.want || within != x.want {
				t.Errorf("given %d: %d, and %d within a replica, want %d", x.given, got, within, x.want)
			}
			return err
		})
	}
}

// TestCacheBytesOfHybrid: the phases of Hybrid have the same caches.
func TestCacheBytesOfHybrid(t *testing.T) {
	for _, x := range []struct{ given, want int }{{0, kernel.LastLevelCache()}, {64 << 20, 64 << 20}} {
		replicas(t, 4, func(_ context.Context, c *gcl.Comm) error {
			c = withOptions(c, gcl.Options{Implementation: gcl.Hybrid, CacheBytes: x.given})
			if inside, across := gcl.CacheBytesOfPhases(c); inside != x.want || across != x.want {
				t.Errorf("given %d: %d inside link domains, and %d across, want %d", x.given, inside, across, x.want)
			}
			return nil
		}, gcl.WithTopology(hosts(t, 2, 2)))
	}
}

// In an all-to-all each rank may choose whether it is in place, also where a block is worked on in several pieces.
func TestAllToAllPartlyInPlace(t *testing.T) {
	allToAllPartlyInPlace(t, 3)                         // for Gather
	allToAllPartlyInPlace(t, gcl.PieceBytes/4*5/4+1357) // more than a piece, and no multiple
}

// allToAllPartlyInPlace tries blocks of some elements of 4 bytes.
func allToAllPartlyInPlace(t *testing.T, per int) {
	t.Helper()
	for n := 2; n <= 5; n++ {
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			in, out, want := make([]int32, n*per), make([]int32, n*per), make([]int32, n*per)
			v := func(from, i int) int32 { return int32(from*n*per + i) }
			for i := range want {
				want[i] = v(i/per, c.Rank()*per+i%per)
			}
			for k, o := range bothWays() {
				c := withOptions(c, o)
				for places := range 1 << n {
					if o.Implementation != gcl.Syncful || (underRace || testing.Short()) && (places+k)%3 != 0 {
						continue
					}
					for i := range in {
						in[i], out[i] = v(c.Rank(), i), -1
					}
					inPlace := places>>c.Rank()&1 == 1
					got, err := out, error(nil)
					if inPlace {
						got, err = in, gcl.AllToAllInPlace(ctx, c, in)
					} else {
						err = gcl.AllToAllTo(ctx, c, out, in)
					}
					if err == nil && !inPlace && in[len(in)-1] != v(c.Rank(), n*per-1) {
						err = errors.New("the input is written")
					}
					if err := errors.Join(err, check("all-to-all", got, want)); err != nil {
						return fmt.Errorf("n=%d %+v in place %0*b: %w", n, o, n, places, err)
					}
				}
			}
			return nil
		})
	}
}

// Without peer memory Syncful is a barrier before each round: nobody sends in a round that another has not come to.
// The results are the same.
func TestSyncfulByMessages(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8} {
		if underRace && n == 8 {
			continue
		}
		type place struct {
			seq   uint64
			round uint32
		}
		const barrierRound = 1 << 31
		var mu sync.Mutex // guards come and early
		come, early := map[place]int{}, 0
		endpoints := tapped(t, n, func(call transport.Call, batch []transport.Transfer) {
			mu.Lock()
			defer mu.Unlock()
			at := place{call.Seq, call.Round}
			switch {
			case call.Round >= barrierRound:
				at.round -= barrierRound
				come[at]++
			case len(batch) > 0 && come[at] < n:
				early++
			}
		})
		sizes := []int{0, 1, n + 1, 97, 4099}
		if underRace || testing.Short() {
			sizes = []int{0, n + 1, 97}
		}
		sums, means, placed := make([]reduceCase[float32], len(sizes)), make([]reduceCase[tensor.Float16], len(sizes)),
			make([]moveCase[float32], len(sizes))
		for i, size := range sizes {
			sums[i] = newReduceCase(gcl.Add, inputs[float32](gcl.Add, n, size))
			means[i] = newReduceCase(gcl.Mean, inputs[tensor.Float16](gcl.Mean, n, size))
			placed[i] = newMoveCase(sums[i].in)
		}
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			for i, size := range sizes {
				for _, m := range testMethods {
					for _, reproducible := range []bool{false, true} {
						c := withOptions(c, gcl.Options{Method: m, Implementation: gcl.Syncful,
							Reproducible: reproducible})
						if err := errors.Join(
							sums[i].try(ctx, c),
							means[i].try(ctx, c),
							placed[i].try(ctx, c),
							c.Barrier(ctx),
						); err != nil {
							return fmt.Errorf("n=%d method=%v reproducible=%v size=%d: %w",
								n, m, reproducible, size, err)
						}
					}
				}
			}
			return nil
		}, gcl.WithEndpoints(endpoints))
		if len(come) == 0 || early > 0 {
			t.Errorf("n=%d: %d barriers, %d exchanges before all had come to the round", n, len(come), early)
		}
	}
}
