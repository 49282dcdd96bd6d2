package gcl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

// kind is an element type as the tests of calls on several tensors see it, whatever type it is.
type kind struct {
	dtype tensor.DType

	// reduction makes the inputs of n ranks, of a length, and what the dumb implementation makes of them.
	reduction func(op gcl.Operator, n, size int) (in []*tensor.Tensor, want *tensor.Tensor)

	// single is one call on one tensor, result returned: all-reduce, or with scatter a reduce-scatter.
	single func(ctx context.Context, c *gcl.Comm, in *tensor.Tensor, op gcl.Operator, scatter bool) (*tensor.Tensor, error)

	// random is data whose sums round; nil if all are exact.
	random func(r *rand.Rand, size int) *tensor.Tensor
}

// flat is a slice as a tensor of one dimension.
func flat[T tensor.Element](data []T) *tensor.Tensor {
	t, err := tensor.FromSlice(data)
	if err != nil {
		panic(err)
	}
	return t
}

func kindOf[T tensor.Element](e elem[T]) kind {
	return kind{
		dtype: tensor.DTypeOf[T](),
		reduction: func(op gcl.Operator, n, size int) (in []*tensor.Tensor, want *tensor.Tensor) {
			data := inputs(e, op, n, size)
			for _, d := range data {
				in = append(in, flat(d))
			}
			if op == gcl.Local || n == 1 {
				return in, nil
			}
			return in, flat(reduce(e, op, data))
		},
		single: func(ctx context.Context, c *gcl.Comm, in *tensor.Tensor, op gcl.Operator, scatter bool) (*tensor.Tensor, error) {
			data, err := tensor.Of[T](in)
			if err != nil {
				return nil, err
			}
			var out []T
			if scatter {
				out, err = gcl.ReduceScatter(ctx, c, data, op)
			} else {
				out, err = gcl.AllReduce(ctx, c, data, op)
			}
			return flat(out), err
		},
	}
}

func floatKind[T tensor.Element, W float32 | float64](e elem[T], f float[T, W]) kind {
	k := kindOf(e)
	k.random = func(r *rand.Rand, size int) *tensor.Tensor {
		data := make([]T, size)
		for i := range data {
			data[i] = f.random(r)
		}
		return flat(data)
	}
	return k
}

// kinds are all element types.
func kinds() []kind {
	return []kind{
		floatKind(plain[float32](), single()), floatKind(f16(), half()), kindOf(plain[int8]()), floatKind(plain[float64](), double()),
		floatKind(bf16(), brain()), kindOf(plain[int16]()), kindOf(plain[uint64]()), kindOf(plain[uint8]()), kindOf(plain[int32]()),
		kindOf(plain[uint16]()), kindOf(plain[int64]()), kindOf(plain[uint32]()), kindOf(boolean()),
	}
}

// takes reports whether an operator takes an element type, by the table of SEMANTICS.md.
func takes(op gcl.Operator, t tensor.DType) bool {
	switch op {
	case gcl.Local:
		return true
	case gcl.LogicalAnd, gcl.LogicalOr:
		return t == tensor.Bool
	case gcl.Mean:
		return t.IsFloat()
	}
	return t != tensor.Bool
}

// sameTensors returns an error unless got are want, in dtype, shape and bits.
func sameTensors(what string, got, want []*tensor.Tensor) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d tensors, want %d", what, len(got), len(want))
	}
	for t := range got {
		if got[t].Equal(want[t]) {
			continue
		}
		if got[t].DType() != want[t].DType() || !got[t].Shape().Equal(want[t].Shape()) {
			return fmt.Errorf("%s: tensor %d is %v%v, want %v%v", what, t, got[t].DType(), got[t].Shape(), want[t].DType(), want[t].Shape())
		}
		a, b, size := got[t].Bytes(), want[t].Bytes(), got[t].DType().Size()
		for i := 0; i < len(a); i += size {
			if !bytes.Equal(a[i:i+size], b[i:i+size]) {
				return fmt.Errorf("%s: element %d of tensor %d, %v of %d, is %x, want %x", what, i/size, t, got[t].DType(), got[t].Len(), a[i:i+size], b[i:i+size])
			}
		}
	}
	return nil
}

func clones(in []*tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(in))
	for t := range in {
		out[t] = in[t].Clone()
	}
	return out
}

// spoiled are tensors of the same dtypes and shapes with other content.
func spoiled(in []*tensor.Tensor) []*tensor.Tensor {
	out := clones(in)
	for _, t := range out {
		for i := range t.Bytes() {
			t.Bytes()[i] = 1
		}
	}
	return out
}

// shardOf is a rank's part of a tensor of one dimension, padded with zeros.
func shardOf(t *tensor.Tensor, rank, n int) *tensor.Tensor {
	per := (t.Len() + n - 1) / n
	out, err := tensor.New(t.DType(), per)
	if err != nil {
		panic(err)
	}
	size := t.DType().Size()
	copy(out.Bytes(), t.Bytes()[min(rank*per*size, len(t.Bytes())):])
	return out
}

// shaped is the memory of a tensor in another shape.
func shaped(t *tensor.Tensor, shape ...int) *tensor.Tensor {
	out, err := t.Reshape(shape...)
	if err != nil {
		panic(err)
	}
	return out
}

// joinedTensor is the content of several tensors, one after the other, in a shape.
func joinedTensor(dtype tensor.DType, parts [][]byte, shape ...int) *tensor.Tensor {
	out, err := tensor.View(dtype, shape, slices.Concat(parts...))
	if err != nil {
		panic(err)
	}
	return out
}

// manyCase is the tensors of all ranks, [rank][tensor], and their reduction.
type manyCase struct {
	op   gcl.Operator
	in   [][]*tensor.Tensor
	want []*tensor.Tensor // of an all-reduce; nil: each rank's own
}

// newManyCase makes a case of types that the operator takes.
func newManyCase(op gcl.Operator, n int, sizes []int) manyCase {
	x := manyCase{op: op, in: make([][]*tensor.Tensor, n)}
	all := slices.DeleteFunc(kinds(), func(k kind) bool { return !takes(op, k.dtype) })
	for i, size := range sizes {
		in, want := all[i%len(all)].reduction(op, n, size)
		for r := range in {
			x.in[r] = append(x.in[r], in[r])
		}
		if want != nil {
			x.want = append(x.want, want)
		}
	}
	return x
}

// manySizes are the lengths of the tensors of a case: every special one, in an order that goes with no order of the
// types, and random ones.
func manySizes(r *rand.Rand, n int) []int {
	sizes := []int{0, 1, n - 1, n, n + 1, 4*n + 3, 0, 97, 8 * n, 3001}
	for range r.IntN(8) {
		sizes = append(sizes, r.IntN(300))
	}
	r.Shuffle(len(sizes), func(i, j int) { sizes[i], sizes[j] = sizes[j], sizes[i] })
	return sizes
}

// manyOptions are the ways to carry out a call that the tests of several tensors try.
func manyOptions(n int) []gcl.Options {
	if n <= 4 || n == 8 && !underRace {
		return bothWays()
	}
	return []gcl.Options{
		{}, {Method: methods.ClockwiseRing, Implementation: gcl.Syncful}, {Method: methods.Direct, Implementation: gcl.Syncless},
		{Method: methods.QuadDirectionalRing}, {Method: methods.RecursiveDoubling}, {Method: methods.MeetInMiddleRing},
	}
}

// TestManyMatrix tries every collective, method and operator on tensors of mixed types and lengths against the dumb
// implementation, in all forms.
func TestManyMatrix(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	tried := 0
	for _, n := range manyGroups() {
		var cases []manyCase
		for op := gcl.Add; op <= gcl.Local; op++ {
			cases = append(cases, newManyCase(op, n, manySizes(random, n)))
		}
		cases = append(cases, newManyCase(gcl.Add, n, nil), newManyCase(gcl.Add, n, []int{0, 0}), newManyCase(gcl.Max, n, []int{5}))
		large := []int{9 * 4096, 3, 20011, 0, 40009, n, 33333, 50001} // of which most have messages of their own
		switch {
		case n == 2 || n == 3:
			cases = append(cases, newManyCase(gcl.Add, n, large), newManyCase(gcl.Mean, n, large), newManyCase(gcl.SquareAdd, n, large[:3]))
		case n == 8 && !underRace:
			cases = append(cases, newManyCase(gcl.Add, n, large[1:]))
		}
		for _, reproducible := range []bool{false, true} {
			t.Run(fmt.Sprintf("n=%d/reproducible=%v", n, reproducible), func(t *testing.T) {
				replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
					for _, o := range manyOptions(n) {
						o.Reproducible = reproducible
						c := withOptions(c, o)
						for i, x := range cases {
							err := x.tryReductions(ctx, c)
							if err == nil && !reproducible && (i < 3 || len(x.in[0]) == 7 || len(x.in[0]) == 8) {
								err = x.tryMoves(ctx, c)
							}
							if err != nil {
								return fmt.Errorf("method=%v implementation=%v op=%v: %w", o.Method, o.Implementation, x.op, err)
							}
						}
					}
					return nil
				})
				tried += len(manyOptions(n)) * len(cases)
			})
		}
	}
	t.Logf("%d sets of tensors", tried)
}

// tryReductions tries all forms of all-reduce and reduce-scatter.
func (x manyCase) tryReductions(ctx context.Context, c *gcl.Comm) error {
	n, rank := c.Size(), c.Rank()
	in := clones(x.in[rank])
	want := x.want
	if want == nil {
		want = x.in[rank]
	}
	var shards []*tensor.Tensor
	for _, t := range want {
		shards = append(shards, shardOf(t, rank, n))
	}
	out, err := gcl.AllReduceTensors(ctx, c, in, x.op)
	to := spoiled(in)
	scattered, err2 := gcl.ReduceScatterTensors(ctx, c, in, x.op)
	scatteredTo := spoiled(shards)
	if err := errors.Join(err, err2,
		gcl.AllReduceTensorsTo(ctx, c, to, in, x.op),
		gcl.ReduceScatterTensorsTo(ctx, c, scatteredTo, in, x.op)); err != nil {
		return err
	}
	if err := errors.Join(
		sameTensors("all-reduce", out, want),
		sameTensors("all-reduce to", to, want),
		sameTensors("reduce-scatter", scattered, shards),
		sameTensors("reduce-scatter to", scatteredTo, shards),
		sameTensors("the input", in, x.in[rank]),
		gcl.AllReduceTensorsInPlace(ctx, c, in, x.op),
		sameTensors("all-reduce in place", in, want),
	); err != nil {
		return err
	}
	// Of the slices that hold float32, once more in the typed form, mixed: some in place, some apart, and shards in
	// their own places.
	var dst, src, own, padded [][]float32
	var wants, wantShards []*tensor.Tensor
	for t := range want {
		data, err := tensor.Of[float32](x.in[rank][t])
		if err != nil {
			continue
		}
		s := slices.Clone(data)
		src, wants, wantShards = append(src, s), append(wants, want[t]), append(wantShards, shards[t])
		if t%2 == 0 {
			s = make([]float32, len(s))
		}
		dst = append(dst, s)
		per := (len(data) + n - 1) / n
		whole := append(slices.Clone(data), make([]float32, n*per-len(data))...)
		padded, own = append(padded, whole[:len(data)]), append(own, whole[rank*per:(rank+1)*per])
	}
	typed, err := gcl.AllReduceMany(ctx, c, src, x.op)
	if err := errors.Join(err, gcl.AllReduceManyTo(ctx, c, dst, src, x.op), gcl.ReduceScatterManyTo(ctx, c, own, padded, x.op)); err != nil {
		return err
	}
	return errors.Join(
		sameTensors("slices, all-reduce", flats(typed), wants),
		sameTensors("slices, all-reduce to", flats(dst), wants),
		sameTensors("slices, reduce-scatter to their own places", flats(own), wantShards),
		gcl.AllReduceManyInPlace(ctx, c, typed, gcl.Local), // which leaves them as they are
		sameTensors("slices, Local", flats(typed), wants),
	)
}

func flats[T tensor.Element](s [][]T) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, data := range s {
		out = append(out, flat(data))
	}
	return out
}

// tryMoves tries all forms of the other three.
func (x manyCase) tryMoves(ctx context.Context, c *gcl.Comm) error {
	n, rank := c.Size(), c.Rank()
	in := clones(x.in[rank])
	var gathered, own, places, toAll, swapped []*tensor.Tensor
	for t, mine := range in {
		var parts, blocks [][]byte
		size := mine.DType().Size()
		part := mine.Len() / n * size // of an all-to-all
		for r := range n {
			parts = append(parts, x.in[r][t].Bytes())
			blocks = append(blocks, x.in[r][t].Bytes()[rank*part:(rank+1)*part])
		}
		all := joinedTensor(mine.DType(), parts, n, mine.Len())
		gathered = append(gathered, all)
		whole := spoiled([]*tensor.Tensor{all})[0]
		copy(whole.Bytes()[rank*len(mine.Bytes()):], mine.Bytes())
		places = append(places, whole)
		place, err := tensor.View(mine.DType(), mine.Shape(), whole.Bytes()[rank*len(mine.Bytes()):][:len(mine.Bytes())])
		if err != nil {
			return err
		}
		own = append(own, place)
		toAll = append(toAll, joinedTensor(mine.DType(), [][]byte{mine.Bytes()[:n*part]}, n, part/size))
		swapped = append(swapped, joinedTensor(mine.DType(), blocks, n, part/size))
	}
	out, err := gcl.AllGatherTensors(ctx, c, in)
	to := spoiled(gathered)
	if err := errors.Join(err, gcl.AllGatherTensorsTo(ctx, c, to, in), gcl.AllGatherTensorsTo(ctx, c, places, own)); err != nil {
		return err
	}
	if err := errors.Join(sameTensors("all-gather", out, gathered), sameTensors("all-gather to", to, gathered), sameTensors("all-gather of the own places", places, gathered)); err != nil {
		return err
	}

	kept := clones(toAll)
	out, err = gcl.AllToAllTensors(ctx, c, toAll)
	to = spoiled(toAll)
	if err := errors.Join(err, gcl.AllToAllTensorsTo(ctx, c, to, toAll),
		sameTensors("all-to-all", out, swapped), sameTensors("all-to-all to", to, swapped), sameTensors("the input of an all-to-all", toAll, kept)); err != nil {
		return err
	}
	if rank%2 == 0 { // each rank may choose
		err = gcl.AllToAllTensorsInPlace(ctx, c, toAll)
	} else {
		toAll, err = gcl.AllToAllTensors(ctx, c, toAll)
	}
	if err := errors.Join(err, sameTensors("all-to-all in place", toAll, swapped)); err != nil {
		return err
	}

	for _, root := range []int{0, n - 1} {
		out, err := gcl.BroadcastTensors(ctx, c, in, root)
		to, inPlace := spoiled(in), clones(in)
		if err := errors.Join(err, gcl.BroadcastTensorsTo(ctx, c, to, in, root), gcl.BroadcastTensorsInPlace(ctx, c, inPlace, root)); err != nil {
			return fmt.Errorf("root %d: %w", root, err)
		}
		if err := errors.Join(
			sameTensors("broadcast", out, x.in[root]), sameTensors("broadcast to", to, x.in[root]),
			sameTensors("broadcast in place", inPlace, x.in[root]), sameTensors("the input of a broadcast", in, x.in[rank]),
		); err != nil {
			return fmt.Errorf("root %d: %w", root, err)
		}
	}
	return nil
}
