package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// TestManyPrograms has replicas make random calls again and again on the same few buffers, in turns on one tensor and
// on several, in different groups and with different options: what a connection keeps from one call to the next must
// not be taken for another's.
func TestManyPrograms(t *testing.T) {
	programs := 6
	switch {
	case *full:
		programs = 12
	case underRace || testing.Short():
		programs = 3
	}
	for seed := range programs {
		for _, n := range []int{4, 6} {
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				return runProgram(ctx, c, rand.New(rand.NewPCG(uint64(seed), uint64(n)))) // the same at every replica
			})
		}
	}
}

// buffer is memory that the calls of a program share: the first elements of it are the tensors of a call.
type buffer struct{ in, out, want []int32 }

func runProgram(ctx context.Context, c *gcl.Comm, r *rand.Rand) error {
	var buffers []buffer
	for range 10 {
		n := []int{24, 120, 1200, 24000}[r.IntN(4)]
		buffers = append(buffers, buffer{make([]int32, n), make([]int32, n), make([]int32, n)})
	}
	comms := []*gcl.Comm{c}
	for _, g := range []commgroup.Group{
		{Type: commgroup.Consecutive, Size: 2}, {Type: commgroup.Orthogonal, Size: 2},
		{Type: commgroup.Consecutive, Size: 2, Stride: c.Size() / 2}, // the same members, by a stride
	} {
		comms = append(comms, grouped(c, g))
	}
	options := []gcl.Options{
		{}, {Implementation: gcl.Syncless}, {Method: methods.SendToAll}, {Method: methods.ClockwiseRing, Implementation: gcl.Syncful},
		{Method: methods.QuadDirectionalRing, Reproducible: true}, {Method: methods.Direct, Implementation: gcl.Syncless},
	}
	for step := range 300 {
		which := r.Perm(len(buffers))[:r.IntN(5)]
		lengths := make([]int, len(which))
		for i, b := range which {
			lengths[i] = []int{len(buffers[b].in), 24, 12}[r.IntN(3)]
		}
		c := withOptions(comms[r.IntN(len(comms))], options[r.IntN(len(options))])
		op, kind, root := []gcl.Operator{gcl.Add, gcl.Max, gcl.SquareAdd}[r.IntN(3)], r.IntN(6), r.IntN(c.Size())
		var ins, outs, wants [][]int32
		for i, b := range which {
			x := buffers[b]
			for k := range x.in {
				x.in[k] = int32(step*7 + k*3 + c.Replica()*11)
			}
			ins, outs, wants = append(ins, x.in[:lengths[i]]), append(outs, x.out[:lengths[i]]),
				append(wants, x.want[:lengths[i]])
		}
		if err := programStep(ctx, c, kind, op, root, ins, outs, wants); err != nil {
			return fmt.Errorf("step %d, %+v, kind %d on %v of %v: %w", step, c.Options(), kind, which, lengths, err)
		}
	}
	return nil
}

// programStep makes one call on several tensors, and one on each to compare with.
func programStep(ctx context.Context, c *gcl.Comm, kind int, op gcl.Operator, root int, ins, outs,
	wants [][]int32) error {
	n := c.Size()
	var err error
	single := func(i int) error { return gcl.AllReduceTo(ctx, c, wants[i], ins[i], op) }
	switch kind {
	case 0:
		err = gcl.AllReduceManyTo(ctx, c, outs, ins, op)
	case 1: // on the very memory of kind 0, but as something else
		err = gcl.AllReduceTensorsTo(ctx, c, typedAs(tensor.U32, outs), typedAs(tensor.U32, ins), op)
		single = func(i int) error {
			return gcl.AllReduceTo(ctx, c, unsigned(wants[i]), unsigned(ins[i]), op)
		}
	case 2:
		for i := range ins {
			copy(outs[i], ins[i])
		}
		err = gcl.AllReduceManyInPlace(ctx, c, outs, op)
	case 3:
		for i := range ins {
			outs[i], wants[i] = outs[i][:len(ins[i])/n], wants[i][:len(ins[i])/n]
		}
		err = gcl.ReduceScatterManyTo(ctx, c, outs, ins, op)
		single = func(i int) error { return gcl.ReduceScatterTo(ctx, c, wants[i], ins[i], op) }
	case 4:
		err = batchTo(ctx, c, schedule.Broadcast, outs, ins, 0, root)
		single = func(i int) error { return gcl.BroadcastTo(ctx, c, wants[i], ins[i], root) }
	case 5:
		err = batchTo(ctx, c, schedule.AllToAll, outs, ins, 0, 0)
		single = func(i int) error { return gcl.AllToAllTo(ctx, c, wants[i], ins[i]) }
	}
	if err != nil {
		return err
	}
	for i := range ins {
		if err := errors.Join(single(i), check(fmt.Sprintf("tensor %d", i), outs[i], wants[i])); err != nil {
			return err
		}
	}
	return nil
}

func unsigned(s []int32) []uint32 {
	out, err := tensor.FromBytes[uint32](tensor.Bytes(s))
	if err != nil {
		panic(err)
	}
	return out
}

// typedAs are slices as tensors of another type of as many bytes.
func typedAs(dtype tensor.DType, s [][]int32) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, data := range s {
		t, err := tensor.View(dtype, tensor.Shape{len(data)}, tensor.Bytes(data))
		if err != nil {
			panic(err)
		}
		out = append(out, t)
	}
	return out
}

// What is kept is bounded, and what is given up comes back right.
func TestManyMoreThanAreKept(t *testing.T) {
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		r := rand.New(rand.NewPCG(1, 1))
		var sets [][][]float32
		for i := range 100 {
			sets = append(sets, [][]float32{make([]float32, i), make([]float32, 3*i+1)})
		}
		for range 600 {
			for _, o := range []gcl.Options{{}, {Method: methods.ClockwiseRing}} {
				data := sets[r.IntN(len(sets))]
				if r.IntN(3) == 0 { // which takes the place of something kept
					if err := gcl.AllReduceManyInPlace(ctx, withOptions(c, o), data, gcl.LogicalOr); err == nil {
						return errors.New("a logical operator on floats is no error")
					}
				}
				for _, d := range data {
					for i := range d {
						d[i] = float32(c.Rank() + i)
					}
				}
				if err := gcl.AllReduceManyInPlace(ctx, withOptions(c, o), data, gcl.Add); err != nil {
					return err
				}
				for _, d := range data {
					for i, v := range d {
						if v != float32(3+3*i) {
							return fmt.Errorf("element %d of %d is %v", i, len(d), v)
						}
					}
				}
			}
		}
		return nil
	})
}
