package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport/tcp"
)

// badCounts are calls that every rank of a group of four refuses by itself.
func badCounts() []badCall {
	f := func(n int) []float32 { return make([]float32, n) }
	counts, total := []int{1, 2, 0, 3}, 6
	own := func(c *gcl.Comm) []float32 { return f(counts[c.Rank()]) }
	type comm = *gcl.Comm
	type ctxt = context.Context
	say := func(parts ...string) []string { return parts }
	return []badCall{
		{"no counts", func(ctx ctxt, c comm) error {
			_, err := gcl.AllGatherV(ctx, c, own(c), nil)
			return err
		}, say("0 counts, want 4: one for each rank")},
		{"a count too many", func(ctx ctxt, c comm) error {
			_, err := gcl.ScatterV(ctx, c, f(total), append(slices.Clone(counts), 0), 1)
			return err
		}, say("5 counts, want 4: one for each rank")},
		{"negative", func(ctx ctxt, c comm) error {
			_, err := gcl.ReduceScatterV(ctx, c, f(total), []int{1, 2, -1, 4}, gcl.Add)
			return err
		}, say("-1 in the counts of rank 2, want 0 or more")},
		{"overflow", func(ctx ctxt, c comm) error {
			_, err := gcl.ReduceScatterV(ctx, c, f(total), []int{math.MaxInt, 3, math.MaxInt, 4}, gcl.Add)
			return err
		}, say("the counts take more than ")},
		{"more than a buffer", func(ctx ctxt, c comm) error {
			return gcl.AllGatherVTo(ctx, c, nil, f(1), []int{1, 1, 1, math.MaxInt / 2})
		}, say("the counts take more than ")},
		{"all-gather of another length", func(ctx ctxt, c comm) error {
			_, err := gcl.AllGatherV(ctx, c, f(5), counts)
			return err
		}, say("the input has 5 elements, want ", ": the count of rank ")},
		{"all-gather into a short buffer", func(ctx ctxt, c comm) error {
			return gcl.AllGatherVTo(ctx, c, f(5), own(c), counts)
		}, say("the destination has 5 elements, want 6: the sum of the counts")},
		{"reduce-scatter of a short buffer", func(ctx ctxt, c comm) error {
			return gcl.ReduceScatterVTo(ctx, c, own(c), f(5), counts, gcl.Add)
		}, say("the input has 5 elements, want 6: the sum of the counts")},
		{"reduce-scatter into another length", func(ctx ctxt, c comm) error {
			return gcl.ReduceScatterVTo(ctx, c, f(4), f(6), counts, gcl.Add)
		}, say("the destination has 4 elements, want ", ": the count of rank ")},
		{"reduce-scatter by an operator that does not take it", func(ctx ctxt, c comm) error {
			return gcl.ReduceScatterVTo(ctx, c, own(c), f(6), counts, gcl.LogicalOr)
		}, say("LOGICAL_OR", "float32")},
		{"gather into another length, at the root or not", func(ctx ctxt, c comm) error {
			return gcl.GatherVTo(ctx, c, f(5), own(c), counts, 3)
		}, say("the destination has 5 elements, want ", "6: ")},
		{"scatter of another length, at the root or not", func(ctx ctxt, c comm) error {
			return gcl.ScatterVTo(ctx, c, own(c), f(5), counts, 0)
		}, say("the input has 5 elements, want ", "6: ")},
		{"gather to no rank", func(ctx ctxt, c comm) error {
			return gcl.GatherVTo(ctx, c, f(6), own(c), counts, 4)
		}, say("root 4 is not a rank of the group, 0 to 3")},
		{"all-to-all of a short buffer", func(ctx ctxt, c comm) error {
			return gcl.AllToAllVTo(ctx, c, f(6), f(5), counts, counts)
		}, say("the input has 5 elements, want 6: the sum of the counts sent")},
		{"all-to-all into a short buffer", func(ctx ctxt, c comm) error {
			return gcl.AllToAllVTo(ctx, c, f(5), f(6), counts, counts)
		}, say("the destination has 5 elements, want 6: the sum of the counts received")},
		{"all-to-all, nothing received", func(ctx ctxt, c comm) error {
			return gcl.AllToAllVTo(ctx, c, nil, f(6), counts, nil)
		}, say("0 counts received, want 4: one for each rank")},
		{"all-to-all, negative", func(ctx ctxt, c comm) error {
			_, err := gcl.AllToAllV(ctx, c, f(5), []int{-1, 2, 3, 1}, counts)
			return err
		}, say("-1 in the counts sent of rank 0, want 0 or more")},
		{"all-to-all, more from itself than to itself", func(ctx ctxt, c comm) error {
			received := slices.Clone(counts)
			received[c.Rank()]++
			return gcl.AllToAllVTo(ctx, c, f(7), f(6), counts, received)
		}, say(" sends itself ", " elements and receives ", " from itself")},
		{"all-to-all in place with other counts", func(ctx ctxt, c comm) error {
			data, received := f(6), slices.Clone(counts)
			a, b := (c.Rank()+1)%4, (c.Rank()+2)%4
			received[a], received[b] = counts[b]+1, counts[a]-1
			if received[b] < 0 {
				received[a], received[b] = counts[b]-1, counts[a]+1
			}
			return gcl.AllToAllVTo(ctx, c, data, data, counts, received)
		}, say("in place an all-to-all receives as much from each rank as it sends to it: ")},
		{"all-to-all, one element later", func(ctx ctxt, c comm) error {
			m := f(20)
			return gcl.AllToAllVTo(ctx, c, m[1:7], m[:6], counts, counts)
		}, say("overlaps it", "4 bytes after", "the input itself")},
		{"all-gather, one off the own place", func(ctx ctxt, c comm) error {
			m, even := f(20), []int{2, 2, 2, 3}
			at := 2*c.Rank() + 1
			return gcl.AllGatherVTo(ctx, c, m[:9], m[at:at+even[c.Rank()]], even)
		}, say("overlap", "hold the input as the rank's own shard")},
		{"reduce-scatter, as if parts were equal", func(ctx ctxt, c comm) error {
			m, rising := f(20), []int{3, 2, 2, 2}
			at := rising[c.Rank()] * (c.Rank() + 1)
			return gcl.ReduceScatterVTo(ctx, c, m[at:at+rising[c.Rank()]], m[:9], rising, gcl.Add)
		}, say("overlap", "be the rank's own shard of the input")},
	}
}

// TestBadCountsByAll: nothing is sent, and the next call works.
func TestBadCountsByAll(t *testing.T) {
	count, endpoints := counted(t, 4)
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		for _, bad := range badCounts() {
			err := bad.call(ctx, c)
			if why := isArgumentError(err); why != nil {
				return fmt.Errorf("%s: %w", bad.name, why)
			}
			for _, part := range bad.says {
				if !strings.Contains(err.Error(), part) {
					return fmt.Errorf("%s: %q does not say %q", bad.name, err, part)
				}
			}
		}
		if n := count.Load(); n != 0 {
			return fmt.Errorf("%d transfers by bad calls", n)
		}
		return goodCall(ctx, c)
	}, gcl.WithEndpoints(heldBack(endpoints)))
}

// TestNoMemoryForBadCounts: a call that is refused for its counts or its input makes no result of the length that they
// say.
func TestNoMemoryForBadCounts(t *testing.T) {
	const large = 1 << 25 // bytes
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		one, counts := []int8{1}, []int{large, large}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var errs [5]error
		_, errs[0] = gcl.AllGatherV(ctx, c, one, counts)
		_, errs[1] = gcl.ReduceScatterV(ctx, c, one, counts, gcl.Add)
		_, errs[2] = gcl.GatherV(ctx, c, one, counts, c.Rank())
		_, errs[3] = gcl.ScatterV(ctx, c, one, counts, c.Rank())
		_, errs[4] = gcl.AllToAllV(ctx, c, one, counts, counts)
		runtime.ReadMemStats(&after)
		for i, err := range errs {
			const want = "the input has 1 elements, want "
			if why := isArgumentError(err); why != nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("call %d: %v", i, err)
			}
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > large/2 {
			return fmt.Errorf("%d bytes for results of calls that are refused", made)
		}
		return goodCall(ctx, c)
	})
}

// TestTensorsOfTooManyRows: such a call is refused as others are, and so takes a number too.
func TestTensorsOfTooManyRows(t *testing.T) {
	const most = min(1<<40, math.MaxInt/2)
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		in, counts := must(tensor.New(tensor.F32, 1, 1<<10)), []int{1, most}
		var err error
		if c.Rank() == 0 {
			err = c.Do(ctx, schedule.AllGather, in, in, 0, 0, counts)
		} else {
			b := c.Batch(schedule.AllGather, 0, 0)
			b.AppendTensorV(in, in, counts)
			err = b.Run(ctx)
		}
		if why := isArgumentError(err); why != nil || !strings.Contains(err.Error(), "the counts take more than ") {
			return fmt.Errorf("%v", err)
		}
		return goodCall(ctx, c)
	})
}

// countsVariants are calls any two of which differ, on buffers of the same lengths as far as that can be: a rank has
// nothing but the counts of others to tell.
func countsVariants(n int) (out []variant) {
	base := make([]int, n)
	for r := range base {
		base[r] = 2
	}
	moved := slices.Clone(base) // between two ranks, so that n-2 of them see no difference in their own part
	moved[0], moved[n-1] = 1, 3
	add := func(name string, part string, call func(ctx context.Context, c *gcl.Comm) error) {
		out = append(out, variant{name: name, text: []string{part}, call: call})
	}
	f := func(n int) []float32 { return make([]float32, n) }
	for name, counts := range map[string][]int{"even": base, "uneven": moved} {
		add("all-gather, "+name, fmt.Sprintf("all-gather #1 (float32 x %d by counts, ", 2*n),
			func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.AllGatherV(ctx, c, f(counts[c.Rank()]), counts)
				return err
			})
		add("reduce-scatter, "+name, fmt.Sprintf("reduce-scatter #1 (ADD float32 x %d by counts, ", 2*n),
			func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.ReduceScatterV(ctx, c, f(2*n), counts, gcl.Add)
				return err
			})
		add("gather, "+name, fmt.Sprintf("gather #1 (float32 x %d by counts, root 1, ", 2*n),
			func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.GatherV(ctx, c, f(counts[c.Rank()]), counts, 1)
				return err
			})
		add("scatter, "+name, fmt.Sprintf("scatter #1 (float32 x %d by counts, root 1, ", 2*n),
			func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.ScatterV(ctx, c, f(2*n), counts, 1)
				return err
			})
	}
	add("all-to-all", "all-to-all #1 (float32 by counts, ", func(ctx context.Context, c *gcl.Comm) error {
		_, err := gcl.AllToAllV(ctx, c, f(2*n), base, base)
		return err
	})
	add("all-to-all of equal parts", fmt.Sprintf("all-to-all #1 (float32 x %d, direct, ", 2*n),
		func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllToAll(ctx, c, f(2*n))
			return err
		})
	add("all-gather of equal parts", "all-gather #1 (float32 x 2, ", func(ctx context.Context, c *gcl.Comm) error {
		_, err := gcl.AllGather(ctx, c, f(2))
		return err
	})
	slices.SortFunc(out, func(a, b variant) int { return strings.Compare(a.name, b.name) })
	return out
}

// TestCountsMismatch tries every pair of calls, by messages and on peer memory, in bubbles in which a hang would end at
// once. Where the counts alone differ the error says that they do.
func TestCountsMismatch(t *testing.T) {
	tried := 0
	for _, n := range []int{2, 4} {
		for _, o := range []gcl.Options{{Implementation: gcl.Syncless}, {Implementation: gcl.Syncful}} {
			all := countsVariants(n)
			for i := range all {
				all[i].call = func(call func(context.Context, *gcl.Comm) error) func(context.Context, *gcl.Comm) error {
					return func(ctx context.Context, c *gcl.Comm) error { return call(ctx, withOptions(c, o)) }
				}(all[i].call)
			}
			for i, theirs := range all {
				for j, ours := range all {
					if i == j || underRace && (i*7+j*3)%4 != 0 {
						continue
					}
					tried++
					var wrong []string
					synctest.Test(t, func(t *testing.T) {
						wrong = confuse(watched(t), t, n, oddOne(n, i, j), theirs, ours)
					})
					for _, w := range wrong {
						t.Errorf("%v: %s", o.Implementation, w)
					}
				}
			}
		}
	}
	t.Logf("%d cases", tried)
}

// TestCountsMismatchSaysSo: on all ranks.
func TestCountsMismatchSaysSo(t *testing.T) {
	for _, o := range []gcl.Options{{}, {Implementation: gcl.Syncless}} {
		errs := failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			counts := []int{1, 1, 2}
			if c.Rank() == 2 {
				counts = []int{2, 0, 2}
			}
			_, err := gcl.AllGatherV(ctx, withOptions(c, o), make([]int16, counts[c.Rank()]), counts)
			return errors.Join(err, last(ctx, c))
		})
		for r, err := range errs {
			if !errors.Is(err, gcl.ErrMismatch) ||
				!strings.Contains(err.Error(), "counts or options (or roots of earlier broadcasts) differ") {
				t.Errorf("%v: replica %d: %v", o.Implementation, r, err)
			}
		}
	}
}

// TestPartMismatch has two ranks disagree about one part of an all-to-all, by one element or by all of it. All ranks
// get a mismatch that names the part and both lengths: those of the two at once or, where what is sent is buffered,
// from their next call.
func TestPartMismatch(t *testing.T) {
	const n, from, to = 4, 2, 1
	for _, lengths := range [][2]int{{3, 2}, {3, 4}, {3, 0}, {0, 3}, {40000, 10000}} {
		for _, o := range []gcl.Options{{}, {Implementation: gcl.Syncful}, {Method: methods.ClockwiseRing},
			{StageFragments: true}} {
			body := func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, o)
				sent, received := []int{1, 1, 1, 1}, []int{1, 1, 1, 1}
				in, out := n, n
				switch c.Rank() {
				case from:
					sent[to] = lengths[0]
					in += lengths[0] - 1
				case to:
					received[from] = lengths[1]
					out += lengths[1] - 1
				}
				return errors.Join(gcl.AllToAllVTo(ctx, c, make([]int64, out), make([]int64, in), sent, received),
					last(ctx, c))
			}
			want := fmt.Sprintf("gcl: all-to-all #1: counts differ: replica %d sends %d elements, replica %d expects %d elements; "+
				"both in all-to-all #1 (int64 by counts, direct, ", from, lengths[0], to, lengths[1])
			look := func(t *testing.T, errs []error) {
				for r, err := range errs {
					if !errors.Is(err, gcl.ErrMismatch) || !strings.Contains(err.Error(), want) {
						t.Errorf("%v by %+v: replica %d: %v\nwant %s", lengths, o, r, err, want)
					}
				}
			}
			t.Run("inproc", func(t *testing.T) { look(t, failures(t, n, body)) })
			t.Run("unix", func(t *testing.T) { look(t, failures(t, n, body, sockets(t, tcp.Unix, n))) })
		}
	}
}

// TestTypesOfCounts: members whose operands by counts are of the same types in another order disagree.
func TestTypesOfCounts(t *testing.T) {
	for _, err := range failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		b, counts := c.Batch(schedule.AllGather, 0, 0), []int{1, 2}
		floats := func() { gcl.AppendV(b, make([]float32, 3), make([]float32, counts[c.Rank()]), counts) }
		ints := func() { gcl.AppendV(b, make([]int32, 3), make([]int32, counts[c.Rank()]), counts) }
		if c.Rank() == 0 {
			floats()
			ints()
		} else {
			ints()
			floats()
		}
		return errors.Join(b.Run(ctx), last(ctx, c))
	}) {
		if !errors.Is(err, gcl.ErrMismatch) {
			t.Errorf("%v, want ErrMismatch", err)
		}
	}
}

// TestNativeByCounts: an engine takes counts that are equal, and refuses others before anything is sent. It refuses
// those of an all-to-all, which other ranks do not know.
func TestNativeByCounts(t *testing.T) {
	const n = 3
	ends, room := engines(t, n)
	equal := newCountsCase[int32](gcl.Add, 1, []int{4, 4, 4})
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, native)
		shard, err1 := gcl.ReduceScatterV(ctx, c, equal.in[c.Rank()], equal.counts, gcl.Add)
		gathered, err2 := gcl.AllGatherV(ctx, c, equal.parts[c.Rank()], equal.counts)
		if err := errors.Join(err1, err2, check("reduce-scatter", shard, equal.shards[c.Rank()]),
			check("all-gather", gathered, equal.gathered[c.Rank()])); err != nil {
			return err
		}
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		before := room.Calls.Load()
		uneven := []int{1, 2, 3}
		_, err := gcl.AllGatherV(ctx, c, make([]int32, uneven[c.Rank()]), uneven)
		if isArgumentError(err) != nil || !strings.Contains(err.Error(), "the counts of an all-gather differ") {
			return fmt.Errorf("an all-gather by other counts: %v", err)
		}
		_, err = gcl.AllToAllV(ctx, c, make([]int32, n), []int{1, 1, 1}, []int{1, 1, 1})
		if isArgumentError(err) != nil || !strings.Contains(err.Error(), "are each rank's own") {
			return fmt.Errorf("an all-to-all by counts: %v", err)
		}
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		if room.Calls.Load() != before {
			return errors.New("the engine was called")
		}
		return nil
	}, gcl.WithEndpoints(ends))
	if room.Calls.Load() != 2*n {
		t.Errorf("%d calls of the engine, want %d", room.Calls.Load(), 2*n)
	}
}
