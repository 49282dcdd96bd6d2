package gcl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

// number lists the element types that the generic code below can calculate with.
type number interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// elem says how the tests make and read values of an element type.
type elem[T tensor.Element] struct {
	of func(int) T
	to func(T) int64
}

func plain[T number]() elem[T] {
	return elem[T]{func(v int) T { return T(v) }, func(v T) int64 { return int64(v) }}
}

func f16() elem[tensor.Float16] {
	return elem[tensor.Float16]{func(v int) tensor.Float16 { return tensor.Float16FromFloat32(float32(v)) },
		func(v tensor.Float16) int64 { return int64(v.Float32()) }}
}

func bf16() elem[tensor.BFloat16] {
	return elem[tensor.BFloat16]{func(v int) tensor.BFloat16 { return tensor.BFloat16FromFloat32(float32(v)) },
		func(v tensor.BFloat16) int64 { return int64(v.Float32()) }}
}

func boolean() elem[bool] {
	return elem[bool]{func(v int) bool { return v%3 != 0 }, func(v bool) int64 {
		if v {
			return 1
		}
		return 0
	}}
}

// value is what replica r holds at index i in the tests of a reduction: small, different for neighbours and replicas,
// and such that every partial result is exact in every element type (bfloat16 holds integers up to 256, int8 wraps,
// which is exact too).
func value(op gcl.Operator, n, r, i int) int {
	switch op {
	case gcl.Mul: // of 32 factors few are not 1, so that the product stays small
		if (i+r)%(n+5) == 0 {
			return 3
		}
		if (i+2*r)%(2*n+3) == 1 {
			return 2
		}
		return 1
	case gcl.SquareAdd:
		return (i*7 + r*3) % 3
	case gcl.Mean: // the sum is a multiple of n where it must be
		return (i%5 + 1) * (r%2*2 + (n%2)*(1-r%2)) % 8
	case gcl.Min, gcl.Max:
		return (i*31 + r*17) % 101
	case gcl.LogicalAnd: // bool: v%3 != 0
		if (i+r)%(2*n) == 0 {
			return 0
		}
		return 1
	case gcl.LogicalOr:
		if (i+r)%(2*n) == 0 {
			return 1
		}
		return 0
	}
	return (i*13 + r*5 + i/8) % 8
}

// reduce is the dumb second implementation: the fold of all inputs in rank order, in int64, which holds every partial
// result exactly.
func reduce[T tensor.Element](e elem[T], op gcl.Operator, inputs [][]T) []T {
	out := make([]T, len(inputs[0]))
	for i := range out {
		acc := int64(0)
		for r, in := range inputs {
			v := e.to(in[i])
			if op == gcl.SquareAdd {
				v *= v
			}
			switch {
			case r == 0:
				acc = v
			case op == gcl.Add || op == gcl.Mean || op == gcl.SquareAdd:
				acc += v
			case op == gcl.Mul:
				acc *= v
			case op == gcl.Min && v < acc, op == gcl.Max && v > acc,
				op == gcl.LogicalAnd && v == 0, op == gcl.LogicalOr && v != 0:
				acc = v
			}
		}
		out[i] = exact(e, op, acc, len(inputs))
	}
	return out
}

// exact turns an exact result into an element. Integers wrap as Go's do; means are divided in the element's own type.
func exact[T tensor.Element](e elem[T], op gcl.Operator, v int64, n int) T {
	var t T
	switch p := any(&t).(type) {
	case *bool:
		*p = v != 0
	case *int8:
		*p = int8(v)
	case *int16:
		*p = int16(v)
	case *int32:
		*p = int32(v)
	case *int64:
		*p = v
	case *uint8:
		*p = uint8(v)
	case *uint16:
		*p = uint16(v)
	case *uint32:
		*p = uint32(v)
	case *uint64:
		*p = uint64(v)
	case *float32:
		*p = float32(v)
		if op == gcl.Mean {
			*p /= float32(n)
		}
	case *float64:
		*p = float64(v)
		if op == gcl.Mean {
			*p /= float64(n)
		}
	case *tensor.Float16:
		f := float32(v)
		if op == gcl.Mean {
			f /= float32(n)
		}
		*p = tensor.Float16FromFloat32(f)
	case *tensor.BFloat16:
		f := float32(v)
		if op == gcl.Mean {
			f /= float32(n)
		}
		*p = tensor.BFloat16FromFloat32(f)
	}
	return t
}

// same reports the first element in which two slices differ, or -1: bits, not values.
func same[T tensor.Element](a, b []T) int {
	if bytes.Equal(tensor.Bytes(a), tensor.Bytes(b)) {
		return -1
	}
	for i := range a {
		if !bytes.Equal(tensor.Bytes(a[i:i+1]), tensor.Bytes(b[i:i+1])) {
			return i
		}
	}
	return len(a)
}

// check returns an error if got is not want.
func check[T tensor.Element](what string, got, want []T) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d elements, want %d", what, len(got), len(want))
	}
	if i := same(got, want); i >= 0 {
		return fmt.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
	}
	return nil
}

// cases counts what the matrix tries.
type cases struct{ n int }

// operators lists the operators that take T.
func operators[T tensor.Element]() []gcl.Operator {
	switch d := tensor.DTypeOf[T](); {
	case d == tensor.Bool:
		return []gcl.Operator{gcl.LogicalAnd, gcl.LogicalOr, gcl.Local}
	case d.IsFloat():
		return []gcl.Operator{gcl.Add, gcl.Mean, gcl.Mul, gcl.Min, gcl.Max, gcl.SquareAdd, gcl.Local}
	}
	return []gcl.Operator{gcl.Add, gcl.Mul, gcl.Min, gcl.Max, gcl.SquareAdd, gcl.Local}
}

// inputs makes the data of all replicas.
func inputs[T tensor.Element](e elem[T], op gcl.Operator, n, size int) [][]T {
	in := make([][]T, n)
	for r := range in {
		in[r] = make([]T, size)
		for i := range in[r] {
			in[r][i] = e.of(value(op, n, r, i))
		}
	}
	return in
}

// TestMatrix tries every collective, method, operator, group size and length on float32 against the dumb
// implementation, in place and not. It tries every other type on groups of up to three, and on every third of the
// larger ones with some of the operators and lengths.
func TestMatrix(t *testing.T) {
	var total cases
	matrix(t, &total, plain[float32]())
	matrix(t, &total, plain[float64]())
	matrix(t, &total, f16())
	matrix(t, &total, bf16())
	matrix(t, &total, plain[int8]())
	matrix(t, &total, plain[int16]())
	matrix(t, &total, plain[int32]())
	matrix(t, &total, plain[int64]())
	matrix(t, &total, plain[uint8]())
	matrix(t, &total, plain[uint16]())
	matrix(t, &total, plain[uint32]())
	matrix(t, &total, plain[uint64]())
	matrix(t, &total, boolean())
	t.Logf("%d cases, each on every replica", total.n)
}

func matrix[T tensor.Element](t *testing.T, total *cases, e elem[T]) {
	d := tensor.DTypeOf[T]()
	for _, n := range matrixGroups(d) {
		for _, reproducible := range []bool{false, true} {
			if reproducible && n > 3 && !d.IsFloat() {
				continue // the order of a reduction does not change integers
			}
			t.Run(fmt.Sprintf("dtype=%v/n=%d/reproducible=%v", d, n, reproducible), func(t *testing.T) {
				sizes := []int{0, 1, n - 1, n, n + 1, 97, 4099}
				if n > 9 && d != tensor.F32 {
					sizes = []int{1, n + 1, 4099}
				}
				tryAll(t, total, e, n, sizes, reproducible)
			})
		}
	}
}

// matrixGroups are the sizes of groups that the matrix tries for a type: all for float32, else those up to three and
// every third of the larger ones, such that each larger one has a type of each length: 1, 2, 4 and 8 bytes.
func matrixGroups(d tensor.DType) []int {
	all := groupSizes()
	small := slices.IndexFunc(all, func(n int) bool { return n > 3 })
	if large := len(all) - small; d == tensor.F32 || large <= 2 {
		return all
	}
	third := map[tensor.DType]int{
		tensor.I8: 0, tensor.I16: 0, tensor.I32: 0, tensor.I64: 0, tensor.BF16: 0,
		tensor.U8: 1, tensor.U16: 1, tensor.U32: 1, tensor.U64: 1,
		tensor.Bool: 2, tensor.F16: 2, tensor.F64: 2, // and float32
	}[d]
	out := slices.Clone(all[:small])
	for i := small + third; i < len(all); i += 3 {
		out = append(out, all[i])
	}
	return out
}

// matrixOperators are the operators that the matrix tries for a type and a size of group: all on float32 and on groups
// of up to three, else one of Mul, Min and Max, which are carried out alike, and the others.
func matrixOperators[T tensor.Element](n int) []gcl.Operator {
	d, all := tensor.DTypeOf[T](), operators[T]()
	if d == tensor.F32 || n <= 3 {
		return all
	}
	alike := []gcl.Operator{gcl.Mul, gcl.Min, gcl.Max}
	kept := alike[int(d)%len(alike)]
	return slices.DeleteFunc(all, func(op gcl.Operator) bool { return op != kept && slices.Contains(alike, op) })
}

// tryAll runs all collectives for one dtype and group size, on data of several lengths, on one set of replicas.
func tryAll[T tensor.Element](t *testing.T, total *cases, e elem[T], n int, sizes []int, reproducible bool) {
	options := testOptions(tensor.DTypeOf[T](), n)
	type reduction struct {
		op   gcl.Operator
		in   [][]T
		want []T
	}
	type length struct {
		reductions []reduction
		placed     [][]T // values that tell where they came from, as far as the type allows
	}
	var lengths []length
	for _, size := range sizes {
		var l length
		for _, op := range matrixOperators[T](n) {
			in := inputs(e, op, n, size)
			r := reduction{op, in, nil}
			if op != gcl.Local && n > 1 {
				r.want = reduce(e, op, in)
			}
			l.reductions = append(l.reductions, r)
		}
		for r := range n {
			placed := make([]T, size)
			for i := range placed {
				placed[i] = e.of((r*31 + i*7 + i/11) % 127)
			}
			l.placed = append(l.placed, placed)
		}
		lengths = append(lengths, l)
	}
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		for _, m := range options {
			m.Reproducible = reproducible
			c, err := c.With(m)
			if err != nil {
				return err
			}
			for i, l := range lengths {
				for _, r := range l.reductions {
					want := r.want
					if want == nil { // Local, and groups of one
						want = r.in[c.Rank()]
					}
					if err := tryReductions(ctx, c, r.op, r.in[c.Rank()], want); err != nil {
						return fmt.Errorf("method=%v implementation=%v op=%v size=%d: %w", m.Method, m.Implementation, r.op, sizes[i], err)
					}
				}
				if reproducible {
					continue // which is about reductions
				}
				if err := tryMoves(ctx, c, l.placed); err != nil {
					return fmt.Errorf("method=%v implementation=%v size=%d: %w", m.Method, m.Implementation, sizes[i], err)
				}
			}
		}
		return nil
	})
	total.n += len(options) * len(sizes) * len(matrixOperators[T](n)) * 6 // forms of all-reduce and reduce-scatter
	if !reproducible {
		total.n += len(options) * len(sizes) * 15 // forms of the other three, the broadcast from three roots
	}
}

// tryReductions tries the forms of all-reduce and reduce-scatter.
func tryReductions[T tensor.Element](ctx context.Context, c *gcl.Comm, op gcl.Operator, data, want []T) error {
	n, rank := c.Size(), c.Rank()
	in := append([]T(nil), data...)
	out, err := gcl.AllReduce(ctx, c, in, op)
	if err != nil {
		return err
	}
	per := (len(data) + n - 1) / n
	padded := append(append([]T(nil), want...), make([]T, n*per-len(want))...)
	shard := padded[rank*per : (rank+1)*per]
	to := make([]T, len(data))
	scatteredTo := make([]T, per)
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
	own := append(append([]T(nil), data...), make([]T, n*per-len(data))...)
	return errors.Join(
		check("all-reduce in place", in, want),
		gcl.ReduceScatterTo(ctx, c, own[rank*per:(rank+1)*per], own[:len(data)], op),
		check("reduce-scatter to the own shard", own[rank*per:(rank+1)*per], shard),
	)
}

// tryMoves tries the forms of the other three.
func tryMoves[T tensor.Element](ctx context.Context, c *gcl.Comm, all [][]T) error {
	n, rank, size := c.Size(), c.Rank(), len(all[0])
	in := append([]T(nil), all[rank]...)
	var everything []T
	for _, d := range all {
		everything = append(everything, d...)
	}
	gathered, err := gcl.AllGather(ctx, c, in)
	gatheredTo := make([]T, n*size)
	gatheredOwn := make([]T, n*size)
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

	part := size / n // of an all-to-all, which takes a length that n divides
	toAll := append([]T(nil), in[:part*n]...)
	var swapped []T
	for _, d := range all {
		swapped = append(swapped, d[rank*part:(rank+1)*part]...)
	}
	out, err := gcl.AllToAll(ctx, c, toAll)
	to := make([]T, part*n)
	if err := errors.Join(err, gcl.AllToAllTo(ctx, c, to, toAll)); err != nil {
		return err
	}
	inPlace := append([]T(nil), toAll...)
	if rank%2 == 0 { // each rank may choose
		err = gcl.AllToAllInPlace(ctx, c, inPlace)
	} else {
		inPlace, err = gcl.AllToAll(ctx, c, inPlace)
	}
	if err := errors.Join(err,
		check("all-to-all", out, swapped),
		check("all-to-all to", to, swapped),
		check("all-to-all in place", inPlace, swapped),
		check("the input of an all-to-all", toAll, in[:part*n]),
	); err != nil {
		return err
	}

	for _, root := range []int{0, n - 1, n / 2} {
		sent, err := gcl.Broadcast(ctx, c, in, root)
		to := make([]T, size)
		inPlace := append([]T(nil), in...)
		if err := errors.Join(err,
			gcl.BroadcastTo(ctx, c, to, in, root),
			gcl.BroadcastInPlace(ctx, c, inPlace, root),
			check("broadcast", sent, all[root]),
			check("broadcast to", to, all[root]),
			check("broadcast in place", inPlace, all[root]),
			check("the input of a broadcast", in, all[rank]),
		); err != nil {
			return fmt.Errorf("root %d: %w", root, err)
		}
	}
	return nil
}

// testMethods are the methods that the tests try: all, and Auto.
var testMethods = append(methods.All(), methods.Auto)

// bothWays are the methods, each by messages and on peer memory.
func bothWays() []gcl.Options {
	var out []gcl.Options
	for _, m := range testMethods {
		out = append(out, gcl.Options{Method: m, Implementation: gcl.Syncless}, gcl.Options{Method: m, Implementation: gcl.Syncful})
	}
	return out
}

// testOptions are the methods, both ways for some element types, and by the implementation that Auto takes for the
// others. Groups of 4 to 9 go both ways for one type only, since peer memory needs the plans of all ranks on every
// rank.
func testOptions(t tensor.DType, n int) []gcl.Options {
	switch t {
	case tensor.F32, tensor.F16, tensor.BF16, tensor.I64, tensor.Bool:
		if n <= 3 && !underRace || n <= 9 && t == tensor.F32 {
			return bothWays()
		}
	}
	var out []gcl.Options
	for _, m := range testMethods {
		out = append(out, gcl.Options{Method: m})
	}
	return out
}
