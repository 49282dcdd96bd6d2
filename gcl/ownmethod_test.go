package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/tcp"
)

// No test of this package registers a method for the whole process, which others would find in methods.All: package
// methodtest has those.

// star is an all-reduce by rank 0, which folds all others and sends the result back. It does nothing else.
var star = methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
	if r.Collective != schedule.AllReduce {
		return nil, fmt.Errorf("a star does all-reduce only: %w", errors.ErrUnsupported)
	}
	b := schedule.NewBuilder(r.Collective, r.Size, 0, 1)
	for rank := 1; rank < r.Size; rank++ {
		b.Fold(0, rank, 0, 0, 1)
		b.Copy(1, 0, rank, 0, 1)
	}
	return b.Build()
})

// starOf is a star whose middle is another rank.
func starOf(middle int) methods.Generator {
	return methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
		b := schedule.NewBuilder(r.Collective, r.Size, 0, 1)
		for rank := range r.Size {
			if rank != middle {
				b.Fold(0, rank, middle, 0, 1)
				b.Copy(1, middle, rank, 0, 1)
			}
		}
		return b.Build()
	})
}

// forgetful is a star that forgets the last rank.
var forgetful = methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
	s, err := star(r)
	if err != nil {
		return nil, err
	}
	last := r.Size - 1
	s.Programs[last][0].Moves = nil
	middle := s.Programs[0][0].Moves
	s.Programs[0][0].Moves = middle[:len(middle)-1]
	return s, nil
})

// like is all that a built-in method does.
func like(m methods.Method) methods.Generator {
	return methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
		r.Spec.Method = m
		return methods.Build(r.Spec)
	})
}

// own is the method of a name.
func own(t testing.TB, name string) methods.Method {
	t.Helper()
	m, err := methods.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// went is what a Trace was told of calls: "all-reduce: star, messages".
type went struct {
	mu   sync.Mutex // guards what follows
	told map[string]bool
}

func (w *went) trace() *gcl.Trace {
	return &gcl.Trace{MethodChosen: func(c gcl.TraceCall, _ gcl.TraceMethod) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.told == nil {
			w.told = map[string]bool{}
		}
		w.told[fmt.Sprintf("%v: %v, %v", c.Collective, c.Method, c.Path)] = true
	}}
}

func (w *went) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for text := range w.told {
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// TestOwnMethod: a call goes by the program's own method in message form and on peer memory, and a collective that the
// method does not do as by Auto; the Trace says so.
func TestOwnMethod(t *testing.T) {
	m := own(t, "star")
	for implementation, want := range map[gcl.Implementation][]string{
		gcl.AutoImplementation: {"all-gather: direct, small", "all-reduce: star, messages"},
		gcl.Syncless:           {"all-gather: direct, messages", "all-reduce: star, messages"},
		gcl.Syncful:            {"all-gather: direct, small", "all-reduce: star, peer memory in rounds"},
	} {
		for _, reproducible := range []bool{false, true} {
			var w went
			replicas(t, 5, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, gcl.Options{Method: m, Implementation: implementation, Reproducible: reproducible,
					Trace: w.trace()})
				for range 2 {
					data := []float32{float32(c.Rank()), 1}
					if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add); err != nil {
						return err
					}
					all, err := gcl.AllGather(ctx, c, []int32{int32(c.Rank())})
					if err != nil {
						return err
					}
					if data[0] != 10 || data[1] != 5 || !slices.Equal(all, []int32{0, 1, 2, 3, 4}) {
						return fmt.Errorf("%v, %v", data, all)
					}
				}
				return c.Barrier(ctx)
			}, gcl.WithMethod("star", star))
			have := slices.DeleteFunc(w.list(), func(s string) bool { return strings.Contains(s, "broadcast") })
			if !slices.Equal(have, want) {
				t.Errorf("%v: %q, want %q", implementation, have, want)
			}
		}
	}
}

// TestOwnMethodMatrix: a method of one's own that has the schedules of built-in ones gives what package oracle says:
// all collectives, lengths and forms, by messages, with barriers and on peer memory.
func TestOwnMethodMatrix(t *testing.T) {
	t.Parallel()
	for _, b := range []methods.Method{methods.Direct, methods.RecursiveDoubling} {
		name := "like_" + b.String()
		m := own(t, name)
		for _, n := range []int{2, 3, 5} {
			for _, memory := range []bool{true, false} {
				endpoints, _ := witnesses(t, n, memory)
				replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
					for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
						for _, reproducible := range []bool{false, b == methods.Direct} {
							c := withOptions(c, gcl.Options{Method: m, Implementation: i, Reproducible: reproducible})
							for _, elements := range []int{0, 1, n + 1, 97} {
								if err := ownForms(ctx, c, elements); err != nil {
									return fmt.Errorf("%v, %v, %v, %d elements: %w", b, i, reproducible, elements, err)
								}
							}
						}
					}
					return nil
				}, gcl.WithMethod(name, like(b)), gcl.WithEndpoints(endpoints))
			}
		}
	}
}

// ownForms tries collectives whose results are sums of the replicas' numbers or places.
func ownForms(ctx context.Context, c *gcl.Comm, n int) error {
	size, rank := c.Size(), c.Rank()
	of := func(r, i int) int64 { return int64(1000*r + i) }
	fill := func(r, n int) []int64 {
		out := make([]int64, n)
		for i := range out {
			out[i] = of(r, i)
		}
		return out
	}
	total := make([]int64, n)
	for r := range size {
		for i := range total {
			total[i] += of(r, i)
		}
	}
	var errs []error
	check := func(what string, have, want []int64, err error) {
		if err != nil || !slices.Equal(have, want) {
			errs = append(errs, fmt.Errorf("%s: %v, want %v (%w)", what, have, want, err))
		}
	}
	data := fill(rank, n)
	err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add)
	check("all-reduce in place", data, total, err)
	shard, err := gcl.ReduceScatter(ctx, c, fill(rank, n), gcl.Add)
	per := (n + size - 1) / size
	padded := append(slices.Clone(total), make([]int64, per*size-n)...)
	check("reduce-scatter", shard, padded[rank*per:(rank+1)*per], err)
	var all []int64
	for r := range size {
		all = append(all, fill(r, n)...)
	}
	have, err := gcl.AllGather(ctx, c, fill(rank, n))
	check("all-gather", have, all, err)
	// Blocks, in place on even ranks and apart on odd ones: both is the same call.
	blocks, want := fill(rank, n*size), []int64{}
	for r := range size {
		want = append(want, fill(r, n*size)[rank*n:(rank+1)*n]...)
	}
	out := blocks
	if rank%2 == 1 {
		out = make([]int64, n*size)
	}
	check("all-to-all", out, want, gcl.AllToAllTo(ctx, c, out, blocks))
	for root := range min(size, 2) {
		data = fill(rank, n)
		err = gcl.BroadcastInPlace(ctx, c, data, root)
		check("broadcast", data, fill(root, n), err)
		sum := make([]int64, n)
		err = gcl.ReduceTo(ctx, c, sum, fill(rank, n), gcl.Add, root)
		if rank != root {
			sum = total
		}
		check("reduce", sum, total, err)
	}
	many := [][]int64{fill(rank, n), fill(rank, 3)}
	err = gcl.AllReduceManyInPlace(ctx, c, many, gcl.Add)
	check("several", many[0], total, err)
	return errors.Join(errs...)
}

func TestWithMethodErrors(t *testing.T) {
	for what, c := range map[string]struct {
		options []gcl.CommOption
		want    string
	}{
		"malformed": {[]gcl.CommOption{gcl.WithMethod("My Star", star)}, `gcl: WithMethod: methods: "My Star" is no name`},
		"built in":  {[]gcl.CommOption{gcl.WithMethod("direct", star)}, "the name direct is taken: a built-in method has it"},
		"twice": {[]gcl.CommOption{gcl.WithMethod("star", star), gcl.WithMethod("star", star)},
			"the name star is given twice"},
		"nil": {[]gcl.CommOption{gcl.WithMethod("star", nil)}, "star has a nil generator"},
		"first error": {[]gcl.CommOption{gcl.WithMethod("star", nil), gcl.WithMethod("auto", star)},
			"star has a nil generator"},
		"of another Run": {[]gcl.CommOption{gcl.WithMethod("sun", star),
			gcl.WithOptions(gcl.Options{Method: own(t, "star")})},
			"option Method=star: the name has no generator in this communicator"},
	} {
		err := gcl.Run(t.Context(), 2, func(context.Context, *gcl.Comm) error { return errors.New("has begun") },
			c.options...)
		if err == nil || !contains(err, c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
	replicas(t, 1, func(_ context.Context, c *gcl.Comm) error {
		_, err := c.With(gcl.Options{Method: own(t, "star")})
		var option *gcl.OptionError
		if !errors.As(err, &option) || option.Option != "Method" {
			return fmt.Errorf("a method that the communicator does not have: %v", err)
		}
		return nil
	})
}

// TestOwnMethodText: options by text, JSON and GCL_OPTIONS have the method by its name, and Dup and Group keep it.
func TestOwnMethodText(t *testing.T) {
	m := own(t, "star")
	o, err := gcl.ParseOptions(map[string]string{"method": "star"})
	if err != nil || o.Method != m {
		t.Fatalf("%v, %v", o.Method, err)
	}
	text, err := o.Map()
	if err != nil || text["method"] != "star" {
		t.Errorf("%v, %v", text, err)
	}
	json, err := o.MarshalJSON()
	var back gcl.Options
	if err := errors.Join(err, back.UnmarshalJSON(json)); err != nil || back != o {
		t.Errorf("%s is %+v, %v", json, back, err)
	}
	t.Setenv("GCL_OPTIONS", `{"method": "star"}`)
	var w went
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, gcl.Options{Method: methods.Direct, Trace: w.trace()})
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		for _, c := range []*gcl.Comm{c, dup, grouped(dup, commgroup.Group{Type: commgroup.Consecutive, Size: 2})} {
			if c.Options().Method != m {
				return fmt.Errorf("method %v", c.Options().Method)
			}
			if err := gcl.AllReduceInPlace(ctx, c, []float32{1}, gcl.Add); err != nil {
				return err
			}
		}
		return dup.Close()
	}, gcl.WithMethod("star", star))
	if have := w.list(); !slices.Equal(have, []string{"all-reduce: star, messages"}) {
		t.Errorf("%q", have)
	}
}

// TestOwnMethodsOfRuns: a name is another method in another Run, at the same time.
func TestOwnMethodsOfRuns(t *testing.T) {
	m := own(t, "star")
	option := []gcl.CommOption{gcl.WithMethod("star", star), gcl.WithMethod("star", starOf(2))}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			var sent atomic.Int64 // by rank 2, to whom the other star sends everything
			err := gcl.Run(t.Context(), 4, func(ctx context.Context, c *gcl.Comm) error {
				trace := &gcl.Trace{Segment: func(c gcl.TraceCall, _ int, s gcl.TraceSegment) {
					if s.Kind == transport.Send && c.Rank == 2 {
						sent.Add(1)
					}
				}}
				c = withOptions(c, gcl.Options{Method: m, Implementation: gcl.Syncless, Trace: trace})
				data := []float32{1}
				if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add); err != nil || data[0] != 4 {
					return fmt.Errorf("%v, %w", data, err)
				}
				return nil
			}, option[i%2])
			if want := []int64{1, 3}[i%2]; err != nil || sent.Load() != want {
				t.Errorf("run %d: rank 2 sends %d messages, want %d (%v)", i, sent.Load(), want, err)
			}
		})
	}
	all.Wait()
}

// TestOwnMethodUnproved: a schedule that does not prove is the error of every replica, with its counterexample. Nothing
// is sent, and the communicator stays usable.
func TestOwnMethodUnproved(t *testing.T) {
	m := own(t, "broken")
	twice := methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
		// Rank 0 sends its one chunk to rank 1 twice, which needs the second to go on to rank 2.
		return &schedule.Schedule{Collective: schedule.Broadcast, Size: 3, Chunks: 1, Programs: []schedule.Program{
			{{Moves: []schedule.Step{{Verb: schedule.Send, Peer: 1, Src: schedule.In(0, 1)},
				{Verb: schedule.Send, Peer: 1, Src: schedule.In(0, 1)}},
				Then: []schedule.Step{
					{Verb: schedule.Copy, Peer: -1, Src: schedule.In(0, 1), Dst: schedule.Out(0, 1)},
				}}},
			{{Moves: []schedule.Step{{Verb: schedule.Recv, Peer: 0, Dst: schedule.Out(0, 1)},
				{Verb: schedule.Recv, Peer: 0, Dst: schedule.Tmp(0, 0, 1)}}},
				{Moves: []schedule.Step{{Verb: schedule.Send, Peer: 2, Src: schedule.Tmp(0, 0, 1)}}}},
			{{}, {Moves: []schedule.Step{{Verb: schedule.Recv, Peer: 1, Dst: schedule.Out(0, 1)}}}},
		}}, nil
	})
	for _, x := range []struct {
		g    methods.Generator
		call func(ctx context.Context, c *gcl.Comm) error
		want []string
	}{
		{forgetful, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, []float32{1}, gcl.Add)
		}, []string{"all-reduce #1: replica ", "broken: all-reduce over 3 ranks: the schedule does not prove",
			"rank 0 ends with chunk 0 of ranks [0 1] as chunk 0 of the output, want chunk 0 of all 3 ranks"}},
		{forgetful, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyInPlace(ctx, c, [][]float32{{1}, {2, 3}}, gcl.Add)
		}, []string{"all-reduce #1: replica ", "broken: all-reduce over 3 ranks", "want chunk 0 of all 3 ranks"}},
		{forgetful, func(ctx context.Context, c *gcl.Comm) error {
			b := c.Batch(schedule.AllReduce, gcl.Add, 0)
			gcl.Append(b, []float32{1}, []float32{2})
			return b.Run(ctx)
		}, []string{"all-reduce #1: replica ", "broken: all-reduce over 3 ranks", "want chunk 0 of all 3 ranks"}},
		{twice, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.BroadcastInPlace(ctx, c, []float32{1}, 0)
		}, []string{"broken: a rank sends another 2 messages in one round of 1 chunks, want at most 1"}},
	} {
		for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
			endpoints, seen := witnesses(t, 3, true)
			errs := failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, gcl.Options{Method: m, Implementation: i})
				sight := *seen[c.Replica()]
				err := x.call(ctx, c)
				if now := *seen[c.Replica()]; now != sight {
					t.Errorf("replica %d has sent something: %+v", c.Replica(), now)
				}
				if again := x.call(ctx, c); again == nil || err == nil || !strings.Contains(again.Error(), "#2") {
					t.Errorf("again: %v", again)
				}
				if err := c.Barrier(ctx); err != nil {
					t.Errorf("a barrier afterwards: %v", err)
				}
				return err
			}, gcl.WithMethod("broken", x.g), gcl.WithEndpoints(endpoints))
			for r, err := range errs {
				if err == nil || errors.Is(err, gcl.ErrAborted) || errors.Is(err, gcl.ErrMismatch) {
					t.Errorf("replica %d: %v", r, err)
					continue
				}
				for _, want := range x.want {
					if !contains(err, want) {
						t.Errorf("replica %d: %v, want %s", r, err, want)
					}
				}
			}
		}
	}
}

// TestOwnMethodsDiffer: replicas whose schedules differ under one name all get ErrMismatch, also when one of them has
// no schedule for the call. Nobody waits for ever.
func TestOwnMethodsDiffer(t *testing.T) {
	m := own(t, "star")
	connect := map[string]func(n int) ([]transport.Endpoint, error){
		"inproc": inproc.New,
		"tcp":    func(n int) ([]transport.Endpoint, error) { return tcp.New(n, tcp.TCP) },
	}
	none := methods.GeneratorFunc(func(methods.Request) (*schedule.Schedule, error) {
		return nil, errors.ErrUnsupported
	})
	for name, open := range connect {
		for other, g := range map[string]methods.Generator{"another star": starOf(1), "none": none} {
			for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
				t.Run(fmt.Sprintf("%s/%s/%v", name, other, i), func(t *testing.T) {
					const n = 3
					endpoints, err := open(n)
					if err != nil {
						t.Fatal(err)
					}
					ctx := watched(t)
					var all, called sync.WaitGroup
					called.Add(n)
					errs := make([]error, n)
					for r, e := range endpoints {
						mine := methods.Generator(star)
						if r == 1 {
							mine = g
						}
						c, err := gcl.New(e, gcl.WithMethod("star", mine), gcl.WithOptions(gcl.Options{Method: m,
							Implementation: i}))
						if err != nil {
							t.Fatal(err)
						}
						all.Go(func() {
							data := []float32{1}
							for range 2 { // a transport that buffers may find it in the next call
								if errs[r] == nil {
									errs[r] = gcl.AllReduceInPlace(ctx, c, data, gcl.Add)
								}
							}
							called.Done()
							called.Wait()
							c.Close()
						})
					}
					all.Wait()
					for r, err := range errs {
						if !errors.Is(err, gcl.ErrMismatch) && !errors.Is(err, gcl.ErrAborted) {
							t.Errorf("replica %d: %v", r, err)
						}
					}
					found := errors.Join(errs...)
					if !errors.Is(found, gcl.ErrMismatch) || !contains(found, "a generator's method") ||
						other == "another star" && !contains(found, "the schedules that their methods make") {
						t.Errorf("%v", found)
					}
				})
			}
		}
	}
}

// TestOwnMethodProvedOnce: the replicas of a process share a schedule and its proof.
func TestOwnMethodProvedOnce(t *testing.T) {
	m := own(t, "star")
	var asked atomic.Int64
	g := methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
		asked.Add(1)
		if !slices.Equal(r.Members, []int{0, 1, 2, 3, 4, 5, 6, 7}) || len(r.Ring) != 8 || r.Method.String() != "star" {
			return nil, fmt.Errorf("request %+v", r)
		}
		return star(r)
	})
	replicas(t, 8, func(ctx context.Context, c *gcl.Comm) error {
		for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful, gcl.Syncless} {
			c := withOptions(c, gcl.Options{Method: m, Implementation: i})
			for n := range 3 {
				if err := gcl.AllReduceInPlace(ctx, c, make([]float32, n), gcl.Add); err != nil {
					return err
				}
			}
			if _, err := gcl.AllReduce(ctx, grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 1}),
				[]float32{1}, gcl.Add); err != nil { // which asks for nothing
				return err
			}
		}
		return nil
	}, gcl.WithMethod("star", g))
	if n := asked.Load(); n != 1 {
		t.Errorf("the generator was asked %d times, want once", n)
	}
}

// TestOwnMethodExplained: the explanation of a call has the method among the candidates, or says why it is none.
func TestOwnMethodExplained(t *testing.T) {
	m := own(t, "star")
	replicas(t, 4, func(_ context.Context, c *gcl.Comm) error {
		if c.Rank() != 0 {
			return nil
		}
		mine := withOptions(c, gcl.Options{Method: m})
		for _, x := range []struct {
			c          *gcl.Comm
			collective schedule.Collective
			wants      []string
		}{
			{mine, schedule.AllReduce, []string{
				"star, as the options ask; Syncless, since Auto steps together for direct only\n",
				"\n* star                    Syncless             2         0         192    2.05µs          49 %\n",
				"\nno candidate: wrong: methods: wrong: all-reduce over 4 ranks: the schedule does not prove: ",
				"want chunk 0 of all 4 ranks\n"}},
			{mine, schedule.AllGather, []string{
				"direct, since on peer memory it is one pass; Syncful, since the replicas share memory; not star, " +
					"which the options ask for: methods: star: all-gather over 4 ranks: a star does all-reduce only: " +
					"unsupported operation\n",
				"\n* direct ", "\nno candidate: star: methods: star: all-gather over 4 ranks: a star does",
				"\nno candidate: wrong: methods: wrong: all-gather over 4 ranks: a star does"}},
			{c, schedule.AllReduce, []string{"direct, since on peer memory", "\n  star "}},
		} {
			e, err := x.c.Explain(x.collective, 64, tensor.F32)
			if err != nil {
				return err
			}
			for _, want := range x.wants {
				if !strings.Contains(e.String(), want) {
					t.Errorf("%v lacks %q:\n%v", x.collective, want, e)
				}
			}
			for _, s := range e.Skipped {
				if x.collective == schedule.AllGather && !errors.Is(s.Reason, errors.ErrUnsupported) {
					t.Errorf("%v: %v", s.Method, s.Reason)
				}
			}
		}
		_, err := withOptions(c, gcl.Options{Method: own(t, "wrong")}).Explain(schedule.AllReduce, 64, tensor.F32)
		if err == nil || !contains(err, "gcl: explain: methods: wrong: all-reduce over 4 ranks: the schedule does not prove") {
			t.Errorf("%v", err)
		}
		return nil
	}, gcl.WithMethod("star", star), gcl.WithMethod("wrong", forgetful))
}

// TestOwnMethodHybrid: phases that the method does go by it, and the others as by Auto. One that does not prove is an
// error before the first phase.
func TestOwnMethodHybrid(t *testing.T) {
	m, wrong := own(t, "star"), own(t, "wrong")
	var w went
	endpoints, seen := witnesses(t, 4, true)
	errs := failures(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		mine := withOptions(c, gcl.Options{Method: m, Implementation: gcl.Hybrid, Trace: w.trace()})
		// by leaders, by all members
		for bytes, want := range map[int64]string{8: "reduce", 1 << 20: "reduce-scatter"} {
			e, err := mine.Explain(schedule.AllReduce, bytes, tensor.F32)
			if err != nil {
				return err
			}
			want = fmt.Sprintf("; not star, which the options ask for: methods: star: %s over 2 ranks", want)
			if before := "star across 2 link domains, as the options ask; direct inside, among 2 ranks; Hybrid, as the " +
				"options ask; by "; !strings.HasPrefix(e.Why, before) || !strings.Contains(e.Why, want) {
				t.Errorf("%s, want %s...%s", e.Why, before, want)
			}
		}
		data := []float32{1, 2}
		if err := gcl.AllReduceInPlace(ctx, mine, data, gcl.Add); err != nil || data[1] != 8 {
			return fmt.Errorf("%v, %w", data, err)
		}
		if err := mine.Barrier(ctx); err != nil {
			return err
		}
		before := *seen[c.Replica()]
		c = withOptions(c, gcl.Options{Method: wrong, Implementation: gcl.Hybrid})
		err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add)
		if *seen[c.Replica()] != before {
			t.Errorf("something was sent: %+v", *seen[c.Replica()])
		}
		if b := mine.Barrier(ctx); b != nil {
			t.Errorf("a barrier afterwards: %v", b)
		}
		return err
	}, gcl.WithMethod("star", star), gcl.WithMethod("wrong", forgetful), gcl.WithTopology(hosts(t, 2, 2)),
		gcl.WithEndpoints(endpoints))
	for r, err := range errs {
		if err == nil || !contains(err, "wrong: all-reduce over 2 ranks: the schedule does not prove") ||
			errors.Is(err, gcl.ErrAborted) {
			t.Errorf("replica %d: %v", r, err)
		}
	}
	want := []string{"all-reduce: direct, small", "all-reduce: star, messages"}
	if have := w.list(); !slices.Equal(have, want) {
		t.Errorf("%q, want %q", have, want)
	}
}

// TestOwnMethodWithinReplica: IPUs of a replica go by the method too, and an error among them ends the communicator.
func TestOwnMethodWithinReplica(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		mine := withOptions(c, gcl.Options{Method: own(t, "star")})
		rows, err := gcl.AllReduceWithinReplica(ctx, mine, [][]int32{{1, 2}, {3, 4}, {5, 6}}, gcl.Add)
		if err != nil || !slices.Equal(rows[2], []int32{9, 12}) {
			return fmt.Errorf("%v, %w", rows, err)
		}
		return nil
	}, gcl.WithMethod("star", star))
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		mine := withOptions(c, gcl.Options{Method: own(t, "wrong")})
		_, err := gcl.AllReduceWithinReplica(ctx, mine, [][]int32{{1, 2}, {3, 4}, {5, 6}}, gcl.Add)
		return err
	}, gcl.WithMethod("wrong", forgetful))
	for r, err := range errs {
		if !errors.Is(err, gcl.ErrAborted) ||
			!contains(errors.Join(errs...), "wrong: all-reduce over 3 ranks: the schedule") {
			t.Errorf("replica %d: %v", r, err)
		}
	}
}

// TestOwnMethodsByNumber: the schedules of members are compared, and neither names nor numbers, which differ between
// processes.
func TestOwnMethodsByNumber(t *testing.T) {
	names := []string{"star", "sun"}
	for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
		endpoints, err := inproc.New(2)
		if err != nil {
			t.Fatal(err)
		}
		ctx := watched(t)
		var all sync.WaitGroup
		for r, e := range endpoints {
			c, err := gcl.New(e, gcl.WithMethod(names[r], star), gcl.WithOptions(gcl.Options{Method: own(t, names[r]),
				Implementation: i}))
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				data := []float32{1}
				if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add); err != nil || data[0] != 2 {
					t.Errorf("%v, %v", data, err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

// TestOwnMethodPanics: a generator that panics is a *PanicError of every replica that asks, and no hang.
func TestOwnMethodPanics(t *testing.T) {
	wild := methods.GeneratorFunc(func(methods.Request) (*schedule.Schedule, error) { panic("wild") })
	err := gcl.Run(watched(t), 3, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, withOptions(c, gcl.Options{Method: own(t, "wild")}), []float32{1}, gcl.Add)
	}, gcl.WithMethod("wild", wild))
	var panicked *gcl.PanicError
	if !errors.As(err, &panicked) || fmt.Sprint(panicked.Value) != "wild" {
		t.Errorf("%v", err)
	}
}
