package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gogcl.dev/chunks"
	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/dumbengine"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// native are options with the method native.
var native = gcl.Options{Method: methods.Native}

// nativeWays are native, and native with all the options that change nothing of it.
func nativeWays() []gcl.Options {
	return []gcl.Options{native, {Method: methods.Native, Implementation: gcl.Syncless, MaxBytesPerTile: 1,
		StageFragments: true, MaxBroadcastSize: 8, CacheBytes: 1}}
}

// TestNativeMatrix tries every collective by an engine's own against the oracle, in place and not: every operator with
// every element type but 16-bit floats, on lengths that are multiples of the group's size.
func TestNativeMatrix(t *testing.T) {
	nativeMatrix[bool](t)
	nativeMatrix[int8](t)
	nativeMatrix[int16](t)
	nativeMatrix[int32](t)
	nativeMatrix[int64](t)
	nativeMatrix[uint8](t)
	nativeMatrix[uint16](t)
	nativeMatrix[uint32](t)
	nativeMatrix[uint64](t)
	nativeMatrix[float32](t)
	nativeMatrix[float64](t)
}

func nativeMatrix[T tensor.Element](t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprintf("dtype=%v/n=%d", tensor.DTypeOf[T](), n), func(t *testing.T) {
			x := crossed{n, builtins[T](), []int{0, n, 7 * n, 1001 * n}, nativeWays()}
			ends, room := engines(t, n)
			try[T](t, x, false, gcl.WithEndpoints(ends))
			if have := room.Transfers.Load(); have != 0 {
				t.Errorf("%d transfers by Exchange", have)
			}
			if called := room.Calls.Load() > 0; called != (n > 1) {
				t.Errorf("the engine was called: %v", called)
			}
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, native)
				for _, op := range builtins[T]() {
					for root := range c.Size() {
						if err := newRootedCase(op, root, inputs[T](op, n, 6*n)).try(ctx, c); err != nil {
							return fmt.Errorf("op=%v root=%d: %w", op, root, err)
						}
					}
				}
				return nil
			}, onEngines(t, n))
		})
	}
}

// TestNativeMoves16BitFloats: an engine moves what it cannot combine.
func TestNativeMoves16BitFloats(t *testing.T) {
	const n = 3
	placed := newMoveCase(inputs[tensor.Float16](gcl.Local, n, 4*n))
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error { return placed.try(ctx, withOptions(c, native)) },
		onEngines(t, n))
}

// TestNativeGroups: members of an engine's collective are replica ids in the order of their ranks.
func TestNativeGroups(t *testing.T) {
	const n = 8
	for _, g := range []commgroup.Group{
		{}, {Type: commgroup.Consecutive, Size: 4}, {Type: commgroup.Consecutive, Size: 2, Stride: 2},
		{Type: commgroup.Orthogonal, Size: 4}, {Type: commgroup.Consecutive, Size: 1},
		lists([]int{0, 5, 7}, []int{1, 2}, []int{3, 4, 6}),
	} {
		t.Run(fmt.Sprint(g), func(t *testing.T) {
			all := inputs[int32](gcl.Add, n, 48)
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(grouped(c, g), native)
				var in [][]int32
				for _, m := range c.Members() {
					in = append(in, all[m])
				}
				return errors.Join(newReduceCase(gcl.Add, in).try(ctx, c), newMoveCase(in).try(ctx, c),
					newRootedCase(gcl.Add, c.Size()-1, in).try(ctx, c))
			}, onEngines(t, n))
		})
	}
}

// TestNativeOfMany: of several operands each is one call of the engine, whatever their types. Of none there is one, in
// which the members agree on that.
func TestNativeOfMany(t *testing.T) {
	const n = 4
	ends, room := engines(t, n)
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, native)
		calls := func(want int64, do func() error) error {
			if err := c.Barrier(ctx); err != nil {
				return err
			}
			before := room.Calls.Load()
			if err := errors.Join(c.Barrier(ctx), do(), c.Barrier(ctx)); err != nil {
				return err
			}
			if have := room.Calls.Load() - before; have != want*n {
				return fmt.Errorf("%d calls of the engine by %d replicas, want %d each", have, n, want)
			}
			return nil
		}
		r := float32(c.Rank())
		a, b, shard := []float32{r, 1}, []int64{int64(c.Rank())}, make([]float32, 1)
		scattered := []float32{r, r + 1, r + 2, r + 3}
		var x *gcl.Batch
		return errors.Join(
			calls(3, func() error { return gcl.AllReduceManyInPlace(ctx, c, [][]float32{a, {}, a[:0:0]}, gcl.Mean) }),
			check("mean", a, []float32{1.5, 1}),
			calls(2, func() error {
				x = c.Batch(schedule.AllReduce, gcl.SquareAdd, 0)
				gcl.Append(x, a, a)
				gcl.Append(x, b, b)
				return x.Run(ctx)
			}),
			check("squares", a, []float32{9, 4}), check("squares of integers", b, []int64{14}),
			calls(2, func() error { return x.Run(ctx) }), check("squares again", a, []float32{324, 64}),
			calls(1, func() error { return c.Batch(schedule.AllReduce, gcl.LogicalAnd, 0).Run(ctx) }),
			calls(1, func() error { return batchInPlace(ctx, c, schedule.Broadcast, [][]bool{}, 0, 1) }),
			calls(2, func() error {
				return gcl.ReduceScatterMappedTo(ctx, c, shard[:1:1], scattered, chunks.Mapping{4, 0}, gcl.Max)
			}),
			check("mapped", shard, []float32{3 + r}),
		)
	}, gcl.WithEndpoints(ends))
}

// nativeRefusals are calls on four replicas that an engine cannot carry out, and what is said to their callers.
var nativeRefusals = []struct {
	name, want string
	call       func(ctx context.Context, c *gcl.Comm) error
}{
	{"float16", "all-reduce #1: replica 1: method native does not combine float16, which engines have no type for: " +
		"want float32 or another method",
		func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]tensor.Float16, 4), gcl.Add)
		}},
	{"bfloat16 at a root", "method native does not combine bfloat16",
		func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceInPlace(ctx, c, make([]tensor.BFloat16, 4), gcl.Add, 2)
		}},
	{"shards", "reduce-scatter #1: replica 1: method native gives all ranks equal parts, and a reduce-scatter of 10 " +
		"elements over 4 ranks has none: want a multiple of 4, or another method",
		func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.ReduceScatter(ctx, c, make([]float32, 10), gcl.Add)
			return err
		}},
	{"a mapping", "IPU 1: method native gives all ranks equal parts, and an all-gather of 3 elements over 4 ranks",
		func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllGatherMappedTo(ctx, c, make([]int8, 7), make([]int8, 2), chunks.Mapping{4, 3})
		}},
	{"one of many", "tensor 1: method native gives all ranks equal parts, and a reduce-scatter of 5 elements",
		func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.ReduceScatterMany(ctx, c, [][]float32{make([]float32, 4), make([]float32, 5)}, gcl.Add)
			return err
		}},
	{"one of a batch", "operand 1: method native does not combine float16",
		func(ctx context.Context, c *gcl.Comm) error {
			b := c.Batch(schedule.AllReduce, gcl.Add, 0)
			gcl.Append(b, make([]float32, 1), make([]float32, 1))
			gcl.Append(b, make([]tensor.Float16, 1), make([]tensor.Float16, 1))
			return b.Run(ctx)
		}},
	{"the engine's own", "method native: the transport's engine does not take the call: mul of int32: none",
		func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]int32, 4), gcl.Mul)
		}},
	{"within a replica", "option Method=native: it needs a transport with collectives of its own, which the IPUs of a " +
		"replica do not have: want a Comm with another method",
		func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllReduceWithinReplica(ctx, c, [][]float32{{1}, {2}}, gcl.Add)
			return err
		}},
}

// TestNativeRefusals: a call that an engine cannot carry out is an error about the arguments, on every rank, before
// anything is sent. The communicator stays usable.
func TestNativeRefusals(t *testing.T) {
	for _, x := range nativeRefusals {
		t.Run(x.name, func(t *testing.T) {
			ends, room := engines(t, 4)
			room.Refuse = func(c transport.NativeCollective) error {
				if c.Operator == transport.NativeMul {
					return fmt.Errorf("%v of %v: none: %w", c.Operator, c.DType, errors.ErrUnsupported)
				}
				return nil
			}
			data := [][]int32{}
			for range 4 {
				data = append(data, []int32{1})
			}
			errs := failures(t, 4, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, native)
				err := x.call(ctx, c)
				own := data[c.Rank()]
				if after := gcl.AllReduceInPlace(ctx, c, own, gcl.Add); after != nil || own[0] != 4 {
					t.Errorf("rank %d: the call after: %v, %v", c.Rank(), after, own)
				}
				return err
			}, gcl.WithEndpoints(ends))
			for rank, err := range errs {
				if err == nil || errors.Is(err, gcl.ErrAborted) || errors.Is(err, gcl.ErrMismatch) ||
					rank == 1 && !strings.Contains(err.Error(), x.want) {
					t.Errorf("rank %d: %v, want %s", rank, err, x.want)
				}
			}
			if calls, sent := room.Calls.Load(), room.Transfers.Load(); calls != 4 || sent != 0 {
				t.Errorf("%d calls of the engine and %d transfers, want those of the call after alone", calls, sent)
			}
		})
	}
}

// TestNativeOperandsFoundAgain: operands that another method has taken are looked at again when the method is native.
func TestNativeOperandsFoundAgain(t *testing.T) {
	const n = 2
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		messages := withOptions(c, gcl.Options{Method: methods.Direct})
		ins, outs := [][]float32{make([]float32, 3)}, [][]float32{make([]float32, 2)}
		if err := gcl.ReduceScatterManyTo(ctx, messages, outs, ins, gcl.Add); err != nil {
			return err
		}
		err := gcl.ReduceScatterManyTo(ctx, withOptions(c, native), outs, ins, gcl.Add)
		if err == nil || !contains(err, "a reduce-scatter of 3 elements over 2 ranks") {
			return fmt.Errorf("want a refusal, have %v", err)
		}
		return nil
	}, onEngines(t, n))
}

// TestNativeOptions: the method native needs an engine, and goes with no option that says how steps are carried out.
func TestNativeOptions(t *testing.T) {
	for _, x := range []struct {
		options gcl.Options
		engine  bool
		want    string
	}{
		{native, true, ""},
		{gcl.Options{Method: methods.Native, Implementation: gcl.Syncless}, true, ""},
		{native, false, "gcl: option Method=native: it needs a transport with collectives of its own: mpi"},
		{gcl.Options{Method: methods.Native, Reproducible: true}, true, "gcl: option Method=native: it does not go with " +
			"Reproducible, which folds in rank order: an engine combines in an order of its own; want one of the two"},
		{gcl.Options{Method: methods.Native, Implementation: gcl.Syncful}, true, "gcl: option Method=native: it does " +
			"not go with Implementation=Syncful: an engine has steps of its own; want Implementation=Auto"},
		{gcl.Options{Method: methods.Native, Implementation: gcl.Hybrid}, true, "gcl: option Method=native: it does " +
			"not go with Implementation=Hybrid: an engine has steps of its own; want Implementation=Auto"},
	} {
		o := x.options
		name := fmt.Sprintf("implementation=%v/reproducible=%v/engine=%v", o.Implementation, o.Reproducible, x.engine)
		t.Run(name, func(t *testing.T) {
			var opts []gcl.CommOption
			if x.engine {
				opts = append(opts, onEngines(t, 2))
			}
			replicas(t, 2, func(_ context.Context, c *gcl.Comm) error {
				_, err := c.With(x.options)
				var option *gcl.OptionError
				switch {
				case x.want == "" && err != nil:
					return err
				case x.want != "" && (!errors.As(err, &option) || err.Error() != x.want):
					return fmt.Errorf("have %v, want %s", err, x.want)
				}
				// A group of one sends nothing.
				if alone := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 1}); !x.engine {
					alone, err := alone.With(x.options)
					if err != nil {
						return err
					}
					if _, err := alone.Group(commgroup.Group{}); err == nil || err.Error() != x.want {
						return fmt.Errorf("in a larger group: %v, want %s", err, x.want)
					}
				}
				return nil
			}, opts...)
		})
	}
}

// TestNativeByEnvironment: GCL_OPTIONS may ask for native, and is named where that cannot be.
func TestNativeByEnvironment(t *testing.T) {
	t.Setenv("GCL_OPTIONS", `{"method": "native"}`)
	err := gcl.Run(t.Context(), 2, func(context.Context, *gcl.Comm) error { return nil })
	if want := "option Method=native in the environment variable GCL_OPTIONS: it needs a transport"; err == nil ||
		!contains(err, want) {
		t.Errorf("have %v, want %s", err, want)
	}
	ends, room := engines(t, 2)
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, c, make([]float32, 3), gcl.Add)
	}, gcl.WithEndpoints(ends))
	if room.Calls.Load() != 2 {
		t.Errorf("%d calls of the engine, want 2", room.Calls.Load())
	}
}

// TestAutoTakesNoEngine: an engine is asked for nothing unless the method is native.
func TestAutoTakesNoEngine(t *testing.T) {
	ends, room := engines(t, 3)
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		var errs []error
		for _, n := range []int{3, 3 << 16} {
			errs = append(errs, newReduceCase(gcl.Add, inputs[int32](gcl.Add, 3, n)).try(ctx, c))
		}
		e, err := c.Explain(schedule.AllReduce, 1024, tensor.F32)
		if strings.Contains(e.String(), "native") {
			err = fmt.Errorf("Explain speaks of native:\n%v", e)
		}
		return errors.Join(append(errs, err)...)
	}, gcl.WithEndpoints(ends))
	if room.Calls.Load() > 0 {
		t.Errorf("%d calls of the engine", room.Calls.Load())
	}
}

// TestNativeMismatch: members that disagree all get ErrMismatch, with both sides.
func TestNativeMismatch(t *testing.T) {
	all := func(n int, op gcl.Operator, o gcl.Options) func(ctx context.Context, c *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, withOptions(c, o), make([]float32, n), op)
		}
	}
	many := func(lengths ...int) func(ctx context.Context, c *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			var data [][]float32
			for _, n := range lengths {
				data = append(data, make([]float32, n))
			}
			return gcl.AllReduceManyInPlace(ctx, withOptions(c, native), data, gcl.Add)
		}
	}
	spread := func(root int) func(ctx context.Context, c *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			return gcl.BroadcastInPlace(ctx, withOptions(c, native), make([]float32, 4), root)
		}
	}
	for _, x := range []struct {
		name         string
		ours, theirs func(ctx context.Context, c *gcl.Comm) error
		want         []string
	}{
		{"count", all(4, gcl.Add, native), all(5, gcl.Add, native), []string{"float32 x 4, native", "float32 x 5, native"}},
		{"operator", all(4, gcl.Add, native), all(4, gcl.Max, native), []string{"(ADD", "(MAX"}},
		{"mean and sum", all(4, gcl.Add, native), all(4, gcl.Mean, native), []string{"(ADD", "(MEAN"}},
		{"method", all(4, gcl.Add, native), all(4, gcl.Add, gcl.Options{Method: methods.SendToAll}),
			[]string{"x 4, native", "x 4, broadcast"}},
		{"collective", all(4, gcl.Add, native), spread(0), []string{"all-reduce #1", "broadcast #1"}},
		{"root", spread(0), spread(1), []string{"root 0", "root 1"}},
		{"tensors", many(4, 5), many(4, 5, 0), []string{"tensors, mapping or options differ"}},
		{"their order", many(4, 5), many(5, 4), []string{"tensors, mapping or options differ"}},
		// Replica 1 differs; the engine compares it with the first that came of the other two.
		{"none", many(), many(0), []string{"dtypes differ: replica ", " gives several, or no tensor"}},
		{"refused", all(4, gcl.Add, native), func(ctx context.Context, c *gcl.Comm) error {
			_ = gcl.AllReduceInPlace(ctx, withOptions(c, native), make([]tensor.Float16, 4), gcl.Add)
			return all(4, gcl.Add, native)(ctx, c)
		}, []string{"all-reduce #1", "all-reduce #2"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			errs := failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
				if c.Rank() == 1 {
					return x.theirs(ctx, c)
				}
				return x.ours(ctx, c)
			}, onEngines(t, 3))
			for rank, err := range errs {
				if !errors.Is(err, gcl.ErrMismatch) {
					t.Errorf("rank %d: %v", rank, err)
					continue
				}
				for _, want := range x.want {
					if !contains(err, want) {
						t.Errorf("rank %d: %v\nlacks %q", rank, err, want)
					}
				}
			}
		})
	}
}

// TestNativeCancelled: a context that is done ends the engine's collective, and aborts the communicator.
func TestNativeCancelled(t *testing.T) {
	why := errors.New("enough")
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, native)
		if c.Rank() == 1 {
			<-c.Done()
			return c.Err()
		}
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Millisecond, func() { cancel(why) })
		return gcl.AllReduceInPlace(ctx, c, make([]float32, 4), gcl.Add)
	}, onEngines(t, 2))
	for rank, err := range errs {
		if !errors.Is(err, gcl.ErrAborted) || !contains(err, why.Error()) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestNativeLeavesTheInput: an input is not changed, nor what a root spreads.
func TestNativeLeavesTheInput(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, native)
		in := inputs[float32](gcl.SquareAdd, 2, 8)[c.Rank()]
		kept, out := slices.Clone(in), make([]float32, 8)
		return errors.Join(
			gcl.AllReduceTo(ctx, c, out, in, gcl.SquareAdd), check("squared", in, kept),
			gcl.BroadcastTo(ctx, c, out, in, 1), check("spread", in, kept),
			check("result", out, oracle.Outputs(oracle.Call{Collective: schedule.Broadcast, Root: 1},
				inputs[float32](gcl.SquareAdd, 2, 8))[c.Rank()]),
		)
	}, onEngines(t, 2))
}

// TestNativeTrace: a trace and a dump name the method and the path, and there is a round for each operand. A barrier
// goes by messages.
func TestNativeTrace(t *testing.T) {
	var told []string
	note := func(format string, arguments ...any) { told = append(told, fmt.Sprintf(format, arguments...)) }
	o := native
	o.Trace = &gcl.Trace{
		MethodChosen: func(c gcl.TraceCall, m gcl.TraceMethod) {
			note("%v: %v, %v, %v, %d rounds, rings %v %v",
				c, c.Method, c.Implementation, c.Path, m.Rounds, m.Ring, m.Second)
		},
		RoundStart: func(_ gcl.TraceCall, round int) { note("round %d", round) },
		Segment:    func(_ gcl.TraceCall, round int, _ gcl.TraceSegment) { note("segment in round %d", round) },
		RoundEnd:   func(_ gcl.TraceCall, round int, err error) { note("end of round %d: %v", round, err) },
	}
	var dumped string
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		c, err := c.With(native)
		if err == nil && c.Rank() == 0 {
			c, err = c.With(o)
		}
		if err != nil {
			return err
		}
		err = errors.Join(gcl.AllReduceInPlace(ctx, c, make([]float32, 4), gcl.Add),
			gcl.AllReduceManyInPlace(ctx, c, [][]float32{{1}, {2, 3}}, gcl.Add))
		if c.Rank() == 0 {
			dumped = c.Dump()
		}
		return errors.Join(err, withOptions(c, native).Barrier(ctx))
	}, onEngines(t, 2))
	want := []string{
		"all-reduce #1: native, Auto, engine, 1 rounds, rings [] []", "round 0", "end of round 0: <nil>",
		"all-reduce #2: native, Auto, engine, 2 rounds, rings [] []", "round 0", "end of round 0: <nil>",
		"round 1", "end of round 1: <nil>",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	if !strings.Contains(dumped, "native, engine") {
		t.Errorf("the dump does not name method and path:\n%s", dumped)
	}
}

// TestNativeExplain: Explain prices the agreement, and says that no more is known. It refuses what a call would.
func TestNativeExplain(t *testing.T) {
	link := transport.Link{Class: transport.SocketLink, Latency: 5 * time.Microsecond, BytesPerSecond: 3e9}
	ends, _ := engines(t, 4)
	for i, e := range ends {
		ends[i] = &linkedEngine{e.(*dumbengine.Engine), link}
	}
	replicas(t, 4, func(_ context.Context, c *gcl.Comm) error {
		c = withOptions(c, native)
		e, err := c.Explain(schedule.AllReduce, 1024, tensor.F32)
		if err != nil || e.Method != methods.Native || e.Implementation != gcl.AutoImplementation {
			return fmt.Errorf("%v: %v", err, e)
		}
		want := gcl.Candidate{Method: methods.Native, Chosen: true, Rounds: 6, Estimate: 30 * time.Microsecond}
		chosen := slices.DeleteFunc(slices.Clone(e.Candidates), func(x gcl.Candidate) bool { return !x.Chosen })
		if !slices.Equal(chosen, []gcl.Candidate{want}) {
			return fmt.Errorf("%+v, want %+v", chosen, want)
		}
		for _, x := range []struct {
			collective schedule.Collective
			bytes      int64
			dtype      tensor.DType
			want       string
		}{
			{schedule.AllReduce, 8, tensor.F16, "explain: method native does not combine float16"},
			{schedule.ReduceScatter, 20, tensor.F32, "explain: method native gives all ranks equal parts"},
		} {
			if _, err := c.Explain(x.collective, x.bytes, x.dtype); err == nil || !contains(err, x.want) {
				return fmt.Errorf("%v, want %s", err, x.want)
			}
		}
		_, err = c.Explain(schedule.AllReduce, 8, tensor.Bool) // by an operator that takes it
		return err
	}, gcl.WithEndpoints(ends))
}

// linkedEngine is an engine that knows its links.
type linkedEngine struct {
	*dumbengine.Engine
	link transport.Link
}

func (e *linkedEngine) Host(int) int                 { return 0 }
func (e *linkedEngine) Link(_, _ int) transport.Link { return e.link }

// TestNativeOnDup: a second connection has an engine too.
func TestNativeOnDup(t *testing.T) {
	ends, room := engines(t, 2)
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		d, err := withOptions(c, native).Dup(ctx)
		if err != nil {
			return err
		}
		return errors.Join(gcl.AllReduceInPlace(ctx, d, make([]float32, 4), gcl.Add), d.Close())
	}, gcl.WithEndpoints(ends))
	if room.Calls.Load() != 2 {
		t.Errorf("%d calls of the engine, want 2", room.Calls.Load())
	}
}
