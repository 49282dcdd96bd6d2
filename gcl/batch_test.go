package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// batchOptions are ways on which calls go by each path.
var batchOptions = []gcl.Options{
	{}, {Implementation: gcl.Syncless}, {Method: methods.ClockwiseRing, Implementation: gcl.Syncful},
	{Reproducible: true, Implementation: gcl.Syncless}, {StageFragments: true}, {Implementation: gcl.Hybrid},
}

// TestBatch: a Batch gives what calls on each operand give, in every step, of what is in the buffers then, and after
// operands have been added; of one operand, of several, of none.
func TestBatch(t *testing.T) {
	for _, o := range batchOptions {
		for _, lengths := range [][]int{{}, {7}, {5000}, {3, 2}, {3, 0, 900}, {20000, 1}} {
			t.Run(fmt.Sprintf("method=%v/implementation=%v/reproducible=%v/staged=%v/lengths=%v",
				o.Method, o.Implementation, o.Reproducible, o.StageFragments, lengths), func(t *testing.T) {
				n, machine := 3, hosts(t, 3)
				if o.Implementation == gcl.Hybrid {
					n, machine = 4, hosts(t, 2, 2)
				}
				replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
					c, err := c.With(o)
					if err != nil {
						return err
					}
					for _, collective := range schedule.Collectives() {
						if err := tryBatch(ctx, c, collective, lengths); err != nil {
							return fmt.Errorf("%v: %w", collective, err)
						}
					}
					return nil
				}, gcl.WithTopology(machine))
			})
		}
	}
}

// shapesOf are the shapes of a collective's tensors of n elements in the larger one.
func shapesOf(collective schedule.Collective, n, ranks int) (in, out tensor.Shape) {
	contract, rows := collective.Contract(), tensor.Shape{ranks, n / ranks}
	switch {
	case contract.Input == schedule.Blocks:
		return rows, rows
	case contract.Input == schedule.Own:
		return tensor.Shape{n / ranks}, rows
	case contract.Deals():
		return rows, tensor.Shape{n / ranks}
	}
	return tensor.Shape{n}, tensor.Shape{contract.Output.Elements(n, ranks)}
}

func tryBatch(ctx context.Context, c *gcl.Comm, collective schedule.Collective, lengths []int) error {
	var op gcl.Operator
	if collective.Contract().Combines {
		op = gcl.Max
	}
	root := 0
	if collective.Contract().Rooted() {
		root = 1
	}
	b := c.Batch(collective, op, root)
	var dsts, srcs, wants [][]float32
	add := func(n int) {
		src := make([]float32, n*c.Size())
		length := collective.Contract().Elements(len(src), c.Size())
		dst := make([]float32, collective.Contract().Output.Elements(length, c.Size()))
		if collective == schedule.AllReduce && n%2 == 1 {
			dst = src
		}
		gcl.Append(b, dst, src)
		dsts, srcs, wants = append(dsts, dst), append(srcs, src), append(wants, make([]float32, len(dst)))
	}
	for _, n := range lengths {
		add(n)
	}
	for step := range 4 {
		if step == 2 {
			add(11)
		}
		for t, src := range srcs {
			for i := range src {
				src[i] = float32((i*7 + c.Rank()*31 + step*13 + t) % 101)
			}
			// Do, with the shapes that the collective has on tensors.
			inShape, outShape := shapesOf(collective, collective.Contract().Elements(len(src), c.Size()), c.Size())
			in, err := tensor.FromSlice(src, inShape...)
			if err != nil {
				return err
			}
			out, err := tensor.FromSlice(wants[t], outShape...)
			if err != nil {
				return err
			}
			if err := c.Do(ctx, collective, out, in, op, root); err != nil {
				return err
			}
		}
		if err := b.Run(ctx); err != nil {
			return err
		}
		for t := range dsts {
			if err := check(fmt.Sprintf("step %d, operand %d", step, t), dsts[t], wants[t]); err != nil {
				return err
			}
		}
	}
	if b.Len() != len(dsts) {
		return fmt.Errorf("%d operands, want %d", b.Len(), len(dsts))
	}
	return nil
}

// TestBatchMeetsOtherForms: of one operand a Batch is the call on one slice, of several that on several, to members
// that make it so.
func TestBatchMeetsOtherForms(t *testing.T) {
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		one, two := []int32{1, 2}, []int32{3, 4, 5}
		b := c.Batch(schedule.AllReduce, gcl.Add, 0)
		gcl.Append(b, one, one)
		both := c.Batch(schedule.AllReduce, gcl.Add, 0)
		gcl.Append(both, one, one)
		gcl.Append(both, two, two)
		var err error
		switch c.Rank() {
		case 0:
			err = errors.Join(b.Run(ctx), both.Run(ctx))
		case 1:
			in, _ := tensor.FromSlice(one, 2)
			err = errors.Join(c.Do(ctx, schedule.AllReduce, in, in, gcl.Add, 0), both.Run(ctx))
			copy(one, must(tensor.Of[int32](in)))
		default:
			err = errors.Join(gcl.AllReduceInPlace(ctx, c, one, gcl.Add),
				gcl.AllReduceManyInPlace(ctx, c, [][]int32{one, two}, gcl.Add))
		}
		return errors.Join(err, check("one", one, []int32{9, 18}), check("two", two, []int32{9, 12, 15}))
	})
}

// TestBatchErrors: what is wrong with a Batch or a Do is said by Run or Do, before anything is sent, and the
// communicator stays usable.
func TestBatchErrors(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		a := make([]float32, 8)
		var none context.Context
		f32 := func(shape ...int) *tensor.Tensor { return must(tensor.New(tensor.F32, shape...)) }
		fill := func(collective schedule.Collective, op gcl.Operator, root int,
			add ...func(b *gcl.Batch)) func() error {
			return func() error {
				b := c.Batch(collective, op, root)
				for _, f := range add {
					f(b)
				}
				return b.Run(ctx)
			}
		}
		good := func(b *gcl.Batch) { gcl.Append(b, a, a) }
		for _, k := range []struct {
			want string
			run  func() error
		}{
			{"Run of a Batch that no Comm has made", func() error { return (*gcl.Batch)(nil).Run(ctx) }},
			{"Run of a Batch that no Comm has made", func() error { return new(gcl.Batch).Run(ctx) }},
			{"Run of a Batch that no Comm has made", func() error { return (*gcl.Comm)(nil).Batch(schedule.AllReduce, gcl.Add, 0).Run(ctx) }},
			{"nil context", func() error { return c.Batch(schedule.AllReduce, gcl.Add, 0).Run(none) }},
			{"unknown collective 99", fill(99, gcl.Add, 0, good)},
			{"Operator(77) is no operator", fill(schedule.AllReduce, 77, 0, good)},
			{"a barrier has no operands: want Comm.Barrier", fill(schedule.Barrier, 0, 0, good)},
			{"a barrier has no operands: want Comm.Barrier", func() error { return c.Do(ctx, schedule.Barrier, f32(2), f32(2), 0, 0) }},
			{"root 2 is not a rank of the group, 0 to 1", fill(schedule.Broadcast, 0, 2, good)},
			{"root 2 is not a rank of the group, 0 to 1", fill(schedule.Broadcast, 0, 2)},
			{"a broadcast combines nothing: its operator is LOCAL, want 0", fill(schedule.Broadcast, gcl.Local, 0, good)},
			{"an all-gather combines nothing: its operator is Operator(77), want 0", fill(schedule.AllGather, 77, 0)},
			{"an all-reduce has no root: its root is 1, want 0", fill(schedule.AllReduce, gcl.Add, 1, good)},
			{"operand 1: the destination has 3 elements, want 8", fill(schedule.AllReduce, gcl.Add, 0, good, func(b *gcl.Batch) { gcl.Append(b, a[:3], make([]float32, 8)) })},
			{"operand 1: the destination has 3 elements, want 8", fill(schedule.AllReduce, gcl.Add, 0, good,
				func(b *gcl.Batch) { gcl.Append(b, a[:3], make([]float32, 8)) }, func(b *gcl.Batch) {
					b.AppendTensor(f32(2), nil)
				})},
			{"operand 0: operator LOGICAL_AND takes bool, not float32", fill(schedule.AllReduce, gcl.LogicalAnd, 0, good)},
			{"the destinations of operand 0 and operand 1 overlap", fill(schedule.AllReduce, gcl.Add, 0, good, good)},
			{"operand 0: the input: it is nil", fill(schedule.AllReduce, gcl.Add, 0, func(b *gcl.Batch) { b.AppendTensor(f32(2), nil) })},
			{"operand 0: the destination: it is nil", fill(schedule.AllReduce, gcl.Add, 0, func(b *gcl.Batch) { b.AppendTensor(nil, f32(2)) })},
			{"operand 0: the destination is float32 of shape (3,), want float32 of shape (2,)", fill(schedule.AllReduce, gcl.Add, 0, func(b *gcl.Batch) { b.AppendTensor(f32(3), f32(2)) })},
			{"nil Comm", func() error { return (*gcl.Comm)(nil).Do(ctx, schedule.AllReduce, f32(2), f32(2), gcl.Add, 0) }},
			{"a broadcast combines nothing: its operator is LOCAL, want 0", func() error { return c.Do(ctx, schedule.Broadcast, f32(2), f32(2), gcl.Local, 0) }},
			{"an all-reduce has no root: its root is -1, want 0", func() error { return c.Do(ctx, schedule.AllReduce, f32(2), f32(2), gcl.Add, -1) }},
			{"root -1 is not a rank of the group, 0 to 1", func() error { return c.Do(ctx, schedule.Broadcast, f32(2), f32(2), 0, -1) }},
			{"operator LOGICAL_AND takes bool, not float32", func() error { return c.Do(ctx, schedule.AllReduce, f32(2), f32(2), gcl.LogicalAnd, 0) }},
			{"the first dimension of an all-to-all is that of the ranks, 2, not as in the shape (3,)", func() error { return c.Do(ctx, schedule.AllToAll, f32(3), f32(3), 0, 0) }},
			{"unknown collective 99", func() error { return c.Do(ctx, 99, f32(2), f32(2), gcl.Add, 0) }},
			{"the input: it is the zero Tensor", func() error { return c.Do(ctx, schedule.AllReduce, f32(2), &tensor.Tensor{}, gcl.Add, 0) }},
			{"the destination: it is the zero Tensor", func() error { return c.Do(ctx, schedule.AllReduce, &tensor.Tensor{}, f32(2), gcl.Add, 0) }},
			{"a reduce-scatter takes one dimension", func() error { return c.Do(ctx, schedule.ReduceScatter, f32(2), f32(2, 2), gcl.Add, 0) }},
			{"the destination is float32 of shape (2,), want float32 of shape (2, 2)", func() error { return c.Do(ctx, schedule.AllGather, f32(2), f32(2), 0, 0) }},
			{"nil context", func() error { return c.Do(none, schedule.AllReduce, f32(2), f32(2), gcl.Add, 0) }},
		} {
			if err := k.run(); err == nil || !strings.Contains(err.Error(), k.want) {
				return fmt.Errorf("error %v, want one with %q", err, k.want)
			}
		}
		gcl.Append((*gcl.Batch)(nil), a, a)
		(*gcl.Batch)(nil).AppendTensor(f32(1), f32(1))
		gcl.Append(new(gcl.Batch), a, a)
		b := c.Batch(schedule.AllReduce, gcl.Add, 0)
		gcl.Append(b, a[:1], a[:1])
		gcl.Append(b, a[2:3], a[2:4])
		gcl.Append(b, a[4:], a[4:])
		if b.Len() != 1 || (*gcl.Batch)(nil).Len() != 0 || new(gcl.Batch).Len() != 0 {
			return fmt.Errorf("%d operands before the first that is wrong, want 1", b.Len())
		}
		for range 2 { // again and again, and whatever follows the first
			if err := b.Run(ctx); err == nil ||
				!strings.Contains(err.Error(), "operand 1: the destination has 1 elements, want 2") {
				return fmt.Errorf("error %v", err)
			}
		}
		return c.Barrier(ctx)
	})
}

// TestBatchMismatch: members whose Batches differ get ErrMismatch, all of them.
func TestBatchMismatch(t *testing.T) {
	for _, n := range []int{1, 2} {
		err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
			b := c.Batch(schedule.AllReduce, gcl.Add, 0)
			for i := range n {
				buf := make([]float32, 5+i*c.Rank()+2*c.Rank()*(2-n))
				gcl.Append(b, buf, buf)
			}
			if err := b.Run(ctx); !errors.Is(err, gcl.ErrMismatch) {
				return fmt.Errorf("%v, want ErrMismatch", err)
			}
			return nil
		})
		if err != nil && !errors.Is(err, gcl.ErrMismatch) {
			t.Errorf("%d operands: %v", n, err)
		}
	}
}
