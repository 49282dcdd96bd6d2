package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/kernel"
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
func streamed[T tensor.Element](t *testing.T, n int, e elem[T]) {
	t.Helper()
	bytes := tensor.DTypeOf[T]().Size()
	part := gcl.PieceBytes/bytes*5/4 + 7 // elements of a rank's part, in several pieces
	whole := part * n
	number := func(r, i int) int { return (i*7 + i/513 + r*5) % 16 }
	sum := func(i int) (s int) {
		for r := range n {
			s += number(r, i)
		}
		return s
	}
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		rank := c.Rank()
		own := func(buf []T) []T { return buf[rank*part:][:part] }
		for _, x := range []struct {
			collective schedule.Collective
			in, out    int // elements
			footprint  int // of a rank's buffers that lie apart
			replaces   bool
			want       func(i int) int
			one        func(c *gcl.Comm, dst, src []T) error
			many       func(c *gcl.Comm, dst, src [][]T) error
		}{
			{schedule.AllReduce, whole, whole, 2 * whole, true, sum,
				func(c *gcl.Comm, dst, src []T) error { return gcl.AllReduceTo(ctx, c, dst, src, gcl.Add) },
				func(c *gcl.Comm, dst, src [][]T) error { return gcl.AllReduceManyTo(ctx, c, dst, src, gcl.Add) }},
			{schedule.ReduceScatter, whole, part, whole + part, true, func(i int) int { return sum(rank*part + i) },
				func(c *gcl.Comm, dst, src []T) error { return gcl.ReduceScatterTo(ctx, c, dst, src, gcl.Add) },
				func(c *gcl.Comm, dst, src [][]T) error { return gcl.ReduceScatterManyTo(ctx, c, dst, src, gcl.Add) }},
			{schedule.AllGather, part, whole, part + whole, false, func(i int) int { return number(i/part, i%part) },
				func(c *gcl.Comm, dst, src []T) error { return gcl.AllGatherTo(ctx, c, dst, src) },
				func(c *gcl.Comm, dst, src [][]T) error { return gcl.AllGatherManyTo(ctx, c, dst, src) }},
			{schedule.AllToAll, whole, whole, 2 * whole, true, func(i int) int { return number(i/part, rank*part+i%part) },
				func(c *gcl.Comm, dst, src []T) error { return gcl.AllToAllTo(ctx, c, dst, src) },
				func(c *gcl.Comm, dst, src [][]T) error { return gcl.AllToAllManyTo(ctx, c, dst, src) }},
			{schedule.Broadcast, whole, whole, whole, false, func(i int) int { return number(1, i) },
				func(c *gcl.Comm, dst, src []T) error { return gcl.BroadcastTo(ctx, c, dst, src, 1) },
				func(c *gcl.Comm, dst, src [][]T) error { return gcl.BroadcastManyTo(ctx, c, dst, src, 1) }},
		} {
			for choice := range 1 << 3 {
				inPlace, beyond, many := choice&1 != 0, choice&2 != 0, choice&4 != 0
				what := fmt.Sprintf("%v of %d ranks, in place %v, beyond the caches %v, many %v", x.collective, n, inPlace, beyond, many)
				src := make([]T, x.in+2*n+3)[2*rank+1:][:x.in]
				dst, untouched := apart(x.out, rank+1, e.of(1))
				footprint := x.footprint
				if inPlace {
					footprint = whole
					if x.collective == schedule.AllGather {
						src = own(dst)
					} else if dst = src; x.collective == schedule.ReduceScatter {
						dst = own(src)
					}
				}
				for i := range src {
					src[i] = e.of(number(rank, i))
				}
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
				for i := range dst {
					if want := e.of(x.want(i)); dst[i] != want {
						return fmt.Errorf("%s: element %d is %v, want %v", what, i, dst[i], want)
					}
				}
				if err := untouched(); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
			}
		}
		return nil
	})
}

func TestStreamedOffALine(t *testing.T) {
	streamed(t, 2, plain[float32]())
	streamed(t, 3, plain[float32]())
	streamed(t, 2, plain[uint8]())
	streamed(t, 3, bf16())
	streamed(t, 5, plain[float64]())
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
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			for _, size := range sizes {
				single, half := plain[float32](), f16()
				sums, means := inputs(single, gcl.Add, n, size), inputs(half, gcl.Mean, n, size)
				sum, mean := reduce(single, gcl.Add, sums), reduce(half, gcl.Mean, means)
				for _, m := range testMethods {
					for _, reproducible := range []bool{false, true} {
						c := withOptions(c, gcl.Options{Method: m, Implementation: gcl.Syncful, Reproducible: reproducible})
						if err := errors.Join(
							tryReductions(ctx, c, gcl.Add, sums[c.Rank()], sum),
							tryReductions(ctx, c, gcl.Mean, means[c.Rank()], mean),
							tryMoves(ctx, c, sums),
							c.Barrier(ctx),
						); err != nil {
							return fmt.Errorf("n=%d method=%v reproducible=%v size=%d: %w", n, m, reproducible, size, err)
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
