package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"gogcl.dev/gcl"
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

// streamed tries the To forms with outputs that are together just large enough to be stored past the caches, off a
// cache line and in odd lengths. In place, where the inputs are in the caches already, nothing is.
func streamed[T tensor.Element](t *testing.T, n int, e elem[T]) {
	t.Helper()
	bytes := tensor.DTypeOf[T]().Size()
	size := (gcl.StreamBytes/bytes/n/n + 7) * n // as many in each part as there must be, and odd
	v := func(r, i int) T { return e.of((i*7 + i/513 + r*5) % 16) }
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		rank, per := c.Rank(), size/n
		in := make([]T, size+2*n+3)[2*rank+1:][:size]
		for i := range in {
			in[i] = v(rank, i)
		}
		wide := make([]T, size*n) // of a reduce-scatter
		for i := range wide {
			wide[i] = v(rank, i)
		}
		try := func(what string, n int, want func(i int) T, call func(dst []T) error) error {
			dst, whole := apart(n, rank+1, e.of(1))
			if err := call(dst); err != nil {
				return err
			}
			if !gcl.Streamed(c) {
				return fmt.Errorf("%s: results of %d bytes at %d replicas are not stored past the caches", what, len(tensor.Bytes(dst)), c.Size())
			}
			for i := range dst {
				if dst[i] != want(i) {
					return fmt.Errorf("%s: element %d is %v, want %v", what, i, dst[i], want(i))
				}
			}
			return whole()
		}
		sum := func(i int) T {
			s := 0
			for r := range n {
				s += (i*7 + i/513 + r*5) % 16
			}
			return e.of(s)
		}
		inPlace := func() error {
			err := gcl.AllReduceInPlace(ctx, c, in, gcl.Add)
			if err == nil && gcl.Streamed(c) {
				err = errors.New("an all-reduce in place is stored past the caches")
			}
			return err
		}
		small := func() error {
			err := gcl.BroadcastTo(ctx, c, make([]T, gcl.StreamBytes/bytes/n-1), in[:gcl.StreamBytes/bytes/n-1], 0)
			if err == nil && gcl.Streamed(c) {
				err = errors.New("a small broadcast is stored past the caches")
			}
			return err
		}
		return errors.Join(
			try("all-reduce", size, sum, func(dst []T) error { return gcl.AllReduceTo(ctx, c, dst, in, gcl.Add) }),
			try("reduce-scatter", size, func(i int) T { return sum(rank*size + i) }, func(dst []T) error { return gcl.ReduceScatterTo(ctx, c, dst, wide, gcl.Add) }),
			try("all-gather", per*n, func(i int) T { return v(i/per, i%per) }, func(dst []T) error { return gcl.AllGatherTo(ctx, c, dst, in[:per]) }),
			try("all-to-all", per*n, func(i int) T { return v(i/per, rank*per+i%per) }, func(dst []T) error { return gcl.AllToAllTo(ctx, c, dst, in) }),
			try("broadcast", size, func(i int) T { return v(1, i) }, func(dst []T) error { return gcl.BroadcastTo(ctx, c, dst, in, 1) }),
			small(),
			inPlace(), // the last, since it changes in
		)
	})
}

func TestStreamedOffALine(t *testing.T) {
	streamed(t, 2, plain[float32]())
	if underRace || testing.Short() {
		return
	}
	streamed(t, 3, plain[float32]())
	streamed(t, 2, plain[uint8]())
	streamed(t, 3, bf16())
	streamed(t, 5, plain[float64]())
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
