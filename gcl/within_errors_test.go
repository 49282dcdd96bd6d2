package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods"
	"gogcl.dev/topology"
)

func TestWithinErrors(t *testing.T) {
	three := [][]int32{{1}, {2}, {3}}
	four := [][]int32{{1, 2}, {3, 4}, {5, 6}, {7, 8}}
	pairs := gcl.Options{IPUsPerRank: 2}
	reduceBoth := func(rows [][]int32, op gcl.Operator) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllReduceWithinReplica(ctx, c, rows, op)
			out, err2 := gcl.ReduceScatterWithinReplica(ctx, c, rows, op)
			if err == nil || err2 == nil ||
				strings.ReplaceAll(err2.Error(), "reduce-scatter", "all-reduce") != err.Error() || out.List != nil {
				return fmt.Errorf("all-reduce: %v, reduce-scatter: %v with %v", err, err2, out)
			}
			return err
		}
	}
	gather := func(list ...chunks.Chunk[int32]) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			out, err := gcl.AllGatherWithinReplica(ctx, c, chunks.Chunks[int32]{List: list})
			if out != nil {
				return fmt.Errorf("a result of %v with %v", out, err)
			}
			return err
		}
	}
	for _, x := range []struct {
		name    string
		options gcl.Options
		call    func(context.Context, *gcl.Comm) error
		want    string
	}{
		{"rows of different length", gcl.Options{}, reduceBoth([][]int32{{1, 2}, {3, 4}, {5}}, gcl.Add),
			"gcl: all-reduce within the replica: replica 0: the row of IPU 2 has 1 elements, that of IPU 0 has 2; " +
				"rows of one offset (here 0 of 1) are of equal length"},
		{"rows of different length at one offset", pairs, reduceBoth([][]int32{{1}, {3, 4}, {5}, {6}}, gcl.Add),
			"gcl: all-reduce within the replica: replica 0: the row of IPU 3 has 1 elements, that of IPU 1 has 2; " +
				"rows of one offset (here 1 of 2) are of equal length"},
		{"no rows", gcl.Options{}, reduceBoth(nil, gcl.Add), "no IPU is given data, want 1 or more"},
		{"more rows than a replica has IPUs", gcl.Options{}, reduceBoth(make([][]int32, 257), gcl.Add),
			"gcl: all-reduce within the replica: replica 0: 257 IPUs are given data, a row or chunk each, want 256 " +
				"at most (MaxIPUs)"},
		{"many more rows", pairs, reduceBoth(make([][]int32, 5000), gcl.Add), "5000 IPUs are given data, a row or chunk each, want 256 at most"},
		{"many chunks", gcl.Options{}, gather(make([]chunks.Chunk[int32], 5000)...),
			"gcl: all-gather within the replica: replica 0: 5000 IPUs are given data, a row or chunk each, want 256 " +
				"at most"},
		{"ranks that do not fit", pairs, reduceBoth(three, gcl.Add), "3 IPUs do not divide into ranks of 2 (Options.IPUsPerRank)"},
		{"ranks larger than the replica", gcl.Options{IPUsPerRank: 4}, reduceBoth(three, gcl.Add), "3 IPUs do not divide into ranks of 4"},
		{"an operator for other types", gcl.Options{}, reduceBoth(four, gcl.LogicalAnd), "operator LOGICAL_AND takes bool, not int32"},
		{"an operator that is none", gcl.Options{}, reduceBoth(four, 99), "Operator(99) is no operator, want one of ADD, "},
		{"nil context", gcl.Options{}, func(_ context.Context, c *gcl.Comm) error { return reduceBoth(four, gcl.Add)(noContext, c) }, "nil context"},

		{"no chunks", gcl.Options{}, gather(), "gcl: all-gather within the replica: replica 0: no IPU is given data, want 1 or more"},
		{"chunks for ranks that do not fit", pairs, gather(make([]chunks.Chunk[int32], 3)...), "3 IPUs do not divide into ranks of 2"},
		{"fresh chunks", gcl.Options{}, gather(chunks.NewChunks[int32](3).List...), "the chunks of IPUs 0 and 1 both have index 0 and offset 0"},
		{"an index twice", gcl.Options{},
			gather(chunks.Chunk[int32]{Index: 1}, chunks.Chunk[int32]{Index: 0}, chunks.Chunk[int32]{Index: 1}),
			"gcl: all-gather within the replica: replica 0: the chunks of IPUs 0 and 2 both have index 1 and offset 0"},
		{"an index too high", gcl.Options{}, gather(chunks.Chunk[int32]{}, chunks.Chunk[int32]{Index: 2}), "the chunk of IPU 1 has index 2, want 0 to 1: 2 IPUs are 2 ranks"},
		{"an index too high for the ranks", pairs,
			gather(chunks.Chunk[int32]{}, chunks.Chunk[int32]{Offset: 1, Index: 1}),
			"the chunk of IPU 1 has index 1, want 0 to 0: 2 IPUs are 1 ranks"},
		{"an index below 0", gcl.Options{}, gather(chunks.Chunk[int32]{Index: -1}), "the chunk of IPU 0 has index -1, want 0 to 0"},
		{"an offset without ranks", gcl.Options{}, gather(chunks.Chunk[int32]{}, chunks.Chunk[int32]{Offset: 1}),
			"the chunk of IPU 1 has offset 1, want 0 to 0: ranks have 1 IPUs (Options.IPUsPerRank)"},
		{"an offset too high", pairs, gather(chunks.Chunk[int32]{}, chunks.Chunk[int32]{Offset: 2}), "the chunk of IPU 1 has offset 2, want 0 to 1"},
		{"an offset below 0", pairs, gather(chunks.Chunk[int32]{}, chunks.Chunk[int32]{Offset: -1}), "the chunk of IPU 1 has offset -1, want 0 to 1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			alone(t, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, x.options)
				err := x.call(ctx, c)
				if err == nil || !strings.Contains(err.Error(), x.want) ||
					!strings.Contains(err.Error(), "within the replica: replica 0: ") {
					t.Errorf("error %v, want %q", err, x.want)
				}
				if errors.Is(err, gcl.ErrAborted) || errors.Is(err, gcl.ErrMismatch) || errors.Is(err, gcl.ErrClosed) {
					t.Errorf("bad arguments are more than that: %#v", err)
				}
				_, err = gcl.AllReduceWithinReplica(ctx, c, four, gcl.Add) // the communicator stays usable
				return err
			})
		})
	}
	if _, err := gcl.AllReduceWithinReplica(t.Context(), nil, four, gcl.Add); err == nil {
		t.Error("nil Comm: no error")
	}
	if _, err := gcl.ReduceScatterWithinReplica(t.Context(), nil, four, gcl.Add); err == nil {
		t.Error("nil Comm: no error")
	}
	if _, err := gcl.AllGatherWithinReplica(t.Context(), nil, chunks.NewChunks[int32](1)); err == nil {
		t.Error("nil Comm: no error")
	}
}

// Chunks may share memory, so that rows of more than there is can be asked for.
func TestWithinGatherTooLarge(t *testing.T) {
	const k = gcl.MaxIPUs
	part := make([]int64, 1<<20)
	if strconv.IntSize == 64 {
		part = make([]int64, 1<<25+1) // never touched
	}
	in := chunks.NewChunks[int64](k)
	for p := range in.List {
		in.List[p] = chunks.Chunk[int64]{Index: p, Data: part}
	}
	alone(t, func(ctx context.Context, c *gcl.Comm) error {
		_, err := gcl.AllGatherWithinReplica(ctx, c, in)
		if err == nil || !strings.Contains(err.Error(), " rows that take more than ") {
			t.Errorf("error %v", err)
		}
		return nil
	})
}

func TestIPUsPerRankIsChecked(t *testing.T) {
	alone(t, func(_ context.Context, c *gcl.Comm) error {
		_, err := c.With(gcl.Options{IPUsPerRank: -1})
		var option *gcl.OptionError
		if !errors.As(err, &option) || option.Option != "IPUsPerRank" || option.Value != "-1" {
			t.Errorf("error %v", err)
		}
		return nil
	})
}

// A topology that is given says how many IPUs a replica has, on Dups too.
func TestWithinKnowsTheIPUs(t *testing.T) {
	machine, err := topology.New(topology.Config{Replicas: []int{2}, IPUsPerReplica: 3})
	if err != nil {
		t.Fatal(err)
	}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		for _, c := range []*gcl.Comm{c, dup} {
			_, err1 := gcl.AllReduceWithinReplica(ctx, c, [][]int32{{1}, {2}}, gcl.Add)
			_, err2 := gcl.AllGatherWithinReplica(ctx, c, chunks.NewChunks[int32](4))
			_, err3 := gcl.ReduceScatterWithinReplica(ctx, c, [][]int32{}, gcl.Add)
			for given, err := range map[int]error{2: err1, 4: err2, 0: err3} {
				if want := fmt.Sprintf("%d IPUs are given data, but a replica has 3 by the topology",
					given); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
			out, err := gcl.AllReduceWithinReplica(ctx, c, [][]int32{{1}, {2}, {3}}, gcl.Add)
			if err := errors.Join(err, checkRows("all-reduce", out, repeated([]int32{6}, 3))); err != nil {
				return err
			}
		}
		return dup.Close()
	}, gcl.WithTopology(machine))
}

// Other replicas take no part: nothing is sent to them, and nothing counted.
func TestWithinConcernsNoOtherReplica(t *testing.T) {
	count, endpoints := counted(t, 2)
	done := make(chan struct{})
	within := func(ctx context.Context, c *gcl.Comm) error {
		defer close(done)
		for range 3 {
			rows := [][]int32{{1, 2}, {3, 4}, {5}}
			if _, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add); err == nil {
				return errors.New("rows of different length: no error")
			}
			scattered, err1 := gcl.ReduceScatterWithinReplica(ctx, c, rows[:2], gcl.Add)
			_, err2 := gcl.AllGatherWithinReplica(ctx, c, scattered)
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
		}
		if n := count.Load(); n != 0 {
			return fmt.Errorf("%d transfers, want none", n)
		}
		return nil
	}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 0 {
			<-done
		} else if err := within(ctx, c); err != nil {
			return err
		}
		out, err := gcl.AllReduce(ctx, c, []int32{int32(c.Rank())}, gcl.Add)
		_, refused := gcl.AllReduce(ctx, c, []int32{1}, gcl.LogicalAnd)
		if text := fmt.Sprint(refused); !strings.Contains(text, "all-reduce #2: ") {
			t.Errorf("replica %d: the second all-reduce across replicas is called %q", c.Rank(), text)
		}
		return errors.Join(err, check("all-reduce", out, []int32{1}))
	}, gcl.WithEndpoints(endpoints))
}

// Replicas do it at the same time, on several connections and in functions given to Start.
func TestWithinBesideOthers(t *testing.T) {
	leaktest.Check(t)
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		try := func(ctx context.Context, c *gcl.Comm) error {
			for k := 2; k < 6; k++ {
				rows := make([][]int32, k)
				for p := range rows {
					rows[p] = []int32{int32(c.Replica() + p), int32(p)}
				}
				sum := int32(k * (k - 1) / 2)
				out, err1 := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add)
				across, err2 := gcl.AllReduce(ctx, c, out[k-1], gcl.Add)
				if err := errors.Join(err1, err2,
					check("across", across, []int32{int32(3*k) + 3*sum, 3 * sum})); err != nil {
					return err
				}
			}
			return nil
		}
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		w1 := c.Start(ctx, try)
		w2 := dup.Start(ctx, try)
		return errors.Join(try(ctx, c), w1.Wait(), w2.Wait(), dup.Close())
	})
}

// A context that is done on the way aborts the communicator, and the error says which IPU waited for which.
func TestWithinCancelled(t *testing.T) {
	for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
		errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 1 {
				return c.Barrier(ctx) // which replica 0 does not come to
			}
			own, cancel := context.WithCancelCause(ctx)
			late := errors.New("too late")
			err := gcl.AllReduceWithinAfter(own, c, 3, func(ipu int) {
				if ipu == 1 {
					cancel(late)
				}
			})
			if !errors.Is(err, late) || !errors.Is(err, gcl.ErrAborted) || errors.Is(err, gcl.ErrClosed) {
				t.Errorf("%v: error %v, want one of %v and %v", i, err, late, gcl.ErrAborted)
			}
			peer := (*gcl.PeerError)(nil)
			if errors.As(err, &peer) {
				t.Errorf("%v: error %v blames a replica", i, err)
			}
			if text := fmt.Sprint(err); !strings.HasPrefix(text,
				"gcl: all-reduce within the replica: replica 0: IPU ") || !strings.HasSuffix(text, "too late") {
				t.Errorf("%v: error %q", i, text)
			}
			if _, err := gcl.AllReduceWithinReplica(ctx, c, [][]int32{{1}, {2}}, gcl.Add); !errors.Is(err,
				gcl.ErrAborted) || !errors.Is(err, late) {
				t.Errorf("%v: afterwards: %v, want %v", i, err, gcl.ErrAborted)
			}
			return nil
		}, gcl.WithOptions(gcl.Options{Method: methods.ClockwiseRing, Implementation: i}))
		if err := errs[1]; !errors.Is(err, gcl.ErrAborted) ||
			!strings.Contains(err.Error(), "all-reduce within the replica: replica 0: IPU ") {
			t.Errorf("%v: replica 1: error %v", i, err)
		}
	}
}

// A context that is done because replicas disagree, or have left, ends a collective within the replica with that error:
// what another replica says of its network is not taken for the IPUs'.
func TestWithinCancelledByReplicas(t *testing.T) {
	heard := failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, c, make([]int32, 1+c.Rank()/2), gcl.Add)
	})
	gone := failuresAfterLeaving(t)
	for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
		for _, cause := range append(heard, gone) {
			failures(t, 1, func(ctx context.Context, c *gcl.Comm) error {
				own, cancel := context.WithCancelCause(ctx)
				err := gcl.AllReduceWithinAfter(own, c, 3, func(ipu int) {
					if ipu == 1 {
						cancel(cause)
					}
				})
				if !errors.Is(err, cause) || errors.Is(err, gcl.ErrMismatch) != errors.Is(cause, gcl.ErrMismatch) {
					t.Errorf("%v: error %v, of the cause %v", i, err, cause)
				}
				return nil
			}, gcl.WithOptions(gcl.Options{Method: methods.ClockwiseRing, Implementation: i}))
		}
	}
}

// failuresAfterLeaving is the error of a barrier to which a replica does not come, having left.
func failuresAfterLeaving(t *testing.T) error {
	comms := joined(t, 2)
	if err := comms[1].Close(); err != nil {
		t.Error(err)
	}
	return errors.Join(comms[0].Barrier(watched(t)), comms[0].Close())
}

// A communicator that another replica has aborted, and a context that is done before, show.
func TestWithinAborted(t *testing.T) {
	rows := [][]int32{{1}, {2}}
	cause := errors.New("no more data")
	failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 1 {
			c.Abort(cause)
		}
		if err := c.Barrier(ctx); err == nil {
			t.Error("a barrier after an abort")
		}
		if _, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add); !errors.Is(err, gcl.ErrAborted) ||
			!errors.Is(err, cause) {
			t.Errorf("replica %d: error %v", c.Rank(), err)
		}
		return nil
	})
	failures(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		done, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := gcl.AllReduceWithinReplica(done, c, rows, gcl.Add); !errors.Is(err, gcl.ErrAborted) ||
			!errors.Is(err, context.Canceled) {
			t.Errorf("a context that is done: error %v", err)
		}
		return nil
	})
}

// Close fails a collective within the replica that is in progress, and those that come after.
func TestWithinClosed(t *testing.T) {
	leaktest.Check(t)
	rows := [][]int32{{1}, {2}}
	for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
		failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 1 {
				return nil
			}
			if _, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add); err != nil {
				return err
			}
			err := gcl.AllReduceWithinAfter(ctx, c, 3, func(ipu int) {
				if ipu == 2 {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}
			})
			if !errors.Is(err, gcl.ErrClosed) || errors.Is(err, gcl.ErrAborted) {
				t.Errorf("%v: in progress: %v, want %v", i, err, gcl.ErrClosed)
			}
			if text := fmt.Sprint(err); !strings.Contains(text, "replica 0: IPU ") ||
				!strings.HasSuffix(text, "the communicator is closed") {
				t.Errorf("%v: error %q", i, text)
			}
			if _, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add); !errors.Is(err, gcl.ErrClosed) {
				t.Errorf("%v: afterwards: %v, want %v", i, err, gcl.ErrClosed)
			}
			return nil
		}, gcl.WithOptions(gcl.Options{Method: methods.ClockwiseRing, Implementation: i}))
	}
}

// A panic on an IPU's goroutine does not end the program, nor leave the others waiting.
func TestWithinPanic(t *testing.T) {
	for _, guilty := range []int{0, 2} {
		failures(t, 1, func(ctx context.Context, c *gcl.Comm) error {
			err := gcl.AllReduceWithinAfter(ctx, c, 4, func(ipu int) {
				if ipu == guilty {
					panic("a fault")
				}
			})
			crash := (*gcl.PanicError)(nil)
			if !errors.As(err, &crash) || crash.Value != "a fault" || !errors.Is(err, gcl.ErrAborted) ||
				!strings.Contains(err.Error(), fmt.Sprintf("IPU %d: ", guilty)) {
				t.Errorf("error %v", err)
			}
			return nil
		})
	}
}

// Nor does one in the middle of a schedule, with the IPUs' memory laid open to each other.
func TestWithinPanicInside(t *testing.T) {
	boom, rows := boom(), make([][]uint8, 4)
	for p := range rows {
		rows[p] = make([]uint8, 10000)
	}
	for _, o := range bothWays() {
		failures(t, 1, func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllReduceWithinReplica(ctx, c, rows, boom)
			crash := (*gcl.PanicError)(nil)
			if !errors.As(err, &crash) || crash.Value != "boom" || !errors.Is(err, gcl.ErrAborted) {
				t.Errorf("%+v: error %v", o, err)
			}
			return nil
		}, gcl.WithOptions(o))
	}
}

// A call allocates its result and less than a KiB, however long the rows are.
func TestWithinAllocations(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	const k, runs = 4, 20
	const rowBytes = 32 << 10
	rows := make([][]float32, k)
	for p := range rows {
		rows[p] = make([]float32, rowBytes/4)
	}
	for _, o := range bothWays() {
		for _, o.Reproducible = range []bool{false, true} {
			alone(t, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, o)
				scattered, err := gcl.ReduceScatterWithinReplica(ctx, c, rows, gcl.Add)
				for _, x := range []struct {
					name   string
					result int
					call   func() error
				}{
					{"all-reduce", k * rowBytes, func() error { _, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add); return err }},
					{"reduce-scatter", rowBytes, func() error { _, err := gcl.ReduceScatterWithinReplica(ctx, c, rows, gcl.Add); return err }},
					{"all-gather", k * rowBytes, func() error { _, err := gcl.AllGatherWithinReplica(ctx, c, scattered); return err }},
				} {
					err = errors.Join(err, x.call())
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					for range runs {
						err = errors.Join(err, x.call())
					}
					runtime.ReadMemStats(&after)
					if n := int(after.TotalAlloc-before.TotalAlloc)/runs - x.result; n > 1<<10 {
						t.Errorf("%+v: %s allocates %d bytes beside its result", o, x.name, n)
					}
				}
				return err
			})
		}
	}
}

// TestMostIPUs: as many IPUs as there may be reduce and gather.
func TestMostIPUs(t *testing.T) {
	if underRace {
		t.Skip("256 goroutines that send to each other are for the race detector's patience too many")
	}
	rows, sum := make([][]int32, gcl.MaxIPUs), []int32{0, 0, 0}
	for p := range rows {
		rows[p] = []int32{int32(p), 1, -int32(p)}
		for i, v := range rows[p] {
			sum[i] += v
		}
	}
	alone(t, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, gcl.Options{Implementation: gcl.Syncless})
		scattered, err := gcl.ReduceScatterWithinReplica(ctx, c, rows, gcl.Add)
		if err != nil {
			return err
		}
		gathered, err1 := gcl.AllGatherWithinReplica(ctx, c, scattered)
		reduced, err2 := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add)
		want := repeated(sum, gcl.MaxIPUs)
		return errors.Join(err1, err2, checkRows("all-gather", gathered, want), checkRows("all-reduce", reduced, want))
	})
}
