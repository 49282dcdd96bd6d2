package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// kind is an element type as the tests of calls on several tensors see it, whatever type it is.
type kind struct {
	dtype tensor.DType

	// single is one call on one tensor, result returned: all-reduce, or with scatter a reduce-scatter.
	single func(ctx context.Context, c *gcl.Comm, in *tensor.Tensor, op gcl.Operator, scatter bool) (*tensor.Tensor,
		error)

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

func kindOf[T tensor.Element]() kind {
	return kind{
		dtype: tensor.DTypeOf[T](),
		single: func(ctx context.Context, c *gcl.Comm, in *tensor.Tensor, op gcl.Operator,
			scatter bool) (*tensor.Tensor, error) {
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

func floatKind[T tensor.Element](f float[T]) kind {
	k := kindOf[T]()
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
		floatKind(single()), floatKind(half()), kindOf[int8](), floatKind(double()), floatKind(brain()),
		kindOf[int16](), kindOf[uint64](),
		kindOf[uint8](), kindOf[int32](), kindOf[uint16](), kindOf[int64](), kindOf[uint32](), kindOf[bool](),
	}
}

// sameTensors returns an error unless got are want, in dtype, shape and bits.
func sameTensors(what string, got, want []*tensor.Tensor) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d tensors, want %d", what, len(got), len(want))
	}
	for t := range got {
		if err := oracle.CheckTensor(fmt.Sprintf("%s: tensor %d of %v", what, t, got[t].DType()), got[t],
			want[t]); err != nil {
			return err
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

// shaped is the memory of a tensor in another shape.
func shaped(t *tensor.Tensor, shape ...int) *tensor.Tensor {
	out, err := t.Reshape(shape...)
	if err != nil {
		panic(err)
	}
	return out
}

// manyCase is the tensors of all ranks, and what each collective must give: [rank][tensor]. An all-to-all takes as much
// of a tensor as can be divided.
type manyCase struct {
	op                        gcl.Operator
	in, whole, shards         [][]*tensor.Tensor
	gathered, blocks, swapped [][]*tensor.Tensor
}

// newManyCase makes a case of types that the operator takes.
func newManyCase(op gcl.Operator, n int, sizes []int) manyCase {
	x := manyCase{op: op}
	all := slices.DeleteFunc(kinds(), func(k kind) bool { return !named(op).Takes(k.dtype) })
	for _, list := range []*[][]*tensor.Tensor{&x.in, &x.whole, &x.shards, &x.gathered, &x.blocks, &x.swapped} {
		*list = make([][]*tensor.Tensor, n)
	}
	for i, size := range sizes {
		in := oracle.InputTensors(all[i%len(all)].dtype, named(op), n, size)
		blocks := make([]*tensor.Tensor, n)
		for r := range in {
			blocks[r] = head(in[r], size/n*n)
		}
		add := func(list [][]*tensor.Tensor, tensors []*tensor.Tensor, shape ...int) {
			for r, t := range tensors {
				if shape != nil {
					t = shaped(t, shape...)
				}
				list[r] = append(list[r], t)
			}
		}
		outputs := func(c schedule.Collective, in []*tensor.Tensor) []*tensor.Tensor {
			return oracle.OutputTensors(oracle.Call{Collective: c, Operator: named(op)}, in)
		}
		add(x.in, in)
		add(x.whole, outputs(schedule.AllReduce, in))
		add(x.shards, outputs(schedule.ReduceScatter, in))
		add(x.gathered, outputs(schedule.AllGather, in), n, size)
		add(x.blocks, blocks, n, size/n)
		add(x.swapped, outputs(schedule.AllToAll, blocks), n, size/n)
	}
	return x
}

// head is the first elements of a tensor of one dimension, in its memory.
func head(t *tensor.Tensor, elements int) *tensor.Tensor {
	out, err := tensor.View(t.DType(), tensor.Shape{elements}, t.Bytes()[:elements*t.DType().Size()])
	if err != nil {
		panic(err)
	}
	return out
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
	if n <= 4 || *full {
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
		cases = append(cases, newManyCase(gcl.Add, n, nil), newManyCase(gcl.Add, n, []int{0, 0}),
			newManyCase(gcl.Max, n, []int{5}))
		// Some of these have messages of their own by every method.
		large := []int{4500 * n, 3, 1200*n + 11, 0, 16009, n, 3000 * n}
		switch {
		case underRace:
			cases = cases[:len(cases)/2]
			if n == 2 {
				cases = append(cases, newManyCase(gcl.Add, n, large[:3]))
			}
		case n == 2 || n == 3:
			cases = append(cases, newManyCase(gcl.Add, n, large), newManyCase(gcl.Mean, n, large),
				newManyCase(gcl.SquareAdd, n, large[:2]))
		case n == 8:
			cases = append(cases, newManyCase(gcl.Add, n, large[:4]))
		}
		for _, reproducible := range []bool{false, true} {
			t.Run(fmt.Sprintf("n=%d/reproducible=%v", n, reproducible), func(t *testing.T) {
				replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
					for _, o := range manyOptions(n) {
						o.Reproducible = reproducible
						c := withOptions(c, o)
						for i, x := range cases {
							err := x.tryReductions(ctx, c)
							if err == nil && !reproducible && (i < 3 || i >= 12) {
								err = x.tryMoves(ctx, c)
							}
							if err != nil {
								return fmt.Errorf("method=%v implementation=%v op=%v: %w",
									o.Method, o.Implementation, x.op, err)
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

// TestFewTensorsOfSeveralTypes: together they are so small that peer memory publishes them, and each type has a fold of
// its own.
func TestFewTensorsOfSeveralTypes(t *testing.T) {
	const n = 3
	everyMethod(t, n, newManyCase(gcl.Add, n, []int{7, 5, 9, 4, 3}).tryReductions)
}

// tryReductions tries all forms of all-reduce and reduce-scatter.
func (x manyCase) tryReductions(ctx context.Context, c *gcl.Comm) error {
	n, rank := c.Size(), c.Rank()
	in := clones(x.in[rank])
	want, shards := x.whole[rank], x.shards[rank]
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
	if err := errors.Join(err, gcl.AllReduceManyTo(ctx, c, dst, src, x.op),
		gcl.ReduceScatterManyTo(ctx, c, own, padded, x.op)); err != nil {
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
	gathered, toAll, swapped := x.gathered[rank], clones(x.blocks[rank]), x.swapped[rank]
	places := spoiled(gathered)
	var own []*tensor.Tensor
	for t, mine := range in {
		at := places[t].Bytes()[rank*len(mine.Bytes()):][:len(mine.Bytes())]
		copy(at, mine.Bytes())
		place, err := tensor.View(mine.DType(), mine.Shape(), at)
		if err != nil {
			return err
		}
		own = append(own, place)
	}
	out, err := gcl.AllGatherTensors(ctx, c, in)
	to := spoiled(gathered)
	if err := errors.Join(err, gcl.AllGatherTensorsTo(ctx, c, to, in),
		gcl.AllGatherTensorsTo(ctx, c, places, own)); err != nil {
		return err
	}
	if err := errors.Join(sameTensors("all-gather", out, gathered), sameTensors("all-gather to", to, gathered),
		sameTensors("all-gather of the own places", places, gathered)); err != nil {
		return err
	}

	kept := clones(toAll)
	to = spoiled(toAll)
	if err := errors.Join(batchTensorsTo(ctx, c, schedule.AllToAll, to, toAll, 0, 0),
		sameTensors("all-to-all", to, swapped),
		sameTensors("the input of an all-to-all", toAll, kept)); err != nil {
		return err
	}
	if rank%2 == 0 { // each rank may choose
		err = batchTensorsTo(ctx, c, schedule.AllToAll, toAll, toAll, 0, 0)
	} else {
		err = batchTensorsTo(ctx, c, schedule.AllToAll, to, toAll, 0, 0)
		toAll = to
	}
	if err := errors.Join(err, sameTensors("all-to-all in place", toAll, swapped)); err != nil {
		return err
	}

	for _, root := range []int{0, n - 1} {
		to, inPlace := spoiled(in), clones(in)
		if err := errors.Join(batchTensorsTo(ctx, c, schedule.Broadcast, to, in, 0, root),
			batchTensorsTo(ctx, c, schedule.Broadcast, inPlace, inPlace, 0, root)); err != nil {
			return fmt.Errorf("root %d: %w", root, err)
		}
		if err := errors.Join(
			sameTensors("broadcast", to, x.in[root]),
			sameTensors("broadcast in place", inPlace, x.in[root]),
			sameTensors("the input of a broadcast", in, x.in[rank]),
		); err != nil {
			return fmt.Errorf("root %d: %w", root, err)
		}
	}
	return nil
}
