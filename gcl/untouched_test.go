package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// area is the memory of a replica from which a form of a collective takes its buffers, one after the other.
type area struct{ rest []float32 }

func (a *area) take(n int) []float32 {
	out := a.rest[:n:n]
	a.rest = a.rest[n:]
	return out
}

// takeAll takes a slice for each length.
func (a *area) takeAll(lengths []int) [][]float32 {
	out := make([][]float32, len(lengths))
	for i, n := range lengths {
		out[i] = a.take(n)
	}
	return out
}

// takeTensors takes a tensor of one dimension for each length.
func (a *area) takeTensors(lengths []int) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(lengths))
	for i, n := range lengths {
		var err error
		if out[i], err = tensor.View(tensor.F32, tensor.Shape{n}, tensor.Bytes(a.take(n))); err != nil {
			panic(err)
		}
	}
	return out
}

// reshaped is views of tensors with the ranks as their first dimension.
func reshaped(ts []*tensor.Tensor, ranks int) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(ts))
	for i, s := range ts {
		var err error
		if out[i], err = tensor.View(tensor.F32, tensor.Shape{ranks, s.Len() / ranks}, s.Bytes()); err != nil {
			panic(err)
		}
	}
	return out
}

// form is a collective in one of its forms, on buffers of the caller's own.
type form struct {
	name string
	call func(ctx context.Context, c *gcl.Comm, a *area) error
}

// forms lists all forms with a destination of the caller's, for n ranks, of size elements where ranks need not divide
// them.
func forms(n, size int) []form {
	even := (size + n - 1) / n * n
	shards := func(lengths []int) (out []int) {
		for _, l := range lengths {
			out = append(out, chunks.PerRank(l, n))
		}
		return out
	}
	times := func(lengths []int) (out []int) {
		for _, l := range lengths {
			out = append(out, l*n)
		}
		return out
	}
	odd, whole := []int{size, 1, size + 2, 0}, []int{even, n, 0}
	mapping := chunks.Mapping{size, 0, 3}
	total, shard := size+3, chunks.PerRank(size, n)+chunks.PerRank(3, n)
	own := func(all []float32, c *gcl.Comm, per int) []float32 {
		lo := min(c.Rank()*per, len(all))
		return all[lo : lo+per : lo+per]
	}
	return []form{
		{"AllReduceTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.AllReduceTo(ctx, c, a.take(size), a.take(size), gcl.Mean)
		}},
		{"AllReduceInPlace", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.AllReduceInPlace(ctx, c, a.take(size), gcl.SquareAdd)
		}},
		{"ReduceScatterTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.ReduceScatterTo(ctx, c, a.take(chunks.PerRank(size, n)), a.take(size), gcl.Mean)
		}},
		{"ReduceScatterTo/own place", func(ctx context.Context, c *gcl.Comm, a *area) error {
			data := a.take(even)
			return gcl.ReduceScatterTo(ctx, c, own(data, c, even/n), data, gcl.Add)
		}},
		{"AllGatherTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.AllGatherTo(ctx, c, a.take(size*n), a.take(size))
		}},
		{"AllGatherTo/own place", func(ctx context.Context, c *gcl.Comm, a *area) error {
			all := a.take(size * n)
			return gcl.AllGatherTo(ctx, c, all, own(all, c, size))
		}},
		{"AllToAllTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.AllToAllTo(ctx, c, a.take(even), a.take(even))
		}},
		{"AllToAllInPlace", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.AllToAllInPlace(ctx, c, a.take(even))
		}},
		{"BroadcastTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.BroadcastTo(ctx, c, a.take(size), a.take(size), 1)
		}},
		{"BroadcastInPlace", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.BroadcastInPlace(ctx, c, a.take(size), 1)
		}},
		{"AllReduceManyTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.AllReduceManyTo(ctx, c, a.takeAll(odd), a.takeAll(odd), gcl.Add)
		}},
		{"AllReduceManyInPlace", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.AllReduceManyInPlace(ctx, c, a.takeAll(odd), gcl.Mean)
		}},
		{"ReduceScatterManyTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.ReduceScatterManyTo(ctx, c, a.takeAll(shards(odd)), a.takeAll(odd), gcl.Add)
		}},
		{"AllGatherManyTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.AllGatherManyTo(ctx, c, a.takeAll(times(odd)), a.takeAll(odd))
		}},
		{"all-to-all by a Batch", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return batchTo(ctx, c, schedule.AllToAll, a.takeAll(whole), a.takeAll(whole), 0, 0)
		}},
		{"all-to-all by a Batch, in place", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return batchInPlace(ctx, c, schedule.AllToAll, a.takeAll(whole), 0, 0)
		}},
		{"broadcast by a Batch", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return batchTo(ctx, c, schedule.Broadcast, a.takeAll(odd), a.takeAll(odd), 0, 1)
		}},
		{"broadcast by a Batch, in place", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return batchInPlace(ctx, c, schedule.Broadcast, a.takeAll(odd), 0, 1)
		}},
		{"AllReduceTensorsTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.AllReduceTensorsTo(ctx, c, a.takeTensors(odd), a.takeTensors(odd), gcl.Add)
		}},
		{"AllReduceTensorsInPlace", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.AllReduceTensorsInPlace(ctx, c, a.takeTensors(odd), gcl.Add)
		}},
		{"ReduceScatterTensorsTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.ReduceScatterTensorsTo(ctx, c, a.takeTensors(shards(odd)), a.takeTensors(odd), gcl.Mean)
		}},
		{"AllGatherTensorsTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.AllGatherTensorsTo(ctx, c, reshaped(a.takeTensors(times(odd)), n), a.takeTensors(odd))
		}},
		{"all-to-all of tensors by a Batch", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return batchTensorsTo(ctx, c, schedule.AllToAll, reshaped(a.takeTensors(whole), n),
				reshaped(a.takeTensors(whole), n), 0, 0)
		}},
		{"broadcast of tensors by a Batch", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return batchTensorsTo(ctx, c, schedule.Broadcast, a.takeTensors(odd), a.takeTensors(odd), 0, 1)
		}},
		{"ReduceScatterMappedTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.ReduceScatterMappedTo(ctx, c, a.take(shard), a.take(total), mapping, gcl.Add)
		}},
		{"AllGatherMappedTo", func(ctx context.Context, c *gcl.Comm, a *area) error {
			return gcl.AllGatherMappedTo(ctx, c, a.take(total), a.take(shard), mapping)
		}},
	}
}

// disagreements are the ways in which one replica is in another call than those who make a form's.
var disagreements = []struct {
	name string
	call func(ctx context.Context, c *gcl.Comm, f form, a *area) error
}{
	{"options", func(ctx context.Context, c *gcl.Comm, f form, a *area) error {
		o := c.Options()
		o.Reproducible = !o.Reproducible
		return f.call(ctx, withOptions(c, o), a)
	}},
	{"collective", func(ctx context.Context, c *gcl.Comm, _ form, _ *area) error { return c.Barrier(ctx) }},
	{"order", func(ctx context.Context, c *gcl.Comm, f form, a *area) error {
		refuse(ctx, c)
		return f.call(ctx, c, a)
	}},
}

// TestSyncfulWritesNothing: after a mismatch of replicas that step together no byte of anybody's buffers is another, in
// all forms of all collectives, of lengths that the ranks do not divide too.
func TestSyncfulWritesNothing(t *testing.T) {
	const n, odd, room = 4, 2, 60000
	type setting struct {
		name    string
		options gcl.Options
		plain   bool
	}
	var settings []setting
	for _, m := range []methods.Method{methods.Auto, methods.ClockwiseRing, methods.RecursiveDoubling} {
		for _, staged := range []bool{false, true} {
			o := gcl.Options{Method: m, Implementation: gcl.Syncful, StageFragments: staged}
			settings = append(settings, setting{fmt.Sprintf("method=%v/staged=%v", m, staged), o, false})
		}
	}
	settings = append(settings,
		setting{"method=direct/messages", gcl.Options{Method: methods.Direct, Implementation: gcl.Syncful}, true})
	tried := 0
	for i, s := range settings {
		for _, size := range []int{7, 5001} {
			for k, f := range forms(n, size) {
				for j, d := range disagreements {
					tried++
					if few := i > 0 && !*full; few && (i+j+k)%len(disagreements) != 0 ||
						few && testing.Short() && tried%4 != 0 {
						continue // all disagreements by the first setting, one in turn by the others
					}
					var memory, before [n][]float32
					for r := range memory {
						memory[r] = make([]float32, room)
						for i := range memory[r] {
							memory[r][i] = float32(1 + r + i)
						}
						before[r] = slices.Clone(memory[r])
					}
					var opts []gcl.CommOption
					if s.plain {
						opts = append(opts, broken(t, n, 1))
					}
					errs := untold(t, n, func(ctx context.Context, c *gcl.Comm) error {
						c, a := withOptions(c, s.options), &area{memory[c.Rank()]}
						if c.Rank() == odd {
							return d.call(ctx, c, f, a)
						}
						return f.call(ctx, c, a)
					}, opts...)
					where := fmt.Sprintf("%s/%s/size=%d/other %s", f.name, s.name, size, d.name)
					for r, err := range errs {
						// a broadcast of few bytes, for whom did not take it from somebody who disagrees
						if err == nil {
							continue
						}
						if !errors.Is(err, gcl.ErrMismatch) {
							t.Errorf("%s: replica %d: %v, want ErrMismatch", where, r, err)
						}
						if err := check("its memory", memory[r], before[r]); err != nil {
							t.Errorf("%s: replica %d: is written: %v", where, r, err)
						}
					}
					if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
						t.Errorf("%s: no error", where)
					}
				}
			}
		}
	}
}

// untold is failures where a replica need not hear of a mismatch before it leaves: then Run says so.
func untold(t testing.TB, n int, body func(context.Context, *gcl.Comm) error, opts ...gcl.CommOption) []error {
	t.Helper()
	ctx, stop := lookOn(t)
	defer stop()
	errs := make([]error, n)
	var busy sync.WaitGroup
	busy.Add(n)
	err := gcl.Run(ctx, n, func(ctx context.Context, c *gcl.Comm) error {
		errs[c.Replica()] = body(ctx, c)
		busy.Done()
		busy.Wait()
		return nil
	}, opts...)
	if err != nil && !errors.Is(err, gcl.ErrMismatch) {
		t.Errorf("Run: %v, although every body returned nil", err)
	}
	return errs
}
