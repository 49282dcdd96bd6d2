package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/tcp"
)

// wrong is the endpoint of a machine that changes bits of what it receives in the last round of one call, by direct.
type wrong struct {
	transport.Endpoint
	seq  uint64 // of the call
	bits byte   // 0: the machine is right
}

func (w *wrong) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	err := w.Endpoint.Exchange(ctx, call, batch)
	last := uint32(0)
	switch c := schedule.Collective(call.Collective); {
	case c == schedule.AllReduce, c == schedule.Custom, c == schedule.Broadcast && w.Size() > 2:
		last = 1
	}
	if err == nil && call.Seq == w.seq && call.Round == last {
		for _, x := range batch {
			if x.Kind == transport.Recv && len(x.Buf) > 0 {
				x.Buf[0] ^= w.bits
				return nil
			}
		}
	}
	return err
}

// wrongOnes wraps endpoints: bits are those that the replicas change in the call that has a number.
func wrongOnes(ends []transport.Endpoint, seq uint64, bits map[int]byte) []transport.Endpoint {
	for r, e := range ends {
		ends[r] = &wrong{e, seq, bits[r]}
	}
	return ends
}

// alikeCalls are calls whose results are equal, in all forms.
func alikeCalls(ranks int) map[string]func(ctx context.Context, c *gcl.Comm) error {
	direct := must(methods.Build(methods.Spec{Method: methods.Direct, Collective: schedule.AllReduce, Size: ranks}))
	n := 8 * ranks
	allReduce := func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, c, make([]float32, n), gcl.Add)
	}
	return map[string]func(ctx context.Context, c *gcl.Comm) error{
		"AllReduceInPlace": allReduce,
		"AllReduceMany": func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyInPlace(ctx, c, [][]int16{make([]int16, n), make([]int16, 3)}, gcl.Max)
		},
		"AllGatherTo": func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllGatherTo(ctx, c, make([]bool, n), make([]bool, 8))
		},
		"AllGatherV": func(ctx context.Context, c *gcl.Comm) error {
			counts := make([]int, ranks)
			for r := range counts {
				counts[r] = r + 1
			}
			_, err := gcl.AllGatherV(ctx, c, make([]float64, c.Rank()+1), counts)
			return err
		},
		"AllGatherMapped": func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllGatherMapped(ctx, c, make([]int32, 3), chunks.Mapping{ranks, 2 * ranks})
			return err
		},
		"BroadcastInPlace": func(ctx context.Context, c *gcl.Comm) error {
			return gcl.BroadcastInPlace(ctx, c, make([]uint8, n), 0)
		},
		"Batch of broadcasts": func(ctx context.Context, c *gcl.Comm) error {
			return batchInPlace(ctx, c, schedule.Broadcast, [][]int64{make([]int64, 5), make([]int64, n)}, 0, 0)
		},
		"Execute": func(ctx context.Context, c *gcl.Comm) error {
			return gcl.Execute(ctx, c, direct, make([]float32, n), make([]float32, n), gcl.Mul)
		},
		"Start": func(ctx context.Context, c *gcl.Comm) error { return c.Start(ctx, allReduce).Wait() },
	}
}

// comparing are the options of a Comm whose calls go by direct, in messages, and that compares the results of all.
var comparing = gcl.Options{CheckEqual: 1, Method: methods.Direct, Implementation: gcl.Syncless}

// unequalIn fails unless an error is of members with different results, of which some are named.
func unequalIn(t *testing.T, err error, named []int) {
	t.Helper()
	var unequal *gcl.UnequalError
	switch {
	case !errors.As(err, &unequal):
		t.Errorf("%v, want an UnequalError", err)
	case errors.Is(err, gcl.ErrAborted) || errors.Is(err, gcl.ErrMismatch):
		t.Errorf("%v is of two kinds", err)
	case !slices.Equal(unequal.Replicas, named):
		t.Errorf("%v names %v, want %v", err, unequal.Replicas, named)
	}
}

// TestCheckEqual: each form finds that a machine has another result. All members name it, and go on.
func TestCheckEqual(t *testing.T) {
	for _, n := range []int{2, 3, 4} {
		want := []int{1}
		if n == 2 {
			want = []int{0, 1}
		}
		for form, call := range alikeCalls(n) {
			t.Run(fmt.Sprintf("n=%d/form=%s", n, form), func(t *testing.T) {
				ends := wrongOnes(must(inproc.New(n)), 1, map[int]byte{1: 1})
				errs := failures(t, n, func(ctx context.Context, c *gcl.Comm) error {
					err := call(ctx, c.Named("w"))
					if err := errors.Join(c.Err(), call(ctx, c), c.Barrier(ctx)); err != nil {
						t.Errorf("after the error: %v", err)
					}
					return err
				}, gcl.WithEndpoints(ends), gcl.WithOptions(comparing))
				var all []*gcl.UnequalError
				for _, err := range errs {
					unequalIn(t, err, want)
					if e := (*gcl.UnequalError)(nil); errors.As(err, &e) {
						all = append(all, e)
					}
				}
				for _, e := range all {
					if !reflect.DeepEqual(e, all[0]) || len(e.Members) != n || len(e.Digests) != n ||
						e.Digests[0] == e.Digests[1] {
						t.Errorf("%+v and %+v, want the same, of %d members", e, all[0], n)
					}
				}
			})
		}
	}
}

// TestCheckEqualMajority: who is named, and the text.
func TestCheckEqualMajority(t *testing.T) {
	for _, x := range []struct {
		n     int
		bits  map[int]byte
		named []int
		text  string
	}{
		{2, map[int]byte{0: 1}, []int{0, 1}, `all-reduce #1 "w": replica %d: no result is that of most replicas (digests ` +
			`%016[2]x on replica 0, %016[3]x on replica 1): a machine computes or moves data wrongly`},
		{3, map[int]byte{1: 1, 2: 2}, []int{0, 1, 2}, "no result is that of most replicas"},
		{4, map[int]byte{0: 1, 2: 1}, []int{0, 1, 2, 3}, "no result is that of most replicas"},
		{4, map[int]byte{1: 1, 3: 2}, []int{0, 1, 2, 3}, "no result is that of most replicas"},
		{4, map[int]byte{3: 1}, []int{3}, `all-reduce #1 "w": replica %d: the result of replica 3 differs from that of the ` +
			`3 others (digests %016[5]x on replica 3, %016[2]x on the others): most likely its machine computes or moves data wrongly`},
		{5, map[int]byte{0: 1, 3: 2}, []int{0, 3}, `all-reduce #1 "w": replica %d: the results of replicas 0, 3 differ ` +
			`from that of the 3 others (digests %016[2]x on replica 0, %016[5]x on replica 3, %016[3]x on the others): ` +
			`most likely their machines compute or move data wrongly`},
	} {
		ends := wrongOnes(must(inproc.New(x.n)), 1, x.bits)
		for r, err := range failures(t, x.n, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c.Named("w"), make([]uint8, 100), gcl.Add)
		}, gcl.WithEndpoints(ends), gcl.WithOptions(comparing)) {
			unequalIn(t, err, x.named)
			want := x.text
			if e := (*gcl.UnequalError)(nil); errors.As(err, &e) && len(want) > 50 {
				arguments := []any{r}
				for _, digest := range e.Digests {
					arguments = append(arguments, digest)
				}
				want = fmt.Sprintf("gcl: "+want, arguments...)
			}
			if err != nil && !contains(err, want) {
				t.Errorf("n=%d: %v, want %s", x.n, err, want)
			}
		}
	}
}

// TestCheckEqualSockets: replicas that know of each other by messages only, in a group that is not all of them.
func TestCheckEqualSockets(t *testing.T) {
	onSockets(t, func(t *testing.T, network tcp.Network) {
		var comms []*gcl.Comm
		for _, e := range wrongOnes(endpointsOn(t, network, 6), 2, map[int]byte{4: 1}) {
			comms = append(comms, must(gcl.New(e, gcl.WithOptions(comparing))))
		}
		for r, err := range apartDo(t, comms, func(ctx context.Context, c *gcl.Comm) error {
			c = grouped(c, commgroup.Group{Type: commgroup.Orthogonal, Size: 3})
			data := make([]float32, 5000)
			if err := gcl.ReduceScatterTo(ctx, c, make([]float32, 1667), data, gcl.Add); err != nil {
				return err
			}
			return gcl.AllReduceInPlace(ctx, c, data, gcl.Add)
		}) {
			switch {
			case r%2 == 1 && err != nil:
				t.Errorf("replica %d, of the other group: %v", r, err)
			case r%2 == 0:
				unequalIn(t, err, []int{4})
			}
		}
	})
}

// TestCheckEqualEvery: every second call whose result is equal is followed by a comparison, which takes a number. No
// other call counts. A Trace does not hear of it.
func TestCheckEqualEvery(t *testing.T) {
	const n = 3
	var mu sync.Mutex
	var numbers []uint64
	chosen, rounds := 0, 0
	trace := &gcl.Trace{
		CollectiveStart: func(c gcl.TraceCall) {
			mu.Lock()
			defer mu.Unlock()
			if c.Replica == 0 {
				numbers = append(numbers, c.Seq)
			}
		},
		MethodChosen: func(gcl.TraceCall, gcl.TraceMethod) { mu.Lock(); chosen++; mu.Unlock() },
		RoundStart:   func(gcl.TraceCall, int) { mu.Lock(); rounds++; mu.Unlock() },
	}
	calls := func(ctx context.Context, c *gcl.Comm) error {
		data := make([]float32, 3)
		_, err := gcl.ReduceScatter(ctx, c, data, gcl.Add)
		return errors.Join(err,
			gcl.AllReduceInPlace(ctx, c, data, gcl.Add), gcl.AllToAllInPlace(ctx, c, data),
			gcl.BroadcastInPlace(ctx, c, data, 1), gcl.AllReduceInPlace(ctx, c, data, gcl.Local), c.Barrier(ctx),
			gcl.AllReduceInPlace(ctx, c, data, gcl.Add), gcl.ReduceInPlace(ctx, c, data, gcl.Add, 0),
			gcl.AllReduceInPlace(ctx, c, data, gcl.Add), c.Barrier(ctx))
	}
	var plain [2]int
	for i, x := range []struct {
		every int
		want  []uint64
	}{{0, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}, {2, []uint64{1, 2, 3, 4, 6, 7, 8, 9, 10, 12}},
		{3, []uint64{1, 2, 3, 4, 5, 6, 7, 9, 10, 11}}, {5, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}} {
		numbers, chosen, rounds = nil, 0, 0
		replicas(t, n, calls, gcl.WithOptions(gcl.Options{CheckEqual: x.every, Trace: trace}))
		if !slices.Equal(numbers, x.want) {
			t.Errorf("CheckEqual %d: the calls have the numbers %v, want %v", x.every, numbers, x.want)
		}
		if i == 0 {
			plain = [2]int{chosen, rounds}
		}
		if got := [2]int{chosen, rounds}; got != plain || chosen == 0 {
			t.Errorf("CheckEqual %d: a Trace is told of %v methods and rounds, without of %v", x.every, got, plain)
		}
	}
}

// TestCheckEqualWays: whatever the options name the comparison goes, also where the method does no all-gather.
func TestCheckEqualWays(t *testing.T) {
	const n = 4
	try := func(name string, o gcl.Options, forms []string, opts ...gcl.CommOption) {
		t.Run(name, func(t *testing.T) {
			o.CheckEqual, o.CheckFinite = 1, true
			all := alikeCalls(n)
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				for _, form := range forms {
					if err := all[form](ctx, withOptions(c, o)); err != nil {
						return fmt.Errorf("%s: %w", form, err)
					}
				}
				d, err := withOptions(c, o).Dup(ctx)
				if err != nil {
					return err
				}
				return errors.Join(all["AllReduceInPlace"](ctx, d), d.Close())
			}, opts...)
		})
	}
	forms := []string{"AllReduceInPlace", "AllReduceMany", "AllGatherTo", "BroadcastInPlace", "Batch of broadcasts",
		"AllGatherV", "AllGatherMapped", "Execute", "Start"}
	for _, o := range append(bothWays(), gcl.Options{Reproducible: true}, gcl.Options{StageFragments: true}) {
		try(fmt.Sprintf("method=%v/implementation=%v/reproducible=%v/stage=%v", o.Method, o.Implementation,
			o.Reproducible, o.StageFragments), o, forms)
	}
	try("hybrid", gcl.Options{Implementation: gcl.Hybrid}, forms, gcl.WithTopology(hosts(t, 2, 2)))
	try("native", native, []string{"AllReduceInPlace", "AllGatherTo", "BroadcastInPlace"}, onEngines(t, n))
	try("strict", gcl.Options{Method: own(t, "star"), Strict: true},
		[]string{"AllReduceInPlace", "AllReduceMany", "Start"}, gcl.WithMethod("star", star))
}

// TestCheckEqualDiffers: members that do not compare alike disagree, and nobody waits.
func TestCheckEqualDiffers(t *testing.T) {
	for r, err := range failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, gcl.Options{CheckEqual: c.Rank() / 2})
		return gcl.AllReduceInPlace(ctx, c, make([]float32, 10), gcl.Add)
	}) {
		if !errors.Is(err, gcl.ErrMismatch) || !contains(err, "CheckEqual") {
			t.Errorf("replica %d: %v, want an ErrMismatch that lists CheckEqual", r, err)
		}
	}
}

// TestCheckEqualBroadcast: with a comparison a root waits for all members, so that the call itself tells of one in
// another call.
func TestCheckEqualBroadcast(t *testing.T) {
	for r, err := range failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 2 {
			return gcl.AllReduceInPlace(ctx, c, make([]float32, 10), gcl.Add)
		}
		return gcl.BroadcastInPlace(ctx, c, make([]float32, 10), 0)
	}, gcl.WithOptions(comparing)) {
		if !errors.Is(err, gcl.ErrMismatch) {
			t.Errorf("replica %d: %v, want an ErrMismatch", r, err)
		}
	}
}

// aborts is an endpoint that aborts in one call.
type aborts struct {
	transport.Endpoint
	seq uint64
}

func (a *aborts) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	if call.Seq == a.seq {
		a.Abort(errors.New("boom"))
	}
	return a.Endpoint.Exchange(ctx, call, batch)
}

// TestCheckEqualFails: a comparison that fails is named as the all-gather that it is.
func TestCheckEqualFails(t *testing.T) {
	ends := must(inproc.New(2))
	for r, e := range ends {
		ends[r] = &aborts{e, 2}
	}
	for r, err := range failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, c.Named("w"), make([]float32, 10), gcl.Add)
	}, gcl.WithEndpoints(ends), gcl.WithOptions(comparing)) {
		if !errors.Is(err, gcl.ErrAborted) || !contains(err, `gcl: all-gather #2 "w": replica `) ||
			!contains(err, "boom") {
			t.Errorf("replica %d: %v", r, err)
		}
	}
}

// TestChecksByEnvironment: GCL_OPTIONS turns both checks on, and off.
func TestChecksByEnvironment(t *testing.T) {
	for text, want := range map[string]gcl.Options{
		`{"checkFinite": true, "checkEqual": 3}`:  {CheckFinite: true, CheckEqual: 3},
		`{"checkFinite": false, "checkEqual": 0}`: {},
		``: {CheckEqual: 2},
	} {
		t.Setenv("GCL_OPTIONS", text)
		replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Options() != want {
				return fmt.Errorf("%s: %+v, want %+v", text, c.Options(), want)
			}
			return nil
		}, gcl.WithOptions(gcl.Options{CheckEqual: 2}))
	}
	t.Setenv("GCL_OPTIONS", `{"checkEqual": -1}`)
	err := gcl.Run(t.Context(), 1, func(context.Context, *gcl.Comm) error { return nil })
	if err == nil || !contains(err, "want a whole number from 0 to ") {
		t.Errorf("below 0: %v", err)
	}
}
