package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// All forms of the collectives on one tensor, compared with package oracle.

// check returns an error if got is not want, to the bit.
func check[T tensor.Element](what string, got, want []T) error { return oracle.Check(what, got, want) }

// same reports the first element in which two slices differ, or -1: bits, not values.
func same[T tensor.Element](a, b []T) int {
	_, first := oracle.Differ(a, b)
	return first
}

// named is an operator as package oracle has it.
func named(op gcl.Operator) oracle.Operator {
	name, _, _ := strings.Cut(op.String(), "_of_")
	return oracle.Operator(name)
}

// inputs makes the data of all ranks.
func inputs[T tensor.Element](op gcl.Operator, n, size int) [][]T {
	return oracle.Inputs[T](named(op), n, size)
}

// operators lists the operators that take T, and the one of this program; under the race detector that of two types.
func operators[T tensor.Element]() []gcl.Operator {
	if d := tensor.DTypeOf[T](); underRace && d != tensor.F32 && d != tensor.U64 {
		return builtins[T]()
	}
	return append(builtins[T](), ownOperator[T]())
}

// builtins lists the library's operators that take T.
func builtins[T tensor.Element]() (out []gcl.Operator) {
	for op := gcl.Add; op <= gcl.Local; op++ {
		if named(op).Takes(tensor.DTypeOf[T]()) {
			out = append(out, op)
		}
	}
	return out
}

// reduceCase is the data of all ranks, and what an all-reduce and a reduce-scatter must give each. The replicas of a
// test share the slices, and only read them.
type reduceCase[T tensor.Element] struct {
	op                gcl.Operator
	in, whole, shards [][]T // by rank
}

func newReduceCase[T tensor.Element](op gcl.Operator, in [][]T) reduceCase[T] {
	return reduceCase[T]{op, in, oracle.AllReduce(named(op), in),
		oracle.Outputs(oracle.Call{Collective: schedule.ReduceScatter, Operator: named(op)}, in)}
}

// try tries the forms of all-reduce and reduce-scatter.
func (x reduceCase[T]) try(ctx context.Context, c *gcl.Comm) error {
	rank, op := c.Rank(), x.op
	data, want, shard := x.in[rank], x.whole[rank], x.shards[rank]
	in := lent(c, data)
	out, err := gcl.AllReduce(ctx, c, in, op)
	if err != nil {
		return err
	}
	to, scatteredTo := zeros[T](c, len(want)), zeros[T](c, len(shard))
	scattered, err := gcl.ReduceScatter(ctx, c, in, op)
	if err := errors.Join(err,
		gcl.AllReduceTo(ctx, c, to, in, op),
		gcl.ReduceScatterTo(ctx, c, scatteredTo, in, op),
		check("all-reduce", out, want),
		check("all-reduce to", to, want),
		check("reduce-scatter", scattered, shard),
		check("reduce-scatter to", scatteredTo, shard),
		check("the input of an all-reduce", in, data),
	); err != nil {
		return err
	}
	if err := gcl.AllReduceInPlace(ctx, c, in, op); err != nil {
		return err
	}
	larger := zeros[T](c, c.Size()*len(shard))
	copy(larger, data)
	own := larger[rank*len(shard):][:len(shard)]
	return errors.Join(
		check("all-reduce in place", in, want),
		gcl.ReduceScatterTo(ctx, c, own, larger[:len(data)], op),
		check("reduce-scatter to the own shard", own, shard),
	)
}

// moveCase is the data of all ranks, and what the collectives that reduce nothing must give each. An all-to-all takes
// as much of the data as can be divided.
type moveCase[T tensor.Element] struct {
	in, gathered, blocks, swapped [][]T // by rank
}

func newMoveCase[T tensor.Element](in [][]T) moveCase[T] {
	x := moveCase[T]{in: in, gathered: oracle.Outputs(oracle.Call{Collective: schedule.AllGather}, in)}
	for _, data := range in {
		x.blocks = append(x.blocks, data[:len(data)/len(in)*len(in)])
	}
	x.swapped = oracle.Outputs(oracle.Call{Collective: schedule.AllToAll}, x.blocks)
	return x
}

// try tries the forms of all-gather, all-to-all and broadcast, the last from three roots.
func (x moveCase[T]) try(ctx context.Context, c *gcl.Comm) error {
	n, rank := c.Size(), c.Rank()
	in, everything := lent(c, x.in[rank]), x.gathered[rank]
	size := len(in)
	gathered, err := gcl.AllGather(ctx, c, in)
	gatheredTo := zeros[T](c, n*size)
	gatheredOwn := zeros[T](c, n*size)
	copy(gatheredOwn[rank*size:], in)
	if err := errors.Join(err,
		gcl.AllGatherTo(ctx, c, gatheredTo, in),
		gcl.AllGatherTo(ctx, c, gatheredOwn, gatheredOwn[rank*size:(rank+1)*size]),
		check("all-gather", gathered, everything),
		check("all-gather to", gatheredTo, everything),
		check("all-gather of the own shard", gatheredOwn, everything),
	); err != nil {
		return err
	}

	toAll, swapped := lent(c, x.blocks[rank]), x.swapped[rank]
	out, err := gcl.AllToAll(ctx, c, toAll)
	to := zeros[T](c, len(toAll))
	if err := errors.Join(err, gcl.AllToAllTo(ctx, c, to, toAll)); err != nil {
		return err
	}
	inPlace := lent(c, toAll)
	if rank%2 == 0 { // each rank may choose
		err = gcl.AllToAllInPlace(ctx, c, inPlace)
	} else {
		inPlace, err = gcl.AllToAll(ctx, c, inPlace)
	}
	if err := errors.Join(err,
		check("all-to-all", out, swapped),
		check("all-to-all to", to, swapped),
		check("all-to-all in place", inPlace, swapped),
		check("the input of an all-to-all", toAll, x.blocks[rank]),
	); err != nil {
		return err
	}

	for _, root := range []int{0, n - 1, n / 2} {
		sent, err := gcl.Broadcast(ctx, c, in, root)
		to := zeros[T](c, size)
		inPlace := lent(c, in)
		if err := errors.Join(err,
			gcl.BroadcastTo(ctx, c, to, in, root),
			gcl.BroadcastInPlace(ctx, c, inPlace, root),
			check("broadcast", sent, x.in[root]),
			check("broadcast to", to, x.in[root]),
			check("broadcast in place", inPlace, x.in[root]),
			check("the input of a broadcast", in, x.in[rank]),
		); err != nil {
			return fmt.Errorf("root %d: %w", root, err)
		}
	}
	return nil
}

// zeros is a buffer of a case: from Alloc where replicas reach no other memory, but for some buffers of some replicas.
func zeros[T tensor.Element](c *gcl.Comm, n int) []T {
	if !gcl.Opens(c) || (n+c.Rank())%7 == 3 {
		return make([]T, n)
	}
	b, err := gcl.Alloc[T](c, n)
	if err == nil {
		err = gcl.Free(c, b) // it stays open for as long as there is a reference
	}
	if err != nil {
		panic(err)
	}
	return b
}

// lent is a copy of data in a buffer of a case.
func lent[T tensor.Element](c *gcl.Comm, data []T) []T {
	b := zeros[T](c, len(data))
	copy(b, data)
	return b
}
