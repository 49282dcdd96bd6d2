package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

// badCall is a call whose arguments are wrong on a replica of four, and what its error must say.
type badCall struct {
	name string
	call func(context.Context, *gcl.Comm) error
	says []string
}

// badCalls are wrong for the ranks of a group of four. Each makes its own buffers.
func badCalls() []badCall {
	f := func(n int) []float32 { return make([]float32, n) }
	result := func(_ []float32, err error) error { return err }
	calls := []badCall{
		{"all-reduce to a shorter destination", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTo(ctx, c, f(9), f(10), gcl.Add)
		}, []string{"all-reduce #", "9 elements", "want 10"}},
		{"all-reduce to a longer destination", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTo(ctx, c, f(11), f(10), gcl.Add)
		}, []string{"11 elements", "want 10"}},
		{"all-reduce to no destination", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTo(ctx, c, nil, f(10), gcl.Add)
		}, []string{"0 elements", "want 10"}},
		{"Local to a shorter destination", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTo(ctx, c, f(9), f(10), gcl.Local)
		}, []string{"9 elements", "want 10"}},
		{"reduce-scatter to the full length", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceScatterTo(ctx, c, f(10), f(10), gcl.Add)
		}, []string{"reduce-scatter #", "10 elements", "want 3", "4 ranks"}},
		{"reduce-scatter rounded down", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceScatterTo(ctx, c, f(2), f(10), gcl.Add)
		}, []string{"2 elements", "want 3"}},
		{"all-gather to one part", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllGatherTo(ctx, c, f(10), f(10))
		}, []string{"all-gather #", "10 elements", "want 40", "4 ranks"}},
		{"all-gather to too much", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllGatherTo(ctx, c, f(41), f(10))
		}, []string{"41 elements", "want 40"}},
		{"all-to-all to a shorter destination", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllToAllTo(ctx, c, f(4), f(8))
		}, []string{"all-to-all #", "4 elements", "want 8"}},
		{"broadcast to a longer destination", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.BroadcastTo(ctx, c, f(4), f(3), 0)
		}, []string{"broadcast #", "4 elements", "want 3"}},

		{"all-to-all of a length that 4 does not divide", func(ctx context.Context, c *gcl.Comm) error {
			return result(gcl.AllToAll(ctx, c, f(10)))
		}, []string{"10 elements", "4 equal parts"}},
		{"all-to-all in place of too little", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllToAllInPlace(ctx, c, f(3))
		}, []string{"3 elements", "4 equal parts"}},
		{"broadcast from the rank after the last", func(ctx context.Context, c *gcl.Comm) error {
			return result(gcl.Broadcast(ctx, c, f(10), 4))
		}, []string{"root 4", "0 to 3"}},
		{"broadcast from a negative rank", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.BroadcastInPlace(ctx, c, f(10), -1)
		}, []string{"root -1", "0 to 3"}},
		{"broadcast from a rank of another group", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.BroadcastInPlace(ctx, grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2}), f(10),
				2)
		}, []string{"root 2", "0 to 1"}},

		{"an operator that does not exist", func(ctx context.Context, c *gcl.Comm) error {
			return result(gcl.AllReduce(ctx, c, f(10), 240))
		}, []string{"Operator(240)"}},
		{"an operator far away", func(ctx context.Context, c *gcl.Comm) error {
			return result(gcl.ReduceScatter(ctx, c, f(10), 255))
		}, []string{"Operator(255)"}},
		{"a mean of integers", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]int32, 4), gcl.Mean)
		}, []string{"MEAN", "floating point", "int32"}},
		{"a context that is nil", func(_ context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(noContext, c, f(10), gcl.Add)
		}, []string{"nil context"}},
	}
	return append(append(calls, overlaps()...), manyBadCalls()...)
}

// overlaps are the calls whose destination and input share memory in a way that is not allowed on rank 1 of four.
func overlaps() []badCall {
	mem := func() []float32 { return make([]float32, 100) }
	say := []string{"overlap", " bytes "}
	return []badCall{
		{"all-reduce, one later", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.AllReduceTo(ctx, c, m[1:9], m[:8], gcl.Add)
		}, append(say, "4 bytes after", "the input itself")},
		{"all-reduce, one earlier", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.AllReduceTo(ctx, c, m[:8], m[1:9], gcl.Add)
		}, say},
		{"all-reduce, the last element", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.AllReduceTo(ctx, c, m[7:15], m[:8], gcl.Add)
		}, say},
		{"Local", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.AllReduceTo(ctx, c, m[7:15], m[:8], gcl.Local)
		}, say},
		{"reduce-scatter, another rank's shard", func(ctx context.Context, c *gcl.Comm) error {
			m, other := mem(), (c.Rank()+1)%c.Size()
			return gcl.ReduceScatterTo(ctx, c, m[2*other:2*other+2], m[:8], gcl.Add)
		}, append(say, "own shard")},
		{"reduce-scatter, between shards", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.ReduceScatterTo(ctx, c, m[2*c.Rank()+1:2*c.Rank()+3], m[:8], gcl.Add)
		}, say},
		{"all-gather, another rank's place", func(ctx context.Context, c *gcl.Comm) error {
			m, other := mem(), (c.Rank()+1)%c.Size()
			return gcl.AllGatherTo(ctx, c, m[:32], m[8*other:8*other+8])
		}, append(say, "own shard")},
		{"all-gather, one off", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.AllGatherTo(ctx, c, m[:32], m[8*c.Rank()+1:8*c.Rank()+9])
		}, say},
		{"all-to-all, one part later", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.AllToAllTo(ctx, c, m[2:10], m[:8])
		}, say},
		{"broadcast, one later", func(ctx context.Context, c *gcl.Comm) error {
			m := mem()
			return gcl.BroadcastTo(ctx, c, m[1:9], m[:8], 0)
		}, say},
	}
}

// isArgumentError is how an error about arguments is told from all others.
func isArgumentError(err error) error {
	var peer *gcl.PeerError
	switch {
	case err == nil:
		return errors.New("no error")
	case errors.Is(err, gcl.ErrMismatch) || errors.Is(err, gcl.ErrAborted) || errors.Is(err, gcl.ErrClosed) ||
		errors.As(err, &peer):
		return fmt.Errorf("%w: not about arguments", err)
	case !strings.HasPrefix(err.Error(), "gcl: "):
		return fmt.Errorf("%w: does not begin with gcl:", err)
	}
	return nil
}

// goodCall is one that must work.
func goodCall(ctx context.Context, c *gcl.Comm) error {
	out, err := gcl.AllReduce(ctx, c, []int32{1}, gcl.Add)
	return errors.Join(err, check("a good call", out, []int32{int32(c.Size())}))
}

// When all replicas make the same bad call, nothing is sent, and the next call works.
func TestBadCallByAll(t *testing.T) {
	count, endpoints := counted(t, 4)
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		for _, bad := range badCalls() {
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
	if count.Load() == 0 {
		t.Error("the good call sent nothing: the count does not count")
	}
}

// When one replica makes a bad call and the others a good one, the others find a mismatch at its next call.
func TestBadCallByOne(t *testing.T) {
	bads := badCalls()
	if underRace {
		bads = bads[len(bads)-12:]
	}
	for i, bad := range bads {
		if strings.Contains(bad.name, "another group") { // whose calls count apart
			continue
		}
		errs := failures(t, 4, func(ctx context.Context, c *gcl.Comm) error {
			if c.Replica() == i%4 {
				if why := isArgumentError(bad.call(ctx, c)); why != nil {
					t.Error(why)
				}
			}
			return goodCall(ctx, c)
		})
		for r, err := range errs {
			if !errors.Is(err, gcl.ErrMismatch) {
				t.Errorf("%s by replica %d: replica %d: %v, want ErrMismatch", bad.name, i%4, r, err)
			}
		}
	}
}

// The overlaps that are allowed.
func TestAllowedOverlaps(t *testing.T) {
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		m := make([]float32, 100)
		r := c.Rank()
		return errors.Join(
			gcl.AllReduceTo(ctx, c, m[:8], m[:8], gcl.Add),
			gcl.AllReduceTo(ctx, c, m[8:16], m[:8], gcl.Add), // next to it
			gcl.AllReduceTo(ctx, c, m[:8], m[8:16], gcl.Add),
			gcl.ReduceScatterTo(ctx, c, m[2*r:2*r+2], m[:8], gcl.Add),
			gcl.ReduceScatterTo(ctx, c, m[3*r:3*r+3], m[:9], gcl.Add), // reaches past the input on rank 3
			gcl.ReduceScatterTo(ctx, c, m[8:10], m[:8], gcl.Add),
			gcl.AllGatherTo(ctx, c, m[:32], m[8*r:8*r+8]),
			gcl.AllGatherTo(ctx, c, m[8:40], m[:8]),
			gcl.AllToAllTo(ctx, c, m[:8], m[:8]),
			gcl.AllToAllTo(ctx, c, m[8:16], m[:8]),
			gcl.BroadcastTo(ctx, c, m[:8], m[:8], 3),
			gcl.BroadcastTo(ctx, c, m[8:16], m[:8], 3),
			gcl.AllReduceTo(ctx, c, m[5:5], m[:0], gcl.Add), // nothing shares nothing
		)
	})
}

// reduceOne is an all-reduce and a reduce-scatter on one dtype.
func reduceOne[T tensor.Element](ctx context.Context, c *gcl.Comm, op gcl.Operator) (allReduce, reduceScatter error) {
	_, allReduce = gcl.AllReduce(ctx, c, make([]T, 3), op)
	_, reduceScatter = gcl.ReduceScatter(ctx, c, make([]T, 3), op)
	return allReduce, reduceScatter
}

// Every operator on every dtype, against the table of SEMANTICS.md.
func TestOperatorsTakeTheirTypes(t *testing.T) {
	const floats, integers, bools = "float16 bfloat16 float32 float64 ", "int8 int16 int32 int64 uint8 uint16 uint32 " +
		"uint64 ", "bool "
	takes := map[gcl.Operator]string{
		gcl.Add: floats + integers, gcl.Mul: floats + integers, gcl.Mean: floats,
		gcl.Min: floats + integers, gcl.Max: floats + integers,
		gcl.LogicalAnd: bools, gcl.LogicalOr: bools,
		gcl.SquareAdd: floats + integers, gcl.Local: floats + integers + bools,
		240: "", 250: "",
	}
	types := map[tensor.DType]func(context.Context, *gcl.Comm, gcl.Operator) (error, error){
		tensor.Bool: reduceOne[bool], tensor.F16: reduceOne[tensor.Float16], tensor.BF16: reduceOne[tensor.BFloat16],
		tensor.F32: reduceOne[float32], tensor.F64: reduceOne[float64],
		tensor.I8: reduceOne[int8], tensor.I16: reduceOne[int16], tensor.I32: reduceOne[int32],
		tensor.I64: reduceOne[int64],
		tensor.U8:  reduceOne[uint8], tensor.U16: reduceOne[uint16], tensor.U32: reduceOne[uint32],
		tensor.U64: reduceOne[uint64],
	}
	if want := len(tensor.DTypes()); len(types) != want {
		t.Fatalf("%d types in the test, %d in the library", len(types), want)
	}
	for _, n := range []int{1, 2} { // a group of one refuses what others refuse
		for op, list := range takes {
			for dtype, reduce := range types {
				ok := strings.Contains(" "+list, " "+dtype.String()+" ")
				replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
					err1, err2 := reduce(ctx, c, op)
					for _, err := range []error{err1, err2} {
						if ok && err != nil {
							return err
						}
						if ok {
							continue
						}
						why := isArgumentError(err)
						if why != nil {
							return fmt.Errorf("%v on %v: %w", op, dtype, why)
						}
						if !strings.Contains(err.Error(), op.String()) ||
							int(op) < 9 && !strings.Contains(err.Error(), dtype.String()) {
							return fmt.Errorf("%v on %v: %q names neither", op, dtype, err)
						}
					}
					return goodCall(ctx, c)
				})
			}
		}
	}
}

// A Comm that is nil is an error of every collective, not a panic.
func TestNilComm(t *testing.T) {
	ctx := t.Context()
	in := make([]float32, 4)
	_, allReduce := gcl.AllReduce(ctx, nil, in, gcl.Add)
	_, reduceScatter := gcl.ReduceScatter(ctx, nil, in, gcl.Add)
	_, allGather := gcl.AllGather(ctx, nil, in)
	_, allToAll := gcl.AllToAll(ctx, nil, in)
	_, broadcast := gcl.Broadcast(ctx, nil, in, 0)
	var c *gcl.Comm
	_, dup := c.Dup(ctx)
	for i, err := range []error{
		allReduce, reduceScatter, allGather, allToAll, broadcast, dup,
		gcl.AllReduceTo(ctx, nil, in, in, gcl.Add), gcl.AllReduceInPlace(ctx, nil, in, gcl.Add),
		gcl.ReduceScatterTo(ctx, nil, in, in, gcl.Add), gcl.AllGatherTo(ctx, nil, in, in),
		gcl.AllToAllTo(ctx, nil, in, in), gcl.AllToAllInPlace(ctx, nil, in),
		gcl.BroadcastTo(ctx, nil, in, in, 0), gcl.BroadcastInPlace(ctx, nil, in, 0),
		c.Barrier(ctx),
		c.Start(ctx, func(context.Context, *gcl.Comm) error { return nil }).Wait(),
	} {
		if why := isArgumentError(err); why != nil {
			t.Errorf("call %d: %v", i, why)
		}
	}
}

func TestBadOptions(t *testing.T) {
	badOption(t, "Method", gcl.Options{Method: methods.Method(99)})
	badOption(t, "Implementation", gcl.Options{Implementation: gcl.Implementation(99)})
	badOption(t, "Topology", gcl.Options{Topology: topology.RingName(99)})
	badOption(t, "Link", gcl.Options{Link: gcl.Link(99)})
}

// badOption tries options of which one is 99.
func badOption(t *testing.T, name string, bad gcl.Options) {
	isOptionError := func(err error) error {
		var option *gcl.OptionError
		if !errors.As(err, &option) || option.Option != name || option.Value != "99" || option.Reason == "" {
			return fmt.Errorf("%v (%T), want an *OptionError about %s 99", err, err, name)
		}
		return nil
	}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		out, err := c.With(bad)
		if out != nil {
			return errors.New("a Comm in spite of the error")
		}
		return errors.Join(isOptionError(err), goodCall(ctx, c))
	})
	if err := isOptionError(gcl.Run(t.Context(), 2, func(context.Context, *gcl.Comm) error {
		return nil
	}, gcl.WithOptions(bad))); err != nil {
		t.Error(err)
	}
}

// TestNoSuchCall: numbers that no call has are no disagreement of replicas: the connection that has brought them is no
// good.
func TestNoSuchCall(t *testing.T) {
	good := transport.Call{Group: 1, Seq: 3, Count: 25, Collective: uint8(schedule.Broadcast), DType: uint8(tensor.F32)}
	for name, change := range map[string]func(c *transport.Call){
		"collective": func(c *transport.Call) { c.Collective |= 0x20 },
		"operator":   func(c *transport.Call) { c.Operator = uint8(gcl.Local) + 1 },
		"dtype":      func(c *transport.Call) { c.DType = 0x3f },
	} {
		bad := good
		change(&bad)
		for _, replica := range []int{1, 2} { // that has found it, and that has been told
			err := gcl.CollectiveError(t.Context(), good, replica,
				&transport.MismatchError{Replica: 1, Peer: 2, Mine: good, Theirs: bad})
			var peer *gcl.PeerError
			if errors.Is(err, gcl.ErrMismatch) || !errors.As(err, &peer) || peer.Replica != 3-replica ||
				!strings.Contains(err.Error(), "something has changed it on the way") {
				t.Errorf("%s, replica %d: %v", name, replica, err)
			}
		}
	}
	other := good
	other.DType |= 0x80
	if err := gcl.CollectiveError(t.Context(), good, 1,
		&transport.MismatchError{Replica: 1, Peer: 2, Mine: good, Theirs: other}); !errors.Is(err, gcl.ErrMismatch) {
		t.Error(err)
	}
}
