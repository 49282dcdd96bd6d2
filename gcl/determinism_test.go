package gcl_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// The bits contract of docs/design/determinism.md, on data whose sums depend on their order.

// float is a floating point type as the tests see it: how to make values of it.
type float[T tensor.Element] struct {
	fromBits func(uint64) T
	bits     int // of T
	exponent int // how many of them are the exponent's
	of       func(float64) T
}

func half() float[tensor.Float16] {
	return float[tensor.Float16]{func(b uint64) tensor.Float16 { return tensor.Float16(b) }, 16, 5,
		func(v float64) tensor.Float16 { return tensor.Float16FromFloat32(float32(v)) }}
}

func brain() float[tensor.BFloat16] {
	return float[tensor.BFloat16]{func(b uint64) tensor.BFloat16 { return tensor.BFloat16(b) }, 16, 8,
		func(v float64) tensor.BFloat16 { return tensor.BFloat16FromFloat32(float32(v)) }}
}

func single() float[float32] {
	return float[float32]{func(b uint64) float32 { return math.Float32frombits(uint32(b)) }, 32, 8,
		func(v float64) float32 { return float32(v) }}
}

func double() float[float64] {
	return float[float64]{math.Float64frombits, 64, 11, func(v float64) float64 { return v }}
}

// random is a value of any kind: mostly moderate, of which sums round; also huge and tiny ones, subnormals,
// infinities, zeros, and NaNs with payloads.
func (f float[T]) random(r *rand.Rand) T {
	switch r.IntN(24) {
	case 0, 1: // any bits
		return f.fromBits(r.Uint64() & (1<<f.bits - 1))
	case 2: // a NaN, with a payload, quiet or not
		fraction := f.bits - 1 - f.exponent
		return f.fromBits((r.Uint64()|1)&(1<<fraction-1) | (1<<f.exponent-1)<<fraction | r.Uint64N(2)<<(f.bits-1))
	case 3:
		return f.of(math.Inf(1 - 2*r.IntN(2)))
	case 4:
		return f.of(math.Copysign(0, float64(1-2*r.IntN(2))))
	case 5: // subnormal
		return f.fromBits(r.Uint64N(64) | r.Uint64N(2)<<(f.bits-1))
	case 6, 7: // huge: with others like it beyond the largest
		return f.of(math.Ldexp(r.Float64()-0.5, 1<<(f.exponent-1)-1))
	}
	return f.of((r.Float64() - 0.5) * 100)
}

// randoms is the data of all replicas, the same every time.
func (f float[T]) randoms(n, size int) [][]T {
	out := make([][]T, n)
	for i := range out {
		r := rand.New(rand.NewPCG(uint64(i), uint64(size)))
		out[i] = make([]T, size)
		for j := range out[i] {
			out[i][j] = f.random(r)
		}
	}
	return out
}

// floatOperators are the operators that round, or meet NaNs.
var floatOperators = []gcl.Operator{gcl.Add, gcl.Mean, gcl.Mul, gcl.Min, gcl.Max, gcl.SquareAdd}

// roundingSizes are lengths for which all methods cut their data in different ways; with three replicas one of them is
// more than a transport folds at a time.
func roundingSizes(n int) []int {
	switch {
	case underRace:
		return []int{61}
	case n == 3:
		return []int{1, 61, 9001}
	}
	return []int{1, 61, 1500}
}

// sums adds the bits of every reduction by every method, both ways, to a hash, and checks that all replicas have the
// same bits: those of an all-reduce, and those of its shards.
func (f float[T]) sums(t *testing.T, h hash.Hash, n int, endpoints []transport.Endpoint) {
	t.Helper()
	var opts []gcl.CommOption
	if endpoints != nil {
		opts = append(opts, gcl.WithEndpoints(endpoints))
	}
	type result struct{ all, shard []T }
	got := make([][]result, n)
	sizes := roundingSizes(n)
	data := make([][][]T, len(sizes))
	for i, size := range sizes {
		data[i] = f.randoms(n, size)
	}
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		for _, o := range bothWays() {
			c := withOptions(c, o)
			for i := range data {
				for _, op := range floatOperators {
					all, err1 := reduceAll(ctx, c, data[i][c.Rank()], op)
					shard, err2 := gcl.ReduceScatter(ctx, c, data[i][c.Rank()], op)
					if err := errors.Join(err1, err2); err != nil {
						return fmt.Errorf("%+v op=%v size=%d: %w", o, op, sizes[i], err)
					}
					got[c.Rank()] = append(got[c.Rank()], result{all, shard})
				}
			}
		}
		return nil
	}, opts...)
	for k := range got[0] {
		for r := range got {
			if err := check(fmt.Sprintf("reduction %d: replica %d", k, r), got[r][k].all, got[0][k].all); err != nil {
				t.Error(err)
			}
			h.Write(tensor.Bytes(got[r][k].shard))
		}
		h.Write(tensor.Bytes(got[0][k].all))
	}
}

// allSums is the hash of the bits of everything.
func allSums(t *testing.T, n int, connect func() []transport.Endpoint) [sha256.Size]byte {
	t.Helper()
	h := sha256.New()
	half().sums(t, h, n, connect())
	brain().sums(t, h, n, connect())
	single().sums(t, h, n, connect())
	double().sums(t, h, n, connect())
	return [sha256.Size]byte(h.Sum(nil))
}

func inProcess() []transport.Endpoint { return nil }

// The bits are the same on all replicas, run after run, on one, two and eight processors.
func TestSameBitsEveryRun(t *testing.T) {
	for i, n := range roundingRanks {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			want := allSums(t, n, inProcess)
			numbers := []int{1, 2, 8}
			if n != 3 && !*full {
				numbers = numbers[i%3:][:1]
			}
			for _, processors := range numbers {
				func() {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
					if got := allSums(t, n, inProcess); got != want {
						t.Errorf("with GOMAXPROCS=%d other bits", processors)
					}
				}()
			}
		})
	}
}

// The bits do not depend on the pieces in which a transport calls Fold.
func TestSameBitsInOtherPieces(t *testing.T) {
	for i, n := range roundingRanks {
		want := allSums(t, n, inProcess)
		pieces := []int{64, 192, 4096}
		if n != 3 && !*full {
			pieces = pieces[i%3:][:1] // another one in each group
		}
		for _, piece := range pieces {
			connect := func() []transport.Endpoint {
				return tapped(t, n, func(_ transport.Call, batch []transport.Transfer) { foldIn(batch, piece) })
			}
			if got := allSums(t, n, connect); got != want {
				t.Errorf("n=%d: other bits when folded %d bytes at a time", n, piece)
			}
		}
	}
}

// foldIn has the folds of a batch called with so many bytes at a time, the last piece first: the order of pieces is
// the transport's affair too.
func foldIn(batch []transport.Transfer, piece int) {
	for i := range batch {
		whole := batch[i].Fold
		if whole == nil {
			continue
		}
		batch[i].Fold = func(dst, a, b []byte) {
			for lo := (len(dst) - 1) / piece * piece; lo >= 0; lo -= piece {
				hi := min(lo+piece, len(dst))
				whole(dst[lo:hi], a[lo:hi], b[lo:hi])
			}
		}
	}
}

// reproducible compares every reduction by every method, both ways, with the left fold.
func (f float[T]) reproducible(t *testing.T, n int) {
	t.Helper()
	for _, size := range roundingSizes(n) {
		data := f.randoms(n, size)
		var reductions []reduceCase[T]
		for _, op := range floatOperators {
			reductions = append(reductions, newReduceCase(op, data))
		}
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			for _, o := range bothWays() {
				o.Reproducible = true
				c := withOptions(c, o)
				for _, x := range reductions {
					if err := x.try(ctx, c); err != nil {
						return fmt.Errorf("dtype=%v %+v op=%v size=%d: %w", tensor.DTypeOf[T](), o, x.op, size, err)
					}
				}
			}
			return nil
		})
	}
}

// With Reproducible all methods give the bits of a left fold in rank order, 16-bit partial results kept in float32.
func TestReproducibleIsALeftFold(t *testing.T) {
	for _, n := range roundingRanks {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			half().reproducible(t, n)
			brain().reproducible(t, n)
			single().reproducible(t, n)
			double().reproducible(t, n)
		})
	}
}

// The data is such that it matters: by some method, some operator on some type gives other bits without Reproducible.
// Else the test above shows nothing.
func TestOrderMatters(t *testing.T) {
	const n = 5
	data := single().randoms(n, 1500)
	want := oracle.Reduce(oracle.Add, data)
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		out, err := gcl.AllReduce(ctx, with(c, methods.ClockwiseRing), data[c.Rank()], gcl.Add)
		if err == nil && same(out, want) < 0 {
			err = errors.New("a ring gives the bits of the left fold")
		}
		return err
	})
	halves := half().randoms(n, 1500)
	wide := oracle.Reduce(oracle.Add, halves)
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		out, err := gcl.AllReduce(ctx, with(c, methods.Direct), halves[c.Rank()], gcl.Add)
		if err == nil && same(out, wide) < 0 {
			err = errors.New("rounding at each hop gives the bits of rounding once")
		}
		return err
	})
}
