package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// manyCountsCase is cases of one type whose operands go together.
type manyCountsCase[T tensor.Element] []countsCase[T]

// newManyCountsCase has operands with small parts, which share messages, with large ones, and with none.
func newManyCountsCase[T tensor.Element](op gcl.Operator, n int) (out manyCountsCase[T]) {
	for _, counts := range countsFor(n) {
		out = append(out, newCountsCase[T](op, n-1, counts))
	}
	large := make([]int, n)
	large[n/2], large[0] = 9001, 3000
	return append(out, newCountsCase[T](op, n-1, large))
}

// lists are the counts of all operands.
func (x manyCountsCase[T]) lists() (out [][]int) {
	for _, one := range x {
		out = append(out, one.counts)
	}
	return out
}

// of is one slice of each operand, on a rank, copied.
func (x manyCountsCase[T]) of(rank int, which func(*countsCase[T]) [][]T) (out [][]T) {
	for i := range x {
		out = append(out, slices.Clone(which(&x[i])[rank]))
	}
	return out
}

// roomLike is room for results.
func roomLike[T tensor.Element](want [][]T) (out [][]T) {
	for _, w := range want {
		out = append(out, make([]T, len(w)))
	}
	return out
}

// checkMany compares the results of all operands.
func checkMany[T tensor.Element](what string, got, want [][]T) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d results, want %d", what, len(got), len(want))
	}
	for i := range want {
		if err := check(fmt.Sprintf("%s, operand %d", what, i), got[i], want[i]); err != nil {
			return err
		}
	}
	return nil
}

// try tries the forms on several slices.
func (x manyCountsCase[T]) try(ctx context.Context, c *gcl.Comm) error {
	rank, root, op, counts := c.Rank(), x[0].root, x[0].op, x.lists()
	ins := x.of(rank, func(o *countsCase[T]) [][]T { return o.in })
	parts := x.of(rank, func(o *countsCase[T]) [][]T { return o.parts })
	gathered := x.of(rank, func(o *countsCase[T]) [][]T { return o.gathered })
	shards := x.of(rank, func(o *countsCase[T]) [][]T { return o.shards })
	atRoot := x.of(rank, func(o *countsCase[T]) [][]T { return o.atRoot })
	dealt := x.of(rank, func(o *countsCase[T]) [][]T { return o.dealt })
	gatheredTo, shardsTo, atRootTo, dealtTo := roomLike(gathered), roomLike(shards), roomLike(atRoot), roomLike(dealt)
	datas := make([][]T, len(x))
	if rank == root {
		datas = ins
	}
	if err := errors.Join(batchVTo(ctx, c, schedule.AllGather, gatheredTo, parts, 0, 0, counts),
		batchVTo(ctx, c, schedule.ReduceScatter, shardsTo, ins, op, 0, counts),
		batchVTo(ctx, c, schedule.Gather, atRootTo, parts, 0, root, counts),
		batchVTo(ctx, c, schedule.Scatter, dealtTo, datas, 0, root, counts),
		checkMany("all-gather", gatheredTo, gathered), checkMany("reduce-scatter", shardsTo, shards),
		checkMany("gather", atRootTo, atRoot), checkMany("scatter", dealtTo, dealt),
	); err != nil {
		return err
	}
	return x.tryBlocks(ctx, c)
}

// tryBlocks tries the all-to-all on several slices.
func (x manyCountsCase[T]) tryBlocks(ctx context.Context, c *gcl.Comm) error {
	rank := c.Rank()
	blocks := x.of(rank, func(o *countsCase[T]) [][]T { return o.blocks })
	swapped := x.of(rank, func(o *countsCase[T]) [][]T { return o.swapped })
	var sent, received [][]int
	for i := range x {
		sent, received = append(sent, x[i].sent[rank]), append(received, x[i].received(rank))
	}
	to := roomLike(swapped)
	err1 := batchVTo(ctx, c, schedule.AllToAll, to, blocks, 0, 0, sent, received)
	equal := newMoveCase(inputs[T](gcl.Local, c.Size(), 2*c.Size()))
	two := slices.Repeat([]int{2}, c.Size())
	inPlace := [][]T{slices.Clone(equal.blocks[rank]), nil, slices.Clone(equal.blocks[rank])}
	same := [][]int{two, make([]int, c.Size()), two}
	want := [][]T{equal.swapped[rank], nil, equal.swapped[rank]}
	err2 := batchVTo(ctx, c, schedule.AllToAll, inPlace, inPlace, 0, 0, same, same)
	return errors.Join(err1, err2, checkMany("all-to-all", to, swapped),
		checkMany("all-to-all in place", inPlace, want))
}

// manyCountsWays are those that lay out several operands differently.
func manyCountsWays() []gcl.Options {
	return []gcl.Options{{}, {Implementation: gcl.Syncless},
		{Method: methods.ClockwiseRing, Implementation: gcl.Syncful},
		{Method: methods.QuadDirectionalRing, Implementation: gcl.Syncless}, {StageFragments: true},
		{StageFragments: true, Implementation: gcl.Syncless}, {Reproducible: true},
		{Reproducible: true, Method: methods.ClockwiseRing, MaxBytesPerTile: 100}}
}

// TestVFormsMany tries the forms on several slices.
func TestVFormsMany(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		sums, means := newManyCountsCase[float32](gcl.Add, n), newManyCountsCase[tensor.BFloat16](gcl.Mean, n)
		bits := newManyCountsCase[bool](gcl.LogicalOr, n)
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			for _, o := range manyCountsWays() {
				c := withOptions(c, o)
				for range 2 {
					if err := errors.Join(sums.try(ctx, c), means.try(ctx, c), bits.try(ctx, c)); err != nil {
						return fmt.Errorf("%+v: %w", o, err)
					}
				}
			}
			return nil
		})
	}
}

// TestVFormsOfMoreOperands than there are messages of their own for where they are packed.
func TestVFormsOfMoreOperands(t *testing.T) {
	const n, operands = 3, 300
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		var dst, src, want [][]int16
		var sent, received [][]int
		for i := range int16(operands) {
			mark := func(from, to int) int16 { return i*100 + int16(10*from+to) }
			var in, out []int16
			var to, from []int
			for peer := range n {
				to, from = append(to, (int(i)+peer)%2), append(from, (int(i)+c.Rank())%2)
				in = append(in, slices.Repeat([]int16{mark(c.Rank(), peer)}, to[peer])...)
				out = append(out, slices.Repeat([]int16{mark(peer, c.Rank())}, from[peer])...)
			}
			dst, src, want = append(dst, make([]int16, len(out))), append(src, in), append(want, out)
			sent, received = append(sent, to), append(received, from)
		}
		return errors.Join(batchVTo(ctx, c, schedule.AllToAll, dst, src, 0, 0, sent, received),
			checkMany("all-to-all", dst, want))
	})
}

// rows makes a tensor of rows of two elements of one operand's slice, twice.
func rows[T tensor.Element](data []T) *tensor.Tensor {
	if data == nil {
		return nil
	}
	return must(tensor.FromSlice(slices.Clone(data), len(data)/2, 1, 2))
}

// doubled are counts of a case of elements for tensors of rows of two: each count is even.
func doubled(counts []int) (elements []int) {
	for _, n := range counts {
		elements = append(elements, 2*n)
	}
	return elements
}

// TestVFormsTensors tries tensors, whose counts are of rows: one with Do, and Batches of several, also of several
// types.
func TestVFormsTensors(t *testing.T) {
	const n, root = 3, 1
	counts := []int{2, 0, 5}
	x := newCountsCase[float32](gcl.Add, root, doubled(counts))
	y := newCountsCase[int16](gcl.Add, root, doubled(counts))
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		for _, o := range []gcl.Options{{}, {Method: methods.ClockwiseRing}} {
			c := withOptions(c, o)
			for _, collective := range []schedule.Collective{schedule.AllGather, schedule.ReduceScatter,
				schedule.Gather, schedule.Scatter, schedule.AllToAll} {
				if err := errors.Join(tryTensorsV(ctx, c, collective, &x, &y, counts)); err != nil {
					return fmt.Errorf("%v, %+v: %w", collective, o, err)
				}
			}
		}
		return nil
	})
}

// operandV is what a rank gives to a collective by counts and gets.
func operandV[T tensor.Element](c *gcl.Comm, collective schedule.Collective, x *countsCase[T]) (src, want []T) {
	rank := c.Rank()
	none := func(s []T) []T { // what does not count on this rank
		if rank != x.root {
			return nil
		}
		return s
	}
	switch collective {
	case schedule.AllGather:
		return x.parts[rank], x.gathered[rank]
	case schedule.ReduceScatter:
		return x.in[rank], x.shards[rank]
	case schedule.Gather:
		return x.parts[rank], none(x.atRoot[rank])
	case schedule.Scatter:
		return none(x.in[rank]), x.dealt[rank]
	}
	return x.blocks[rank], x.swapped[rank]
}

// halved is counts of elements as counts of rows of two.
func halved(counts []int) (out []int) {
	for _, n := range counts {
		out = append(out, n/2)
	}
	return out
}

func tryTensorsV(ctx context.Context, c *gcl.Comm, collective schedule.Collective, x *countsCase[float32],
	y *countsCase[int16], counts []int) error {
	src, want := operandV(c, collective, x)
	src2, want2 := operandV(c, collective, y)
	op, root := gcl.Operator(0), 0
	if collective == schedule.ReduceScatter {
		op = gcl.Add
	}
	if collective.Contract().Rooted() {
		root = x.root
	}
	lists := [][]int{counts}
	if collective == schedule.AllToAll {
		lists = [][]int{halved(x.sent[c.Rank()]), halved(x.received(c.Rank()))}
	}
	sameAs := func(w []float32) *tensor.Tensor {
		if w == nil {
			return nil
		}
		return rows(make([]float32, len(w)))
	}
	ok := func(what string, got *tensor.Tensor) error {
		if got == nil {
			if len(want) > 0 {
				return fmt.Errorf("%s: no result", what)
			}
			return nil
		}
		return check(what, must(tensor.Of[float32](got)), want)
	}
	in, out, outs := rows(src), sameAs(want), []*tensor.Tensor{sameAs(want), sameAs(want)}
	ins := []*tensor.Tensor{rows(src), rows(src)}
	err1 := c.Do(ctx, collective, out, in, op, root, lists...)
	var twice [][][]int
	for _, list := range lists {
		twice = append(twice, [][]int{list, list})
	}
	err2 := batchTensorsVTo(ctx, c, collective, outs, ins, op, root, twice...)
	if collective == schedule.AllToAll {
		data, wantOne := make([]float32, 2*c.Size()), make([]float32, 2*c.Size())
		ones := slices.Repeat([]int{1}, c.Size())
		data[0] = float32(c.Rank())
		place := rows(data)
		if c.Rank() == 0 {
			for r := range c.Size() {
				wantOne[2*r] = float32(r)
			}
		}
		err2 = errors.Join(err2, c.Do(ctx, collective, place, place, 0, 0, ones, ones),
			check("in place", must(tensor.Of[float32](place)), wantOne))
	}
	if err := errors.Join(err1, err2, ok("Do", out), ok("tensors", outs[1])); err != nil {
		return err
	}
	b := c.Batch(collective, op, root)
	batched, wide := sameAs(want), make([]int16, len(want2))
	slices2 := [][]int{x.counts}
	if collective == schedule.AllToAll {
		slices2 = [][]int{x.sent[c.Rank()], x.received(c.Rank())}
	}
	b.AppendTensorV(batched, rows(src), lists...)
	if err := b.Run(ctx); err != nil || ok("a Batch of one", batched) != nil {
		return errors.Join(err, ok("a Batch of one", batched))
	}
	gcl.AppendV(b, wide, src2, slices2...)
	for range 2 {
		clear(wide)
		if err := errors.Join(b.Run(ctx), ok("a Batch", batched)); err != nil {
			return err
		}
		if want2 != nil {
			if err := check("a Batch, the second", wide, want2); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestBatchByCountsIsTheCall: a Batch of one operand by counts, Do and the call on a slice are one call to each other.
func TestBatchByCountsIsTheCall(t *testing.T) {
	counts := []int{2, 1, 0}
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		mine, all := make([]float32, counts[c.Rank()]), make([]float32, 3)
		switch c.Rank() {
		case 0:
			return gcl.AllGatherVTo(ctx, c, all, mine, counts)
		case 1:
			b := c.Batch(schedule.AllGather, 0, 0)
			gcl.AppendV(b, all, mine, counts)
			return b.Run(ctx)
		}
		return c.Do(ctx, schedule.AllGather, flat(all), must(tensor.FromSlice(mine, 0)), 0, 0, counts)
	})
}

// TestBadCountsOfMany: what is wrong with one of several operands, or with their number.
func TestBadCountsOfMany(t *testing.T) {
	const n = 2
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		one, two, none := []int{1, 1}, []int{2, 2}, slices.Repeat([][]int{{0, 0}}, 1<<16+1)
		f := func(n int) []float32 { return make([]float32, n) }
		shaped := func(dims ...int) *tensor.Tensor { return must(tensor.New(tensor.F32, dims...)) }
		run := func(collective schedule.Collective, add func(b *gcl.Batch)) error {
			b := c.Batch(collective, 0, 0)
			add(b)
			return b.Run(ctx)
		}
		for want, err := range map[string]error{
			"operand 1: the input has 1 elements, want 2: the count of rank": batchVTo(ctx, c, schedule.AllGather,
				[][]float32{f(2), f(4)}, [][]float32{f(1), f(1)}, 0, 0, [][]int{one, two}),
			"a broadcast takes no counts: its ranks have no parts": c.Do(ctx, schedule.Broadcast, shaped(2), shaped(2), 0,
				0, one),
			"2 lists of counts, want one": c.Do(ctx, schedule.AllGather, shaped(2), shaped(1), 0, 0, one, one),
			"1 lists of counts, want two: of what is sent and of what is received": c.Do(ctx, schedule.AllToAll, shaped(2),
				shaped(2), 0, 0, one),
			"the input: counts are of its first dimension, and it has none": c.Do(ctx, schedule.AllGather, shaped(2),
				shaped(), 0, 0, one),
			"the input: it is nil":             c.Do(ctx, schedule.AllGather, shaped(2), nil, 0, 0, one),
			"the input: it is the zero Tensor": c.Do(ctx, schedule.AllGather, shaped(2), &tensor.Tensor{}, 0, 0, one),
			"the destination: it is nil":       c.Do(ctx, schedule.AllGather, nil, shaped(1), 0, 0, one),
			"the destination is float32 of shape (2, 4), want float32 and, but for the first dimension, the shape (1, 3)": c.Do(
				ctx, schedule.AllGather, shaped(2, 4), shaped(1, 3), 0, 0, one),
			"the destination: counts are of its first dimension": c.Do(ctx, schedule.AllGather, shaped(), shaped(1), 0, 0,
				one),
			"want 6: the sum of the counts": c.Do(ctx, schedule.AllGather, shaped(3, 3), shaped(1, 3), 0, 0, one),
			"operand 1: a Batch has counts for all of its operands or for none": run(schedule.AllGather, func(b *gcl.Batch) {
				gcl.AppendV(b, f(2), f(1), one)
				gcl.Append(b, f(2), f(1))
			}),
			"operand 1: a Batch has counts for": run(schedule.AllToAll, func(b *gcl.Batch) {
				gcl.Append(b, f(2), f(2))
				gcl.AppendV(b, f(2), f(2), one, one)
			}),
			"operand 0: 0 lists of counts, want one": run(schedule.AllGather, func(b *gcl.Batch) { gcl.AppendV(b, f(2), f(1)) }),
			"65537 tensors in an all-to-all by counts, want at most 65536": batchVTo(ctx, c, schedule.AllToAll,
				make([][]bool, 1<<16+1), make([][]bool, 1<<16+1), 0, 0, none, none),
		} {
			if why := isArgumentError(err); why != nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%v, want an error that says %q", err, want)
			}
		}
		return goodCall(ctx, c)
	})
}

// TestCountsMismatchOfMany: several operands whose counts differ in the last alone.
func TestCountsMismatchOfMany(t *testing.T) {
	for _, form := range []string{"slices", "tensors"} {
		errs := failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			counts := [][]int{{1, 1, 1}, {1, 1, 1}}
			if c.Rank() == 0 {
				counts[1] = []int{1, 0, 2}
			}
			in, out := [][]float32{{1}, make([]float32, counts[1][c.Rank()])}, [][]float32{{0, 0, 0}, {0, 0, 0}}
			var err error
			switch form {
			case "slices":
				err = batchVTo(ctx, c, schedule.AllGather, out, in, 0, 0, counts)
			case "tensors":
				err = batchTensorsVTo(ctx, c, schedule.AllGather, flats(out), flats(in), 0, 0, counts)
			}
			return errors.Join(err, last(ctx, c))
		})
		for r, err := range errs {
			if !errors.Is(err, gcl.ErrMismatch) ||
				!strings.Contains(err.Error(), ": counts, tensors, mapping or options differ between") ||
				!strings.Contains(err.Error(), "(tensors, float32 x 6 in all by counts, ") {
				t.Errorf("%s: replica %d: %v", form, r, err)
			}
		}
	}
}
