package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

// The numbers of SEMANTICS.md, sections "Operators" and "Collectives across replicas".

// everyMethod runs body on n replicas once for each method, Reproducible and not.
func everyMethod(t *testing.T, n int, body func(context.Context, *gcl.Comm) error) {
	t.Helper()
	for _, m := range testMethods {
		for _, reproducible := range []bool{false, true} {
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				if err := body(ctx, c); err != nil {
					return fmt.Errorf("method=%v reproducible=%v: %w", m, reproducible, err)
				}
				return nil
			}, gcl.WithOptions(gcl.Options{Method: m, Reproducible: reproducible}))
		}
	}
}

// reduceAll is an all-reduce in its three forms, which must agree.
func reduceAll[T tensor.Element](ctx context.Context, c *gcl.Comm, in []T, op gcl.Operator) ([]T, error) {
	out, err := gcl.AllReduce(ctx, c, in, op)
	to := make([]T, len(in))
	same := append([]T(nil), in...)
	return out, errors.Join(err,
		gcl.AllReduceTo(ctx, c, to, in, op),
		gcl.AllReduceInPlace(ctx, c, same, op),
		check("to a destination", to, out),
		check("in place", same, out))
}

func TestOperatorsOnTwoReplicas(t *testing.T) {
	in := [][]float32{{1, 2, 3, 4}, {5, 6, 7, 8}}
	everyMethod(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		for _, x := range []struct {
			op   gcl.Operator
			want []float32
		}{
			{gcl.Add, []float32{6, 8, 10, 12}},
			{gcl.Mul, []float32{5, 12, 21, 32}},
			{gcl.Mean, []float32{3, 4, 5, 6}},
			{gcl.Min, []float32{1, 2, 3, 4}},
			{gcl.Max, []float32{5, 6, 7, 8}},
			{gcl.SquareAdd, []float32{26, 40, 58, 80}},
			{gcl.Local, in[c.Rank()]},
		} {
			out, err := reduceAll(ctx, c, in[c.Rank()], x.op)
			if err := errors.Join(err, check(x.op.String(), out, x.want)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestLogicalOperators(t *testing.T) {
	in := [][]bool{{false, false, true, true}, {false, true, false, true}}
	everyMethod(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		and, err1 := reduceAll(ctx, c, in[c.Rank()], gcl.LogicalAnd)
		or, err2 := reduceAll(ctx, c, in[c.Rank()], gcl.LogicalOr)
		return errors.Join(err1, err2,
			check("and", and, []bool{false, false, false, true}),
			check("or", or, []bool{false, true, true, true}))
	})
}

// Partial sums of squares are not squared again: with three replicas that would show.
func TestSquareAddSquaresOnce(t *testing.T) {
	everyMethod(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		out, err := reduceAll(ctx, c, []int32{int32(c.Rank()) + 2, -5}, gcl.SquareAdd)
		shard, err2 := gcl.ReduceScatter(ctx, c, []int32{int32(c.Rank()) + 2}, gcl.SquareAdd)
		return errors.Join(err, err2, check("all-reduce", out, []int32{4 + 9 + 16, 75}),
			check("reduce-scatter", shard, [][]int32{{29}, {0}, {0}}[c.Rank()]))
	})
}

func TestReduceScatterPadsWithZeros(t *testing.T) {
	everyMethod(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		in := [][]float64{{1, 2, 3}, {10, 20, 30}}[c.Rank()]
		for _, x := range []struct {
			op   gcl.Operator
			want [][]float64
		}{
			{gcl.Add, [][]float64{{11, 22}, {33, 0}}},
			{gcl.Mul, [][]float64{{10, 40}, {90, 0}}},
			{gcl.Max, [][]float64{{10, 20}, {30, 0}}},
			{gcl.SquareAdd, [][]float64{{101, 404}, {909, 0}}},
			{gcl.Local, [][]float64{{1, 2}, {30, 0}}},
		} {
			out, err := gcl.ReduceScatter(ctx, c, in, x.op)
			to := []float64{-1, -1} // the zeros are written
			if err := errors.Join(err, gcl.ReduceScatterTo(ctx, c, to, in, x.op),
				check(x.op.String(), out, x.want[c.Rank()]),
				check(x.op.String()+" to", to, x.want[c.Rank()])); err != nil {
				return err
			}
		}
		return nil
	})
}

// The same of an input that is no small one on peer memory.
func TestReduceScatterPadsLongInputs(t *testing.T) {
	everyMethod(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		in := make([]int32, 20002) // the last rank has an element less
		for i := range in {
			in[i] = int32(i)
		}
		want := make([]int32, 6668)
		for i := range want {
			if at := c.Rank()*len(want) + i; at < len(in) {
				want[i] = 3 * in[at]
			}
		}
		to := slices.Repeat([]int32{-1}, len(want)) // the zeros are written
		err := gcl.ReduceScatterTo(ctx, c, to, in, gcl.Add)
		return errors.Join(err, check("reduce-scatter to", to, want))
	})
}

// A destination that is the rank's own place in the input is all of the input that is written.
func TestReduceScatterWritesOnlyItsShard(t *testing.T) {
	everyMethod(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		for _, op := range []gcl.Operator{gcl.Add, gcl.Mean, gcl.SquareAdd, gcl.Local} {
			in := make([]float32, 9)
			for i := range in {
				in[i] = float32(c.Rank()*100 + i)
			}
			want := append([]float32(nil), in...)
			own := in[c.Rank()*3 : c.Rank()*3+3]
			shard, err := gcl.ReduceScatter(ctx, c, in, op)
			if err := errors.Join(err, check("the input", in, want),
				gcl.ReduceScatterTo(ctx, c, own, in, op)); err != nil {
				return err
			}
			copy(want[c.Rank()*3:], shard)
			if err := check(op.String(), in, want); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestPairsThenAcross(t *testing.T) {
	everyMethod(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		in := make([]int64, 4)
		for j := range in {
			in[j] = int64(10000*c.Replica() + j)
		}
		shard, err := gcl.ReduceScatter(ctx, grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2}), in,
			gcl.Add)
		if err := errors.Join(err, check("reduce-scatter in pairs", shard,
			[][]int64{{10000, 10002}, {10004, 10006}, {50000, 50002}, {50004, 50006}}[c.Replica()])); err != nil {
			return err
		}
		out, err := reduceAll(ctx, grouped(c, commgroup.Group{Type: commgroup.Orthogonal, Size: 2}), shard, gcl.Add)
		return errors.Join(err, check("all-reduce across", out,
			[][]int64{{60000, 60004}, {60008, 60012}, {60000, 60004}, {60008, 60012}}[c.Replica()]))
	})
}

func TestBroadcastHasARootInEachGroup(t *testing.T) {
	everyMethod(t, 8, func(ctx context.Context, c *gcl.Comm) error {
		pairs := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 2}) // {0,2} {1,3} {4,6} {5,7}
		for root, want := range [][]int32{{0, 1, 0, 1, 4, 5, 4, 5}, {2, 3, 2, 3, 6, 7, 6, 7}} {
			out, err := gcl.Broadcast(ctx, pairs, []int32{int32(c.Replica()), -int32(c.Replica())}, root)
			w := want[c.Replica()]
			if err := errors.Join(err, check("broadcast", out, []int32{w, -w})); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestAllToAllTransposes(t *testing.T) {
	everyMethod(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		i := int32(c.Rank())
		out, err := gcl.AllToAll(ctx, c, []int32{10 * i, 10*i + 1, 10*i + 2})
		return errors.Join(err, check("all-to-all", out, []int32{i, 10 + i, 20 + i})) // out_i[j] = in_j[i]
	})
}

// In a group of one everything is a copy, bit for bit: nothing is squared, divided, or made canonical.
func TestGroupOfOneCopies(t *testing.T) {
	nan := math.Float32frombits(0xffc12345)
	everyMethod(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		alone := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 1})
		in := []float32{nan, 3, float32(c.Replica()), float32(math.Copysign(0, -1))}
		want := append([]float32(nil), in...)
		for _, op := range []gcl.Operator{gcl.Add, gcl.Mean, gcl.Mul, gcl.Min, gcl.Max, gcl.SquareAdd, gcl.Local} {
			out, err := reduceAll(ctx, alone, in, op)
			shard, err2 := gcl.ReduceScatter(ctx, alone, in, op)
			if err := errors.Join(err, err2, check(op.String(), out, want),
				check(op.String()+" scattered", shard, want)); err != nil {
				return err
			}
			if &out[0] == &in[0] || &shard[0] == &in[0] {
				return errors.New("the result is the input's own memory")
			}
		}
		gathered, err1 := gcl.AllGather(ctx, alone, in) // 1 x 4, flat
		swapped, err2 := gcl.AllToAll(ctx, alone, in)
		sent, err3 := gcl.Broadcast(ctx, alone, in, 0)
		return errors.Join(err1, err2, err3, alone.Barrier(ctx), check("gathered", gathered, want),
			check("swapped", swapped, want),
			check("broadcast", sent, want), check("the input", in, want))
	})
}

// Groups of one and Local send nothing; others do, which shows that the count counts.
func TestLocalSendsNothing(t *testing.T) {
	count, endpoints := counted(t, 2)
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		in := []float32{1, 2, 3}
		alone := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 1})
		_, err1 := gcl.AllReduce(ctx, c, in, gcl.Local)
		_, err2 := gcl.ReduceScatter(ctx, c, in, gcl.Local)
		_, err3 := gcl.AllReduce(ctx, alone, in, gcl.Add)
		_, err4 := gcl.AllGather(ctx, alone, in)
		return errors.Join(err1, err2, err3, err4)
	}, gcl.WithEndpoints(endpoints))
	if n := count.Load(); n != 0 {
		t.Errorf("%d transfers, want none", n)
	}
	count, endpoints = counted(t, 2)
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, c, []float32{1, 2, 3}, gcl.Add)
	}, gcl.WithEndpoints(endpoints))
	if count.Load() == 0 {
		t.Error("an all-reduce of two replicas without a transfer")
	}
}

// minMax tries pairs of values of one floating point type, the NaN of which has the given bits.
func minMax[T tensor.Element](of func(float64) T, oddNaN, nan T) func(context.Context, *gcl.Comm) error {
	neg := math.Copysign(0, -1)
	a := []T{oddNaN, of(1), of(neg), of(0), of(math.Inf(-1)), oddNaN, of(3)}
	b := []T{of(1), oddNaN, of(0), of(neg), of(math.Inf(1)), oddNaN, of(-3)}
	least := []T{nan, nan, of(neg), of(neg), of(math.Inf(-1)), nan, of(-3)}
	greatest := []T{nan, nan, of(0), of(0), of(math.Inf(1)), nan, of(3)}
	return func(ctx context.Context, c *gcl.Comm) error {
		in := [][]T{a, b}[c.Rank()]
		lo, err1 := reduceAll(ctx, c, in, gcl.Min)
		hi, err2 := reduceAll(ctx, c, in, gcl.Max)
		return errors.Join(err1, err2, check("min", lo, least), check("max", hi, greatest))
	}
}

func TestMinMaxOfNaNAndZeros(t *testing.T) {
	everyMethod(t, 2, minMax(func(v float64) float32 {
		return float32(v)
	}, math.Float32frombits(0xffc12345), math.Float32frombits(0x7fc00000)))
	everyMethod(t, 2, minMax(func(v float64) float64 {
		return v
	}, math.Float64frombits(0xfff8000000012345), math.Float64frombits(0x7ff8000000000000)))
	everyMethod(t, 2, minMax(func(v float64) tensor.Float16 {
		return tensor.Float16FromFloat32(float32(v))
	}, 0xfe23, 0x7e00))
	everyMethod(t, 2, minMax(func(v float64) tensor.BFloat16 {
		return tensor.BFloat16FromFloat32(float32(v))
	}, 0xffd3, 0x7fc0))
}

// wrap tries that x op y, both as an integer type has them, is what Go calculates.
func wrap[T int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64](x, y T) func(context.Context,
	*gcl.Comm) error {
	return func(ctx context.Context, c *gcl.Comm) error {
		in := [][]T{{x}, {y}}[c.Rank()]
		sum, err1 := reduceAll(ctx, c, in, gcl.Add)
		product, err2 := reduceAll(ctx, c, in, gcl.Mul)
		squares, err3 := reduceAll(ctx, c, in, gcl.SquareAdd)
		return errors.Join(err1, err2, err3, check("sum", sum, []T{x + y}), check("product", product, []T{x * y}),
			check("squares", squares, []T{x*x + y*y}))
	}
}

func TestIntegersWrap(t *testing.T) {
	everyMethod(t, 2, wrap[int8](100, 100))
	everyMethod(t, 2, wrap[uint8](200, 100))
	everyMethod(t, 2, wrap[int16](math.MinInt16, -1))
	everyMethod(t, 2, wrap[uint16](math.MaxUint16, 2))
	everyMethod(t, 2, wrap[int32](math.MaxInt32, 3))
	everyMethod(t, 2, wrap[uint32](math.MaxUint32, math.MaxUint32))
	everyMethod(t, 2, wrap[int64](math.MaxInt64, math.MaxInt64-1))
	everyMethod(t, 2, wrap[uint64](math.MaxUint64, 7))
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error { // and the numbers themselves
		out, err := gcl.AllReduce(ctx, c, []int8{100}, gcl.Add)
		return errors.Join(err, check("100+100", out, []int8{-56}))
	})
}

// 16-bit floats are rounded at each hop, and only once with Reproducible.
func TestWhere16BitsRound(t *testing.T) {
	f16 := tensor.Float16FromFloat32
	bf16 := tensor.BFloat16FromFloat32
	for _, m := range []methods.Method{methods.SendToAll, methods.Direct} { // which fold in rank order either way
		for _, reproducible := range []bool{false, true} {
			replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
				r := c.Rank()
				half, err1 := reduceAll(ctx, c, [][]tensor.Float16{
					{f16(2048), f16(60000), f16(2048)}, {f16(1), f16(60000), f16(1)}, {f16(1), f16(-60000), f16(1)}}[r],
					gcl.Add)
				brain, err2 := reduceAll(ctx, c, [][]tensor.BFloat16{{bf16(256)}, {bf16(1)}, {bf16(1)}}[r], gcl.Add)
				squares, err3 := reduceAll(ctx, c, []tensor.Float16{0, f16(45.0625)}, gcl.SquareAdd)
				// 2049 is halfway, and goes to the even 2048
				wantHalf := []tensor.Float16{f16(2048), f16(float32(math.Inf(1))), f16(2048)}
				wantBrain := []tensor.BFloat16{bf16(256)}
				square := f16(45.0625 * 45.0625).Float32() // 2030.62890625 is 2031 in float16
				wantSquares := []tensor.Float16{0, f16(f16(square+square).Float32() + square)}
				if reproducible {
					wantHalf = []tensor.Float16{f16(2050), f16(60000), f16(2050)}
					wantBrain = []tensor.BFloat16{bf16(258)}
					wantSquares = []tensor.Float16{0, f16(3 * 45.0625 * 45.0625)}
				}
				return errors.Join(err1, err2, err3, check("float16", half, wantHalf),
					check("bfloat16", brain, wantBrain),
					check("float16 squares", squares, wantSquares))
			}, gcl.WithOptions(gcl.Options{Method: m, Reproducible: reproducible}))
		}
	}
}

// Mean divides, once: for many sums the product with the reciprocal is another float.
func TestMeanDivides(t *testing.T) {
	var sums []float32
	for s := float32(1); len(sums) < 7; s++ {
		if third := float32(1) / 3; s/3 != s*third {
			sums = append(sums, s)
		}
	}
	want := make([]float32, len(sums))
	for i, s := range sums {
		want[i] = s / 3
	}
	everyMethod(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		in := make([]float32, len(sums))
		for i, s := range sums {
			in[i] = []float32{s, 5, -5}[c.Rank()]
		}
		out, err := reduceAll(ctx, c, in, gcl.Mean)
		shard, err2 := gcl.ReduceScatter(ctx, c, in, gcl.Mean)
		padded := append(append([]float32(nil), want...), 0, 0)
		return errors.Join(err, err2, check("mean", out, want),
			check("mean scattered", shard, padded[c.Rank()*3:c.Rank()*3+3]))
	})
}
