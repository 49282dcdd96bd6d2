package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// strides is a method whose messages are strided spans: those of Bruck and PAT, and an all-reduce by the middle rank.
var strides = methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
	switch r.Collective {
	case schedule.ReduceScatter:
		return methods.PAT(2).Schedule(r)
	case schedule.AllGather:
		if r.Size%2 == 0 {
			return methods.Bruck().Schedule(r)
		}
		return methods.PAT(0).Schedule(r)
	case schedule.AllReduce:
		return stridedStar(r.Size), nil
	}
	return methods.Bruck().Schedule(r)
})

// stridedStar is the all-reduce of 7 chunks in which the middle rank folds those of all ranks in their order, its own
// among them, and gives them back. Each message has chunks that lie apart, and numbers of one go round.
func stridedStar(k int) *schedule.Schedule {
	s := &schedule.Schedule{Collective: schedule.AllReduce, Size: k, Chunks: 7}
	middle := k / 2
	// Chunks 5, 6, 1 and 2, and 3, 4 and 0. The second lie in scratch memory first, and at the middle rank both.
	in := [2]schedule.Span{schedule.In(5, 4).Strided(2, 3), schedule.In(3, 3).Strided(2, 4)}
	for rank := range k {
		var first, second schedule.Round
		out := [2]schedule.Span{schedule.Out(5, 4).Strided(2, 3), schedule.Part(1, 0, 3, 3).Strided(2, 4)}
		if rank == middle {
			out[0] = schedule.Part(0, 0, 5, 4).Strided(2, 3)
		}
		for i := range in {
			if rank != middle {
				first.Moves = append(first.Moves, schedule.Step{Verb: schedule.Send, Peer: middle, Src: in[i]})
				second.Moves = append(second.Moves, schedule.Step{Verb: schedule.Recv, Peer: middle, Dst: out[i]})
				continue
			}
			for from := range k {
				st := schedule.Step{Verb: schedule.RecvReduce, Peer: from, Src: out[i], Dst: out[i]}
				switch {
				case from == middle:
					st = schedule.Step{Verb: schedule.Fold, Peer: -1, Src: in[i], Dst: out[i]}
				case from == 0:
					st = schedule.Step{Verb: schedule.Recv, Peer: from, Dst: out[i]}
				}
				first.Moves = append(first.Moves, st)
				if from != middle {
					second.Moves = append(second.Moves, schedule.Step{Verb: schedule.Send, Peer: from, Src: out[i]})
				}
			}
		}
		for _, have := range out {
			if have.Buf == schedule.Scratch {
				result := have
				result.Buf, result.Slot = schedule.Output, 0
				second.Then = append(second.Then, schedule.Step{Verb: schedule.Copy, Peer: -1, Src: have, Dst: result})
			}
		}
		s.Programs = append(s.Programs, schedule.Program{first, second})
	}
	return s
}

// TestStridedMessages: calls whose messages have chunks that lie apart give the right results, by messages and on peer
// memory, in segments and not, on one tensor and on several, of one type and of several.
func TestStridedMessages(t *testing.T) {
	t.Parallel()
	m := own(t, "strides")
	for _, n := range []int{2, 3, 4, 5, 8} {
		if underRace && n > 3 {
			continue
		}
		var w went
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			for _, o := range []gcl.Options{
				{Implementation: gcl.Syncless}, {Implementation: gcl.Syncful},
				{Implementation: gcl.Syncless, MaxBytesPerTile: 1}, {Implementation: gcl.Syncful, MaxBytesPerTile: 1},
				{Implementation: gcl.Syncless, Reproducible: true, StageFragments: true},
			} {
				o.Method, o.Trace = m, w.trace()
				c := withOptions(c, o)
				for _, elements := range []int{0, 1, n - 1, 7, 97, 700} {
					if err := ownForms(ctx, c, elements); err != nil {
						return fmt.Errorf("%+v, %d elements: %w", o, elements, err)
					}
				}
				if err := stridedMany(ctx, c); err != nil {
					return fmt.Errorf("%+v: %w", o, err)
				}
			}
			return nil
		}, gcl.WithMethod("strides", strides))
		for _, c := range []schedule.Collective{schedule.AllReduce, schedule.AllGather, schedule.AllToAll,
			schedule.ReduceScatter} {
			for _, path := range []string{"messages", "peer memory in rounds"} {
				if want := fmt.Sprintf("%v: strides, %s", c, path); !slices.Contains(w.list(), want) {
					t.Errorf("%d replicas: no %q in %q", n, want, w.list())
				}
			}
		}
	}
}

// stridedMany makes calls on several tensors.
func stridedMany(ctx context.Context, c *gcl.Comm) error {
	n := c.Size()
	data := func(step, length int) []int32 {
		out := make([]int32, length)
		for i := range out {
			out[i] = int32(step + i*3 + c.Rank()*1000)
		}
		return out
	}
	empty := func() [][]int32 { return [][]int32{make([]int32, 24*n), {}, make([]int32, n), make([]int32, 5000*n)} }
	for kind := range 6 {
		ins := [][]int32{data(kind, 24*n), {}, data(1, n), data(2, 5000*n)}
		if err := programStep(ctx, c, kind, gcl.Max, 0, ins, empty(), empty()); err != nil {
			return fmt.Errorf("kind %d: %w", kind, err)
		}
	}
	// Of several types, and of 1 to 8 bytes an element.
	small, wide, whole := make([]int8, 45), make([]float64, 61), data(0, 33)
	for i := range small {
		small[i] = int8(i%5 + c.Rank())
	}
	for i := range wide {
		wide[i] = float64(i + 100*c.Rank())
	}
	ranks := n * (n - 1) / 2
	var errs []error
	tensors := []*tensor.Tensor{flat(small), flat(wide), flat(whole)}
	if err := gcl.AllReduceTensorsInPlace(ctx, c, tensors, gcl.Add); err != nil {
		return err
	}
	for i, v := range small {
		if int(v) != n*(i%5)+ranks {
			errs = append(errs, fmt.Errorf("element %d of int8 is %d", i, v))
		}
	}
	for i, v := range wide {
		if int(v) != n*i+100*ranks {
			errs = append(errs, fmt.Errorf("element %d of float64 is %v", i, v))
		}
	}
	for i, v := range whole {
		if int(v) != 3*n*i+1000*ranks {
			errs = append(errs, fmt.Errorf("element %d of int32 is %d", i, v))
		}
	}
	return errors.Join(errs...)
}

// TestStridedMessageIsOne counts what each of 8 replicas sends in an all-gather: a message in each of three rounds.
func TestStridedMessageIsOne(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]methods.Generator{"one_bruck": methods.Bruck(), "one_pat": methods.PAT(0)} {
		m := own(t, name)
		replicas(t, 8, func(ctx context.Context, c *gcl.Comm) error {
			sent := 0
			c = withOptions(c, gcl.Options{Method: m, Implementation: gcl.Syncless, Trace: &gcl.Trace{
				Segment: func(_ gcl.TraceCall, _ int, s gcl.TraceSegment) {
					if s.Kind == transport.Send {
						sent++
					}
				}}})
			if _, err := gcl.AllGather(ctx, c, make([]int32, 100)); err != nil {
				return err
			}
			if sent != 3 {
				return fmt.Errorf("%s: replica %d sends %d messages, want 3", name, c.Rank(), sent)
			}
			return nil
		}, gcl.WithMethod(name, g))
	}
}
