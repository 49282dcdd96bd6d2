package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// rootedCase is the data of all ranks, and what the collectives whose result or data only the root has must give each.
type rootedCase[T tensor.Element] struct {
	op                         gcl.Operator
	root                       int
	in, reduced, gathered, cut [][]T // by rank
	dealt                      [][]T
}

func newRootedCase[T tensor.Element](op gcl.Operator, root int, in [][]T) rootedCase[T] {
	x := rootedCase[T]{op: op, root: root, in: in}
	call := oracle.Call{Collective: schedule.Reduce, Operator: named(op), Root: root}
	x.reduced = oracle.Outputs(call, in)
	call.Collective = schedule.Gather
	x.gathered = oracle.Outputs(call, in)
	for _, data := range in {
		x.cut = append(x.cut, data[:len(data)/len(in)*len(in)])
	}
	call.Collective = schedule.Scatter
	x.dealt = oracle.Outputs(call, x.cut)
	return x
}

// try tries the forms of reduce, gather and scatter, with and without the buffers that do not count.
func (x rootedCase[T]) try(ctx context.Context, c *gcl.Comm) error {
	n, rank, root := c.Size(), c.Rank(), x.root
	atRoot := rank == root
	in, untouched := slices.Clone(x.in[rank]), slices.Clone(x.in[(rank+1)%n])
	// on ranks other than the root nil, or something that is not to be written
	room := func(length int, given bool) []T {
		if atRoot || given {
			return append(slices.Clone(untouched), make([]T, length)...)[:length]
		}
		return nil
	}
	kept := func(what string, dst, want []T) error {
		if atRoot {
			return check(what, dst, want)
		}
		return check(what+", not at the root", dst, room(len(dst), dst != nil))
	}
	for _, given := range []bool{false, true} {
		to, gatheredTo := room(len(in), given), room(n*len(in), given)
		if err := errors.Join(
			gcl.ReduceTo(ctx, c, to, in, x.op, root),
			gcl.GatherTo(ctx, c, gatheredTo, in, root),
			kept("reduce to", to, x.reduced[rank]),
			kept("gather to", gatheredTo, x.gathered[rank]),
			check("the input", in, x.in[rank]),
		); err != nil {
			return err
		}
		data, part := x.cut[rank], make([]T, len(x.dealt[rank]))
		if !atRoot && !given {
			data = nil
		}
		if err := errors.Join(
			gcl.ScatterTo(ctx, c, part, slices.Clone(data), root),
			check("scatter to", part, x.dealt[rank]),
		); err != nil {
			return err
		}
	}
	reduced, err1 := gcl.Reduce(ctx, c, in, x.op, root)
	gathered, err2 := gcl.Gather(ctx, c, in, root)
	dealt, err3 := gcl.Scatter(ctx, c, slices.Clone(x.cut[rank]), len(x.dealt[rank]), root)
	inPlace := slices.Clone(in)
	err4 := gcl.ReduceInPlace(ctx, c, inPlace, x.op, root)
	want := in
	if atRoot {
		want = x.reduced[rank]
	}
	all := make([]T, n*len(in))
	own := all[rank*len(in) : (rank+1)*len(in)]
	copy(own, in)
	data := slices.Clone(x.cut[rank])
	per := len(data) / n
	part := data[rank*per : (rank+1)*per]
	if !atRoot {
		all, part = nil, make([]T, per)
	}
	if err := errors.Join(err1, err2, err3, err4,
		check("reduce", reduced, x.reduced[rank]),
		check("gather", gathered, x.gathered[rank]),
		check("scatter", dealt, x.dealt[rank]),
		check("reduce in place", inPlace, want),
		gcl.GatherTo(ctx, c, all, own, root),
		check("gather of the own part", all, x.gathered[rank]),
		gcl.ScatterTo(ctx, c, part, data, root),
		check("scatter to the own part", part, x.dealt[rank]),
	); err != nil {
		return err
	}
	return x.tryMany(ctx, c)
}

// tryMany tries the forms on several slices, on several tensors, and by a Batch.
func (x rootedCase[T]) tryMany(ctx context.Context, c *gcl.Comm) error {
	n, rank, root := c.Size(), c.Rank(), x.root
	atRoot := rank == root
	per := len(x.dealt[rank])
	none := []T(nil)
	ins := [][]T{x.in[rank], {}, x.in[rank][:per]}
	tos, alls := [][]T{none, none, none}, [][]T{none, none, none}
	datas := [][]T{none, none, none}
	if atRoot {
		for i, in := range ins {
			tos[i], alls[i] = make([]T, len(in)), make([]T, n*len(in))
		}
		datas = [][]T{x.cut[rank], {}, x.cut[rank]}
	}
	parts := [][]T{make([]T, per), {}, make([]T, per)}
	if err := errors.Join(
		batchTo(ctx, c, schedule.Reduce, tos, ins, x.op, root),
		batchTo(ctx, c, schedule.Gather, alls, ins, 0, root),
		batchTo(ctx, c, schedule.Scatter, parts, datas, 0, root),
		check("reduce many", tos[0], x.reduced[rank]),
		check("gather many", alls[0], x.gathered[rank]),
		check("scatter many", parts[0], x.dealt[rank]),
		check("scatter many, the last", parts[2], x.dealt[rank]),
	); err != nil {
		return err
	}
	if atRoot {
		if err := check("reduce many, the last", tos[2], x.reduced[rank][:per]); err != nil {
			return err
		}
	}
	tensorOf := func(data []T, shape ...int) *tensor.Tensor {
		if data == nil {
			return nil
		}
		return must(tensor.FromSlice(data, shape...))
	}
	size := len(x.in[rank])
	in := tensorOf(slices.Clone(x.in[rank]), 1, size)
	var to, all, data *tensor.Tensor
	if atRoot {
		to, all, data = tensorOf(make([]T, size), 1, size), tensorOf(make([]T, n*size), n, 1, size),
			tensorOf(slices.Clone(x.cut[rank]), n, per, 1)
	}
	part := tensorOf(make([]T, per), per, 1)
	values := func(t *tensor.Tensor) []T {
		if t == nil {
			return nil
		}
		return must(tensor.Of[T](t))
	}
	forms := map[string]func(collective schedule.Collective, dst, src *tensor.Tensor, op gcl.Operator) error{
		"tensors": func(collective schedule.Collective, dst, src *tensor.Tensor, op gcl.Operator) error {
			return batchTensorsTo(ctx, c, collective, []*tensor.Tensor{dst}, []*tensor.Tensor{src}, op, root)
		},
		"do": func(collective schedule.Collective, dst, src *tensor.Tensor, op gcl.Operator) error {
			return c.Do(ctx, collective, dst, src, op, root)
		},
		"batch": func(collective schedule.Collective, dst, src *tensor.Tensor, op gcl.Operator) error {
			b := c.Batch(collective, op, root)
			b.AppendTensor(dst, src)
			return b.Run(ctx)
		},
	}
	for _, name := range []string{"tensors", "do", "batch"} {
		f := forms[name]
		if err := errors.Join(
			f(schedule.Reduce, to, in, x.op), f(schedule.Gather, all, in, 0), f(schedule.Scatter, part, data, 0),
			check("reduce", values(to), x.reduced[rank]),
			check("gather", values(all), x.gathered[rank]),
			check("scatter", values(part), x.dealt[rank]),
		); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, t := range []*tensor.Tensor{to, all, part} {
			if t != nil {
				clear(t.Bytes())
			}
		}
	}
	return nil
}

// TestRooted tries reduce, gather and scatter by every method, by messages and on peer memory, from several roots, for
// lengths below and above what is small.
func TestRooted(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 6} {
		for _, o := range append(eachMethod(), bothWays()...) {
			t.Run(fmt.Sprintf("n=%d/method=%v/implementation=%v", n, o.Method, o.Implementation), func(t *testing.T) {
				var cases []rootedCase[float32]
				for i, size := range []int{0, 1, n, 4*n + 1, 5003} {
					root := i % n
					cases = append(cases, newRootedCase(gcl.Add, root, inputs[float32](gcl.Add, n, size)))
				}
				tryRooted(t, n, o, cases)
			})
		}
	}
}

// TestRootedOperators tries the operators and element types of a reduce, Reproducible and staged too.
func TestRootedOperators(t *testing.T) {
	for _, o := range []gcl.Options{{}, {Implementation: gcl.Syncless},
		{Reproducible: true, Method: methods.ClockwiseRing}, {StageFragments: true, Implementation: gcl.Syncless},
		{Reproducible: true, Method: methods.Direct, Implementation: gcl.Syncless}, {Implementation: gcl.Hybrid}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			rootedOperators[float32](t, o)
			rootedOperators[tensor.BFloat16](t, o)
			rootedOperators[int16](t, o)
			rootedOperators[bool](t, o)
		})
	}
}

func rootedOperators[T tensor.Element](t *testing.T, o gcl.Options) {
	const n = 4
	var cases []rootedCase[T]
	for i, op := range operators[T]() {
		for _, size := range []int{7, 4099} {
			cases = append(cases, newRootedCase(op, i%n, inputs[T](op, n, size)))
		}
	}
	tryRooted(t, n, o, cases, gcl.WithTopology(hosts(t, 2, 2)))
}

// tryRooted tries cases on n replicas with these options.
func tryRooted[T tensor.Element](t *testing.T, n int, o gcl.Options, cases []rootedCase[T], opts ...gcl.CommOption) {
	t.Helper()
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		c, err := c.With(o)
		if err != nil {
			return err
		}
		for _, x := range cases {
			if err := x.try(ctx, c); err != nil {
				return fmt.Errorf("%v %v size %d, root %d: %w", tensor.DTypeOf[T](), x.op, len(x.in[0]), x.root, err)
			}
		}
		return nil
	}, opts...)
}

// TestReproducibleReduce: with Reproducible a reduce has the bits of the all-reduce, by every method.
func TestReproducibleReduce(t *testing.T) {
	const n, size = 5, 1001
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		data := make([]float32, size)
		for i := range data {
			data[i] = 1 / float32(3+(i*7+c.Rank()*13)%17)
		}
		for _, o := range bothWays() {
			o.Reproducible = true
			c, err := c.With(o)
			if err != nil {
				return err
			}
			want, err1 := gcl.AllReduce(ctx, c, data, gcl.Mean)
			got, err2 := gcl.Reduce(ctx, c, data, gcl.Mean, 3)
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			if c.Rank() == 3 {
				if err := check(fmt.Sprintf("%v", o.Method), got, want); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TestRootedErrors: wrong lengths and roots are errors before anything is sent, and the communicator stays usable.
func TestRootedErrors(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		a := make([]float32, 12)
		atRoot := c.Rank() == 0
		pick := func(root, other string) string {
			if atRoot {
				return root
			}
			return other
		}
		for _, k := range []struct {
			want string
			err  error
		}{
			{"root 2 is not a rank of the group, 0 to 1", gcl.ReduceTo(ctx, c, a, a, gcl.Add, 2)},
			{"root -1 is not a rank of the group, 0 to 1", gcl.GatherTo(ctx, c, a, a[:6], -1)},
			{"operator LOGICAL_OR takes bool, not float32", gcl.ReduceTo(ctx, c, a, a, gcl.LogicalOr, 0)},
			{pick("the destination has 5 elements, want 6 for 6 of input over 2 ranks", "the destination has 5 "+
				"elements, want none or 6: only the root's is written"),
				gcl.ReduceTo(ctx, c, a[:5], a[6:], gcl.Add, 0)},
			{pick("the destination has 4 elements, want 6 for 3 of input over 2 ranks", "the destination has 4 "+
				"elements, want none or 6: only the root's is written"),
				gcl.GatherTo(ctx, c, a[:4], a[9:], 0)},
			{pick("7 elements at the root do not divide into 2 equal parts, one for each rank",
				"the input has 7 elements, want none or 6: only the root's is read"),
				gcl.ScatterTo(ctx, c, a[:3], a[5:], 0)},
			{pick("the destination has 2 elements, want 3 for 6 of input over 2 ranks", "the input has 6 elements, "+
				"want none or 4: only the root's is read"),
				gcl.ScatterTo(ctx, c, a[:2], a[6:], 0)},
			{"-1 elements for each rank", scattered(ctx, c, a, -1)},
			{fmt.Sprintf("%d elements of float32 for each of 2 ranks take more than", math.MaxInt), scattered(ctx, c, a, math.MaxInt)},
			{pick("the input has 12 elements, want 10 for parts of 5 over 2 ranks", "the input has 12 elements, want "+
				"none or 10: only the root's is read"),
				scattered(ctx, c, a, 5)},
			{pick("the destination: it is nil", "only the root's is read"), rootedTensors(ctx, c, atRoot)},
		} {
			if k.err == nil || !strings.Contains(k.err.Error(), k.want) {
				return fmt.Errorf("error %v, want one with %q", k.err, k.want)
			}
		}
		if atRoot {
			err := gcl.ReduceTo(ctx, c, a[:6], a[3:9], gcl.Add, 0)
			if err == nil || !strings.Contains(err.Error(), "it must lie apart or be the input itself") {
				return fmt.Errorf("an overlap: %v", err)
			}
		} else if err := gcl.ReduceTo(ctx, c, a[:5], a[3:9], gcl.Add, 0); err == nil {
			return errors.New("a short destination is accepted")
		}
		return c.Barrier(ctx)
	})
}

// scattered is a scatter from rank 0 whose parts have n elements.
func scattered(ctx context.Context, c *gcl.Comm, data []float32, n int) error {
	_, err := gcl.Scatter(ctx, c, data, n, 0)
	return err
}

// rootedTensors is a reduce without a destination at the root, and a scatter of other tensors elsewhere.
func rootedTensors(ctx context.Context, c *gcl.Comm, atRoot bool) error {
	x := must(tensor.New(tensor.F32, 4))
	if atRoot {
		return c.Do(ctx, schedule.Reduce, nil, x, gcl.Add, 0)
	}
	part, data := must(tensor.New(tensor.F32, 4)), make([]float32, 3)
	return errors.Join(gcl.ScatterTo(ctx, c, must(tensor.Of[float32](part)), data, 0))
}

// TestRootedTensorErrors: tensors that are missing or wrong on ranks other than the root, where one of the two may be
// missing, are errors.
func TestRootedTensorErrors(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		one, zero, root := flat([]float32{1}), &tensor.Tensor{}, 1-c.Rank() // each takes the other for the root
		appended := func(collective schedule.Collective, dst, src *tensor.Tensor) error {
			b := c.Batch(collective, 0, root)
			b.AppendTensor(dst, src)
			return b.Run(ctx)
		}
		for _, k := range []struct {
			want string
			err  error
		}{
			{"operand 0: the input: it is the zero Tensor", appended(schedule.Scatter, one, zero)},
			{"want int8 of shape ()", appended(schedule.Scatter, one, flat([]int8{1, 2}))},
			{"root 77 is not a rank", c.Batch(schedule.Scatter, 0, 77).Run(ctx)},
			{"operand 0: the input: it is nil", appended(schedule.Gather, nil, nil)},
			{"want float32 of shape (2, 1)", appended(schedule.Gather, one, one)},
			{"the destination: it is the zero Tensor", c.Do(ctx, schedule.Scatter, zero, nil, 0, root)},
			{"the destination: it is nil", c.Do(ctx, schedule.Scatter, nil, nil, 0, root)},
			{"the destination: it is the zero Tensor", c.Do(ctx, schedule.Reduce, zero, one, gcl.Add, root)},
			{"the input: it is nil", c.Do(ctx, schedule.Gather, nil, nil, 0, root)},
			{"operand 0: the destination: it is the zero Tensor", appended(schedule.Scatter, zero, nil)},
			{"operand 0: the destination: it is nil", appended(schedule.Scatter, nil, nil)},
		} {
			if k.err == nil || !strings.Contains(k.err.Error(), k.want) {
				return fmt.Errorf("error %v, want one with %q", k.err, k.want)
			}
		}
		return c.Barrier(ctx)
	})
}

// TestAnotherRoot: buffers that will do under another root are looked at again under this one.
func TestAnotherRoot(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		type many = [][]float32
		in, all := many{make([]float32, 4)}, many{make([]float32, 8)}
		for _, k := range []struct {
			name            string
			here, elsewhere many // at the first root, and at the other rank: destinations, or a scatter's inputs
			call            func(buffers many, root int) error
			want            string
		}{
			{"reduce, missing", many{make([]float32, 4)}, many{nil}, func(dst many, root int) error {
				return batchTo(ctx, c, schedule.Reduce, dst, in, gcl.Add, root)
			}, "the destination has 0 elements, want 4"},
			{"reduce, overlapping", in, many{all[0][1:5]}, func(dst many, root int) error {
				return batchTo(ctx, c, schedule.Reduce, dst, many{all[0][:4]}, gcl.Add, root)
			}, "overlaps it"},
			{"gather, missing", all, many{nil}, func(dst many, root int) error {
				return batchTo(ctx, c, schedule.Gather, dst, in, 0, root)
			}, "the destination has 0 elements, want 8"},
			{"scatter, missing", all, many{nil}, func(src many, root int) error {
				return batchTo(ctx, c, schedule.Scatter, in, src, 0, root)
			}, "the destination has 4 elements, want 0"},
		} {
			buffers := k.here
			if c.Rank() != 0 {
				buffers = k.elsewhere
			}
			if err := k.call(buffers, 0); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			want := k.want
			if c.Rank() == 0 { // is refused too, so that the calls are as many on both
				buffers, want = nil, "destinations for"
			}
			if err := k.call(buffers, 1); err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%s, by another root: error %v, want one with %q", k.name, err, want)
			}
		}
		return c.Barrier(ctx)
	})
}

// TestRootedMismatch: members that disagree on the root, the length or the collective all get ErrMismatch.
func TestRootedMismatch(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, c *gcl.Comm, a []float32) error{
		"root": func(ctx context.Context, c *gcl.Comm, a []float32) error {
			return gcl.ReduceInPlace(ctx, c, a, gcl.Add, c.Rank()%2)
		},
		"length": func(ctx context.Context, c *gcl.Comm, a []float32) error {
			return gcl.ReduceInPlace(ctx, c, a[c.Rank():], gcl.Add, 0)
		},
		"parts": func(ctx context.Context, c *gcl.Comm, a []float32) error {
			_, err := gcl.Scatter(ctx, c, a[:3*(1+c.Rank()%2)], 1+c.Rank()%2, 0)
			return err
		},
		"another": func(ctx context.Context, c *gcl.Comm, a []float32) error {
			if c.Rank() == 1 {
				return gcl.BroadcastInPlace(ctx, c, a, 0)
			}
			return gcl.ReduceInPlace(ctx, c, a, gcl.Add, 0)
		},
	} {
		for _, o := range []gcl.Options{{}, {Implementation: gcl.Syncless}} {
			for _, size := range []int{8, 50000} {
				err := gcl.Run(context.Background(), 3, func(ctx context.Context, c *gcl.Comm) error {
					c, err := c.With(o)
					if err != nil {
						return err
					}
					err = call(ctx, c, make([]float32, size))
					if err == nil { // done before the others came: it hears of it later
						err = c.Barrier(ctx)
					}
					if !errors.Is(err, gcl.ErrMismatch) {
						return fmt.Errorf("%v, want ErrMismatch", err)
					}
					return nil
				})
				if err != nil && !errors.Is(err, gcl.ErrMismatch) {
					t.Errorf("%s, %v, %d elements: %v", name, o.Implementation, size, err)
				}
			}
		}
	}
}

// TestRootedFormsMeet: members that call by a Batch, on tensors and on slices make one call, with the buffers that do
// not count or without.
func TestRootedFormsMeet(t *testing.T) {
	for _, o := range []gcl.Options{{}, {Implementation: gcl.Syncless}} {
		for root := range 3 {
			replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
				c, err := c.With(o)
				if err != nil {
					return err
				}
				ins := [][]int32{{int32(c.Rank()), 1}, {int32(10 * c.Rank())}}
				reduced, gathered := [][]int32{make([]int32, 2), make([]int32, 1)},
					[][]int32{make([]int32, 6), make([]int32, 3)}
				data, parts := [][]int32{{0, 1, 2, 3, 4, 5}, {6, 7, 8}}, [][]int32{make([]int32, 2), make([]int32, 1)}
				tensors := func(of [][]int32, atRootOnly bool) []*tensor.Tensor {
					if atRootOnly && c.Rank() != root {
						return []*tensor.Tensor{nil, nil}
					}
					var out []*tensor.Tensor
					for _, data := range of {
						shape := []int{len(data)}
						if atRootOnly && len(data) > 2 { // of a gather or a scatter
							shape = []int{3, len(data) / 3}
						}
						out = append(out, must(tensor.FromSlice(data, shape...)))
					}
					return out
				}
				tensorsOf := [][]*tensor.Tensor{tensors(reduced, true), tensors(ins, false), tensors(gathered, true),
					tensors(parts, false), tensors(data, true)}
				for range 2 { // the second time the calls are known
					switch c.Rank() {
					case 0:
						err = errors.Join(
							batchTensorsTo(ctx, c, schedule.Reduce, tensorsOf[0], tensorsOf[1], gcl.Add, root),
							batchTensorsTo(ctx, c, schedule.Gather, tensorsOf[2], tensorsOf[1], 0, root),
							batchTensorsTo(ctx, c, schedule.Scatter, tensorsOf[3], tensorsOf[4], 0, root))
					default:
						err = errors.Join(batchTo(ctx, c, schedule.Reduce, reduced, ins, gcl.Add, root),
							batchTo(ctx, c, schedule.Gather, gathered, ins, 0, root),
							batchTo(ctx, c, schedule.Scatter, parts, data, 0, root))
					}
					if err != nil {
						return err
					}
					r := c.Rank()
					wantParts := [][]int32{data[0][2*r : 2*r+2], data[1][r : r+1]}
					wantReduced, wantGathered := [][]int32{{0, 0}, {0}}, [][]int32{make([]int32, 6), make([]int32, 3)}
					if r == root {
						wantReduced, wantGathered = [][]int32{{3, 3}, {30}}, [][]int32{{0, 1, 1, 1, 2, 1}, {0, 10, 20}}
					}
					for i := range parts {
						if err := errors.Join(check("scatter", parts[i], wantParts[i]),
							check("reduce", reduced[i], wantReduced[i]),
							check("gather", gathered[i], wantGathered[i])); err != nil {
							return err
						}
						clear(parts[i])
						clear(reduced[i])
						clear(gathered[i])
					}
				}
				return nil
			})
		}
	}
}
