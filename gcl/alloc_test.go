//go:build !race

package gcl_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
)

// step is one collective that is to allocate nothing.
type step struct {
	name string
	call func(context.Context, *gcl.Comm) error
}

// steadySteps are the To and InPlace forms with bytes of data, in buffers of one replica that are made here and now.
func steadySteps[T tensor.Element](bytes, ranks int, reductions []gcl.Operator, moves bool) []step {
	n := bytes / tensor.DTypeOf[T]().Size()
	parts := n / ranks * ranks // of an all-to-all
	in, out, shard, all := make([]T, n), make([]T, n), make([]T, (n+ranks-1)/ranks), make([]T, n*ranks)
	var counts []int // of which each rank sends the same, so that it receives its own from each
	var fromEach [][]int
	sum := 0
	for rank := range ranks {
		counts = append(counts, max(n/ranks-3*rank, 0))
		fromEach = append(fromEach, slices.Repeat([]int{counts[rank]}, ranks))
		sum += counts[rank]
	}
	var steps []step
	add := func(name string, call func(ctx context.Context, c *gcl.Comm) error) {
		steps = append(steps, step{fmt.Sprintf("%s %v", name, tensor.DTypeOf[T]()), call})
	}
	for _, op := range reductions {
		add("AllReduceTo "+op.String(), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTo(ctx, c, out, in, op)
		})
		add("AllReduceInPlace "+op.String(), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, out, op)
		})
		add("ReduceScatterTo "+op.String(), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceScatterTo(ctx, c, shard, in, op)
		})
		add("ReduceScatterVTo "+op.String(), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceScatterVTo(ctx, c, shard[:counts[c.Rank()]], in[:sum], counts, op)
		})
	}
	// Several tensors, three quarters of the bytes in one of them, and three empty; the last form is on tensors.
	cut := func(data []T) [][]T {
		a, b := len(data)/ranks/8*ranks, len(data)/ranks/4*ranks
		return [][]T{data[:a], nil, data[a:a], data[b:], data[a:b], {}}
	}
	ins, outs := cut(in[:parts]), cut(out[:parts])
	var shards, alls [][]T
	var tensors, rows []*tensor.Tensor // rows: as a gather of tensors has them
	for _, data := range ins {
		shards, alls = append(shards, make([]T, len(data)/ranks)), append(alls, make([]T, len(data)*ranks))
		tensors = append(tensors, flat(append([]T(nil), data...)))
		rows = append(rows, must(tensor.New(tensor.DTypeOf[T](), ranks, len(data))))
	}
	// once runs a Batch that is filled once.
	once := func(collective schedule.Collective, op gcl.Operator, root int,
		fill func(c *gcl.Comm, b *gcl.Batch)) func(ctx context.Context, c *gcl.Comm) error {
		var b *gcl.Batch
		return func(ctx context.Context, c *gcl.Comm) error {
			if b == nil {
				b = c.Batch(collective, op, root)
				fill(c, b)
			}
			return b.Run(ctx)
		}
	}
	batch := func(collective schedule.Collective, op gcl.Operator, root int,
		dsts, srcs [][]T) func(ctx context.Context, c *gcl.Comm) error {
		return once(collective, op, root, func(_ *gcl.Comm, b *gcl.Batch) { gcl.AppendAll(b, dsts, srcs) })
	}
	batchTensors := func(collective schedule.Collective, op gcl.Operator, root int,
		dsts, srcs []*tensor.Tensor) func(ctx context.Context, c *gcl.Comm) error {
		return once(collective, op, root, func(_ *gcl.Comm, b *gcl.Batch) {
			for i := range dsts {
				b.AppendTensor(dsts[i], srcs[i])
			}
		})
	}
	for _, op := range reductions {
		add("Batch of one "+op.String(), batch(schedule.AllReduce, op, 0, [][]T{out}, [][]T{in}))
		add("Batch of several "+op.String(), batch(schedule.ReduceScatter, op, 0, shards, ins))
		x := flat(in)
		y := flat(out)
		add("Do "+op.String(), func(ctx context.Context, c *gcl.Comm) error {
			return c.Do(ctx, schedule.AllReduce, y, x, op, 0)
		})
	}
	mapping := chunks.Mapping{parts / 3, 0, parts - parts/3}
	mapped := make([]T, (parts/3+ranks-1)/ranks+(parts-parts/3+ranks-1)/ranks)
	for _, op := range reductions {
		add("AllReduceManyTo "+op.String(), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyTo(ctx, c, outs, ins, op)
		})
		add("AllReduceManyInPlace "+op.String(), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyInPlace(ctx, c, outs, op)
		})
		add("ReduceScatterManyTo "+op.String(), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceScatterManyTo(ctx, c, shards, ins, op)
		})
		add("AllReduceTensorsInPlace "+op.String(), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTensorsInPlace(ctx, c, tensors, op)
		})
		add("ReduceTo "+op.String(), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceTo(ctx, c, out, in, op, 1)
		})
		add("ReduceInPlace "+op.String(), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceInPlace(ctx, c, out, op, 1)
		})
		add("Batch of a reduce "+op.String(), batch(schedule.Reduce, op, 1, outs, ins))
		add("Batch of a reduce of tensors "+op.String(), batchTensors(schedule.Reduce, op, 1, tensors, tensors))
		add("ReduceScatterMappedTo "+op.String(), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceScatterMappedTo(ctx, c, mapped, in[:parts], mapping, op)
		})
	}
	if moves {
		add("AllGatherManyTo", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllGatherManyTo(ctx, c, alls, ins)
		})
		add("Batch of an all-to-all", batch(schedule.AllToAll, 0, 0, outs, ins))
		add("Batch of an all-to-all in place", batch(schedule.AllToAll, 0, 0, outs, outs))
		add("Batch of a broadcast", batch(schedule.Broadcast, 0, 1, outs, ins))
		add("Batch of a broadcast of tensors", batchTensors(schedule.Broadcast, 0, 1, tensors, tensors))
		add("AllGatherMappedTo", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllGatherMappedTo(ctx, c, in[:parts], mapped, mapping)
		})
		add("AllGatherTo", func(ctx context.Context, c *gcl.Comm) error { return gcl.AllGatherTo(ctx, c, all, in) })
		add("AllToAllTo", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllToAllTo(ctx, c, out[:parts], in[:parts])
		})
		add("AllToAllInPlace", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllToAllInPlace(ctx, c, out[:parts])
		})
		add("BroadcastTo", func(ctx context.Context, c *gcl.Comm) error { return gcl.BroadcastTo(ctx, c, out, in, 1) })
		add("BroadcastInPlace", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.BroadcastInPlace(ctx, c, out, 1)
		})
		add("GatherTo", func(ctx context.Context, c *gcl.Comm) error { return gcl.GatherTo(ctx, c, all, in, 1) })
		add("Batch of a gather", batch(schedule.Gather, 0, 1, alls, ins))
		add("Batch of a gather of tensors", batchTensors(schedule.Gather, 0, 1, rows, tensors))
		add("ScatterTo", func(ctx context.Context, c *gcl.Comm) error { return gcl.ScatterTo(ctx, c, in, all, 1) })
		add("Batch of a scatter", batch(schedule.Scatter, 0, 1, ins, alls))
		add("Batch of a scatter of tensors", batchTensors(schedule.Scatter, 0, 1, tensors, rows))
		add("AllGatherVTo", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllGatherVTo(ctx, c, in[:sum], out[:counts[c.Rank()]], counts)
		})
		add("GatherVTo", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.GatherVTo(ctx, c, in[:sum], out[:counts[c.Rank()]], counts, 1)
		})
		add("ScatterVTo", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ScatterVTo(ctx, c, out[:counts[c.Rank()]], in[:sum], counts, 1)
		})
		add("AllToAllVTo", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllToAllVTo(ctx, c, out[:counts[c.Rank()]*ranks], in[:sum], counts, fromEach[c.Rank()])
		})
		add("Batch of an all-gather by counts", once(schedule.AllGather, 0, 0, func(c *gcl.Comm, b *gcl.Batch) {
			k := counts[c.Rank()]
			gcl.AppendV(b, all[:sum], in[:k], counts)
			gcl.AppendV(b, all[sum:2*sum], out[:k], counts)
		}))
		add("Batch of an all-to-all by counts", once(schedule.AllToAll, 0, 0, func(c *gcl.Comm, b *gcl.Batch) {
			k := counts[c.Rank()] * ranks
			gcl.AppendV(b, all[:k], in[:sum], counts, fromEach[c.Rank()])
			gcl.AppendV(b, all[k:2*k], out[:sum], counts, fromEach[c.Rank()])
		}))
		whole := flat(in[:sum])
		var part *tensor.Tensor
		add("Do by counts", func(ctx context.Context, c *gcl.Comm) error {
			if part == nil {
				part = flat(out[:counts[c.Rank()]])
			}
			return c.Do(ctx, schedule.AllGather, whole, part, 0, 0, counts)
		})
		add("AllToAllVInPlace", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllToAllVInPlace(ctx, c, out[:counts[0]*ranks], fromEach[0])
		})
		add("Barrier", func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) })
	}
	return steps
}

// steadyCases are the sizes in bytes, reproducible or not, for which a method is to allocate nothing: all of them for
// the methods that have ways of their own, else those that need several messages.
func steadyCases(m methods.Method) map[bool][]int {
	switch m {
	case methods.Auto, methods.Direct, methods.ClockwiseRing:
		return map[bool][]int{false: {0, 1, 1000, 1 << 20}, true: {0, 1000, 1 << 20}}
	}
	return map[bool][]int{false: {1000, 1 << 18}, true: {1000}}
}

// TestSteadyStateAllocatesNothing counts the allocations of four replicas together.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	const ranks = 4
	for _, o := range bothWays() {
		for _, reproducible := range []bool{false, true} {
			for _, bytes := range steadyCases(o.Method)[reproducible] {
				o.Reproducible = reproducible
				t.Run(fmt.Sprintf("method=%v/implementation=%v/reproducible=%v/size=%d",
					o.Method, o.Implementation, reproducible, bytes), func(t *testing.T) {
					steady(t, ranks, o, bytes, func(c *gcl.Comm) *gcl.Comm { return c })
				})
			}
		}
	}
}

// Nor do the checks of inputs and results allocate.
func TestChecksAllocateNothing(t *testing.T) {
	for _, o := range []gcl.Options{{}, {Method: methods.ClockwiseRing}, {Implementation: gcl.Syncless}} {
		o.CheckFinite, o.CheckEqual = true, 1
		for _, bytes := range []int{1, 1000, 1 << 18} {
			t.Run(fmt.Sprintf("method=%v/implementation=%v/size=%d", o.Method, o.Implementation, bytes),
				func(t *testing.T) { steady(t, 4, o, bytes, func(c *gcl.Comm) *gcl.Comm { return c }) })
		}
	}
}

// Nor do the calls of groups allocate, with a barrier of all between them.
func TestGroupsAllocateNothing(t *testing.T) {
	for _, o := range []gcl.Options{{}, {Method: methods.ClockwiseRing, Implementation: gcl.Syncful},
		{Implementation: gcl.Syncless}} {
		for _, bytes := range []int{1, 1000, 1 << 16} {
			t.Run(fmt.Sprintf("method=%v/implementation=%v/size=%d", o.Method, o.Implementation, bytes),
				func(t *testing.T) {
					steady(t, 4, o, bytes, func(c *gcl.Comm) *gcl.Comm {
						return grouped(c, commgroup.Group{Type: commgroup.Orthogonal, Size: 2})
					})
				})
		}
	}
}

// Nor do those of groups of different sizes.
func TestListedGroupsAllocateNothing(t *testing.T) {
	for _, o := range []gcl.Options{{}, {Method: methods.ClockwiseRing, Implementation: gcl.Syncful},
		{Implementation: gcl.Syncless}} {
		t.Run(fmt.Sprintf("method=%v/implementation=%v", o.Method, o.Implementation), func(t *testing.T) {
			steady(t, 5, o, 1000, func(c *gcl.Comm) *gcl.Comm {
				return grouped(c, lists([]int{0, 3}, []int{1, 2, 4}))
			})
		})
	}
}

// Nor do staging and segments allocate, in groups and in the phases of Hybrid.
func TestPiecemealAllocatesNothing(t *testing.T) {
	half := commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 2}
	for _, x := range []struct {
		options gcl.Options
		group   commgroup.Group
	}{
		{gcl.Options{}, commgroup.Group{}},
		{gcl.Options{Implementation: gcl.Hybrid}, commgroup.Group{}},
		{gcl.Options{Method: methods.ClockwiseRing}, half},
		{gcl.Options{Method: methods.MeetInMiddleRing, Implementation: gcl.Syncful}, commgroup.Group{}},
	} {
		o := x.options
		o.MaxBytesPerTile, o.StageFragments, o.MaxBroadcastSize = 7, true, 1<<20
		t.Run(fmt.Sprintf("method=%v/implementation=%v", o.Method, o.Implementation), func(t *testing.T) {
			steady(t, 4, o, 1000, func(c *gcl.Comm) *gcl.Comm {
				return grouped(c, x.group)
			}, gcl.WithTopology(hosts(t, 2, 2)))
		})
	}
}

// Nor do methods of the program's own: one that does all collectives, one that does one, and one of strided messages.
func TestOwnMethodsAllocateNothing(t *testing.T) {
	for name, g := range map[string]methods.Generator{"like_direct": like(methods.Direct), "star": star,
		"strides": strides} {
		for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful, gcl.Hybrid} {
			t.Run(fmt.Sprintf("method=%s/implementation=%v", name, i), func(t *testing.T) {
				steady(t, 4, gcl.Options{Method: own(t, name), Implementation: i}, 1000, func(c *gcl.Comm) *gcl.Comm {
					return c
				}, gcl.WithMethod(name, g), gcl.WithTopology(hosts(t, 2, 2)))
			})
		}
	}
}

// Nor do schedules that come with the call, of contracts of a program's own and of built-in collectives.
func TestExecuteAllocatesNothing(t *testing.T) {
	const n = 4
	reduce := must(methods.Build(methods.Spec{Method: methods.Direct, Collective: schedule.AllReduce, Size: n}))
	for _, o := range []gcl.Options{
		{}, {Implementation: gcl.Syncful}, {StageFragments: true, MaxBytesPerTile: 7}, {Reproducible: true},
	} {
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			c = withOptions(c, o)
			for _, s := range append(ownSchedules(n), reduce) {
				op, in, out := gcl.Operator(0), 60, 60
				if s.Contract().Combines {
					op = gcl.Mean
					if o.Reproducible && s.Custom != nil {
						s = scanOf(n, 2, true)
					}
				}
				if s.Custom != nil {
					count := func(list []int) (elements int) {
						for _, f := range list {
							elements += 5 * s.Custom.Size(f)
						}
						return elements
					}
					in, out = count(s.Custom.Inputs[c.Rank()]), count(s.Custom.Outputs[c.Rank()])
				}
				src, dst := make([]tensor.BFloat16, in), make([]tensor.BFloat16, out)
				a, b := flat(src), flat(dst)
				for _, call := range []func(context.Context, *gcl.Comm) error{
					func(ctx context.Context, c *gcl.Comm) error { return gcl.Execute(ctx, c, s, dst, src, op) },
					func(ctx context.Context, c *gcl.Comm) error { return c.Execute(ctx, s, b, a, op) },
				} {
					if err := measure(ctx, c, step{s.Shape(), call}, 2, t); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

// steady measures collectives in the group that in makes of all replicas.
func steady(t *testing.T, n int, o gcl.Options, bytes int, in func(*gcl.Comm) *gcl.Comm, opts ...gcl.CommOption) {
	const runs = 2
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, o)
		group := in(c)
		ranks := group.Size()
		var steps []step
		switch {
		case o.Reproducible: // moves do not know of it
			steps = append(steadySteps[float32](bytes, ranks, []gcl.Operator{gcl.SquareAdd}, false),
				steadySteps[tensor.Float16](bytes, ranks, []gcl.Operator{gcl.Mean}, false)...)
		case bytes == 1:
			steps = steadySteps[uint8](bytes, ranks, []gcl.Operator{gcl.Add, gcl.SquareAdd, gcl.Local}, true)
		default:
			steps = append(steadySteps[float32](bytes, ranks, []gcl.Operator{gcl.Mean, gcl.SquareAdd}, true),
				steadySteps[tensor.BFloat16](bytes, ranks, []gcl.Operator{gcl.Max}, false)...)
		}
		for _, s := range steps {
			if call := s.call; ranks < n { // the other groups are to keep in step with the first, which counts
				s.call = func(ctx context.Context, c *gcl.Comm) error {
					if err := call(ctx, group); err != nil {
						return err
					}
					return c.Barrier(ctx)
				}
			}
			if err := measure(ctx, c, s, runs, t); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		return nil
	}, opts...)
}

// callsPerRun makes up for AllocsPerRun's rounding down, and for replicas that are a call ahead of the first.
const callsPerRun = 2

// measure has every replica make the same calls, and counts on the first. A replica that another program keeps from
// running for milliseconds makes those that wait for it look for a deadlock, which allocates; hence more
// tries.
func measure(ctx context.Context, c *gcl.Comm, s step, runs int, t *testing.T) error {
	const tries = 10
	again := make([]bool, 1)
	for try := 1; ; try++ {
		var err error
		call := func() {
			for range callsPerRun {
				if err == nil {
					err = s.call(ctx, c)
				}
			}
		}
		allocations := 0.0
		if c.Rank() == 0 {
			allocations = testing.AllocsPerRun(runs, call)
		} else {
			for range runs + 1 { // AllocsPerRun makes one more, to warm up
				call()
			}
		}
		if err != nil {
			return err
		}
		again[0] = allocations > 0 && try < tries
		if c.Rank() == 0 && allocations > 0 && try == tries {
			t.Errorf("%s: %v allocations by %d replicas in one call", s.name, allocations, c.Size())
		}
		if err := gcl.BroadcastInPlace(ctx, c, again, 0); err != nil || !again[0] {
			return err
		}
	}
}

// Nor do calls on more sets of tensors than are kept.
func TestManySetsAllocateNothing(t *testing.T) {
	for _, o := range []gcl.Options{{}, {Method: methods.ClockwiseRing},
		{Method: methods.Direct, Implementation: gcl.Syncless, Reproducible: true}} {
		replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			c = withOptions(c, o)
			var sets [][][]tensor.BFloat16
			for i := range 50 {
				sets = append(sets, [][]tensor.BFloat16{make([]tensor.BFloat16, 100+i),
					make([]tensor.BFloat16, 9000-10*i)})
			}
			all := step{"AllReduceManyInPlace of 50 sets in turn", func(ctx context.Context, c *gcl.Comm) error {
				for _, s := range sets {
					if err := gcl.AllReduceManyInPlace(ctx, c, s, gcl.Add); err != nil {
						return err
					}
				}
				return nil
			}}
			for range 3 {
				if err := all.call(ctx, c); err != nil {
					return err
				}
			}
			return measure(ctx, c, all, 20, t)
		})
	}
}

// Hybrid allocates nothing either: in phases, and where it goes another way.
func TestHybridAllocatesNothing(t *testing.T) {
	for _, m := range []methods.Method{methods.Auto, methods.ClockwiseRing} {
		for _, reproducible := range []bool{false, true} {
			for _, bytes := range []int{0, 1, 1000, 1 << 18} {
				if reproducible && bytes < 1000 {
					continue
				}
				o := gcl.Options{Method: m, Implementation: gcl.Hybrid, Reproducible: reproducible}
				for _, machine := range []topology.Topology{hosts(t, 2, 2), dealtOut(t, 0, 1, 0, 1)} {
					name := fmt.Sprintf("method=%v/reproducible=%v/size=%d/domains=%v", m, reproducible, bytes,
						domainsOf(machine))
					t.Run(name, func(t *testing.T) {
						steady(t, 4, o, bytes, func(c *gcl.Comm) *gcl.Comm { return c }, gcl.WithTopology(machine))
					})
				}
			}
		}
	}
}
