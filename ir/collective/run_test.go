package collective_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/tensor"
)

// recorder notes what each replica does.
type recorder struct {
	mu    sync.Mutex // guards names
	names map[int][]string
}

func (r *recorder) trace() *gcl.Trace {
	r.names = map[int][]string{}
	return &gcl.Trace{CollectiveStart: func(c gcl.TraceCall) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.names[c.Replica] = append(r.names[c.Replica], c.Name)
	}}
}

// TestOrder has collectives that the scheduler would rather run in another order: each of the first makes memory that
// is alive to the end, each of the last frees some.
func TestOrder(t *testing.T) {
	var r recorder
	c := collective.Comm{Options: gcl.Options{Trace: r.trace()}}
	pairs := collective.Comm{Group: group(commgroup.Consecutive, 2, 0), Options: c.Options}
	f := newFixture(t, 4)
	one := func(int, int) float64 { return 1 }
	small, large := f.input(spec(tensor.F32, 4), one), f.input(spec(tensor.F32, 400), one)
	var want []string
	var last []*ir.Tensor
	for i := range 4 {
		a, b := fmt.Sprintf("gather %d", i), fmt.Sprintf("scatter %d", i)
		want = append(want, a, b)
		last = append(last, c.AllGather(small).Named(a))
		f.output(pairs.ReduceScatter(large, gcl.Add).Named(b))
	}
	sum := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{c.AllReduce(pairs.AllReduce(in[0], gcl.Max).Named("inside 1"), gcl.Add).Named("inside 2")}
	}, small)
	f.output(f.Main().Repeat(sum, 2, small)[0])
	f.output(c.AllReduce(small, gcl.Min).Named("last"))
	want = append(want, "inside 1", "inside 2", "inside 1", "inside 2", "last")
	for _, t := range last {
		f.output(t)
	}
	f.run()
	for replica := range 4 {
		if got := r.names[replica]; !reflect.DeepEqual(got, want) {
			t.Errorf("replica %d: %q, want %q", replica, got, want)
		}
	}
}

// TestFailingReplica has one replica fail while the others wait for it in collectives, or are in none.
func TestFailingReplica(t *testing.T) {
	broken := errors.New("it broke")
	for _, n := range []int{2, 4} {
		for _, g := range groupsOf(n) {
			for _, how := range []string{"error", "panic"} {
				t.Run(fmt.Sprintf("n=%d/group=%v/%s", n, g, how), func(t *testing.T) {
					f, runs := newFixture(t, n), make([]int, n)
					c := collective.Comm{Group: g}
					x := c.AllReduce(f.input(spec(tensor.F32, 1000), values(tensor.F32)), gcl.Add)
					x = collective.Probe(x, func(m *ir.Memory) error {
						if runs[m.Replica]++; m.Replica != 1 || runs[m.Replica] < 3 {
							return nil
						}
						if how == "panic" {
							panic("it broke")
						}
						return broken
					})
					for range 3 {
						x = c.AllReduce(c.Broadcast(c.AllGatherShards(c.ReduceScatter(x, gcl.Mean), 1000), 0), gcl.Mean)
					}
					f.output(x)
					s := f.session()
					f.runIn(s)
					f.runIn(s)
					_, err := s.Run(context.Background(), f.in)
					var run *ir.RunError
					if !errors.As(err, &run) || run.Op != "probe" || run.Replica != 1 ||
						how == "error" && !errors.Is(err, broken) {
						t.Fatal(err)
					}
					if want := fmt.Sprintf("ir: replica 1: probe built at %v in graph main: %s", run.Position,
						map[string]string{"error": "it broke",
							"panic": "panic: it broke"}[how]); !strings.HasPrefix(err.Error(), want) ||
						!strings.HasPrefix(run.Position.String(), "run_test.go:") {
						t.Errorf("%v\nwant %s", err, want)
					}
					if _, err := s.Run(context.Background(), f.in); !errors.Is(err, run) {
						t.Errorf("the session can still run: %v", err)
					}
				})
			}
		}
	}
}

// TestCancel has the caller give up while all but one replica wait in a collective.
func TestCancel(t *testing.T) {
	f := newFixture(t, 4)
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	x := collective.Probe(f.input(spec(tensor.F32, 1000), values(tensor.F32)), func(m *ir.Memory) error {
		if m.Replica == 2 {
			cancel(enough)
			<-m.Context().Done()
		}
		return nil
	})
	f.output(collective.Comm{}.AllReduce(x, gcl.Add))
	s := f.session()
	_, err := s.Run(ctx, f.in)
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

// apart is a program in which a branch is taken by replicas of which yes says so.
func apart(t *testing.T, yes func(replica int) bool, then, els func(x *ir.Tensor) *ir.Tensor) *fixture {
	f := newFixture(t, 4)
	build := func(of func(x *ir.Tensor) *ir.Tensor) *ir.Graph {
		return f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{of(in[0])}
		}, spec(tensor.F32, 6))
	}
	x := f.input(spec(tensor.F32, 6), values(tensor.F32))
	condition := f.input(spec(tensor.Bool), func(r, _ int) float64 {
		if yes(r) {
			return 1
		}
		return 0
	})
	f.output(f.Main().If(condition, ir.Branch{Graph: build(then), In: []*ir.Tensor{x}},
		ir.Branch{Graph: build(els), In: []*ir.Tensor{x}})[0])
	return f
}

// TestBranchesDisagree has replicas take branches whose collectives do not go together: the run fails and does not
// hang.
func TestBranchesDisagree(t *testing.T) {
	pairs := collective.Comm{Group: group(commgroup.Consecutive, 2, 0)}
	syncless := collective.Comm{Options: gcl.Options{Implementation: gcl.Syncless}}
	nothing := func(x *ir.Tensor) *ir.Tensor {
		return collective.Probe(x, func(*ir.Memory) error { return nil })
	}
	sum := func(c collective.Comm) func(x *ir.Tensor) *ir.Tensor {
		return func(x *ir.Tensor) *ir.Tensor { return c.AllReduce(x, gcl.Add) }
	}
	for _, k := range []struct {
		name      string
		yes       func(r int) bool
		then, els func(x *ir.Tensor) *ir.Tensor
	}{
		{"nothing", func(r int) bool { return r == 2 }, sum(collective.Comm{}), nothing},
		{"nothing, messages", func(r int) bool { return r == 2 }, sum(syncless), nothing},
		{"nothing, pairs", func(r int) bool { return r == 2 }, sum(pairs), nothing},
		{"all but one", func(r int) bool { return r != 2 }, sum(pairs), nothing},
		{"root", func(r int) bool { return r == 2 },
			func(x *ir.Tensor) *ir.Tensor { return pairs.Broadcast(x, 0) }, nothing},
		{"other operator", func(r int) bool { return r == 2 }, sum(collective.Comm{}),
			func(x *ir.Tensor) *ir.Tensor { return collective.Comm{}.AllReduce(x, gcl.Max) }},
		{"other group", func(r int) bool { return r == 2 }, sum(collective.Comm{}), sum(pairs)},
	} {
		t.Run(k.name, func(t *testing.T) {
			f := apart(t, k.yes, k.then, k.els)
			s := f.session()
			_, err := s.Run(context.Background(), f.in)
			if !errors.Is(err, gcl.ErrMismatch) && !errors.Is(err, gcl.ErrAborted) ||
				!strings.Contains(err.Error(), " differ") && !strings.Contains(err.Error(), "leaves without") {
				t.Error(err)
			}
			if text := fmt.Sprint(err); strings.Contains(text, "barrier #") &&
				!strings.Contains(text, `"end of the run"`) {
				t.Errorf("%s: names a barrier that the program has not", text)
			}
			if k.name == "nothing" && strings.Count(fmt.Sprint(err), `barrier #1 "end of the run" (`) != 1 {
				t.Errorf("%v, want one call to be the end of the run", err)
			}
			var run *ir.RunError // of the replica that waited in vain; a root does not wait
			if k.name != "root" && (!errors.As(err, &run) || run.Op != "all-reduce") {
				t.Errorf("%v, want the line of an all-reduce", err)
			}
		})
	}
}

// TestBranchesByGroup has whole groups take branches of their own, which is fine.
func TestBranchesByGroup(t *testing.T) {
	pairs := collective.Comm{Group: group(commgroup.Consecutive, 2, 0)}
	f := apart(t, func(r int) bool { return r >= 2 },
		func(x *ir.Tensor) *ir.Tensor { return pairs.AllReduce(x, gcl.Add) },
		func(x *ir.Tensor) *ir.Tensor { return pairs.Broadcast(pairs.AllReduce(x, gcl.Max), 1) })
	s := f.session()
	for range 3 {
		got := f.runIn(s)[0]
		for r, first := range []float64{11, 11, 52, 52} {
			if got[r][0] != first {
				t.Errorf("replica %d: %v, want %v first", r, got[r], first)
			}
		}
	}
}

// TestNoAllocations runs programs of every collective.
func TestNoAllocations(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		for name, o := range map[string]gcl.Options{"": {}, "syncless": {Implementation: gcl.Syncless},
			"reproducible": {Reproducible: true}} {
			t.Run(fmt.Sprintf("n=%d/%s", n, name), func(t *testing.T) {
				f := newFixture(t, n)
				everything(f, collective.Comm{Options: o}, tensor.F32)
				if allocs := allocations(f); allocs > 0 {
					t.Errorf("%v allocations in a run", allocs)
				}
			})
		}
	}
}

// TestNoAllocationsMany has more calls on several tensors than gcl keeps what it knows of.
func TestNoAllocationsMany(t *testing.T) {
	f := newFixture(t, 2)
	x := f.input(spec(tensor.F32, 100), values(tensor.F32))
	y := f.input(spec(tensor.I32, 10), values(tensor.I32))
	for range 50 {
		for _, t := range (collective.Comm{}).AllReduceMany([]*ir.Tensor{x, y}, gcl.Add) {
			f.output(t)
		}
	}
	if allocs := allocations(f); allocs > 0 {
		t.Errorf("%v allocations in a run", allocs)
	}
}

// allocations is how many there are in a run, on average.
func allocations(f *fixture) float64 {
	if underRace {
		f.t.Skip("append allocates under the race detector")
	}
	s := f.session()
	out := map[*ir.Stream]*tensor.Tensor{}
	for _, stream := range f.out {
		h := s.HostSpec(stream)
		out[stream] = must(tensor.New(h.DType, h.Shape...))
	}
	ctx := context.Background()
	if err := s.Enter(); err != nil {
		f.t.Fatal(err)
	}
	run := func() {
		if err := s.RunTo(ctx, out, f.in); err != nil {
			f.t.Error(err)
		}
	}
	for range 5 {
		run()
	}
	// The first time that a replica is preempted where it was not before may allocate what is then kept: beside busy
	// goroutines three runs had 119 allocations and the next nine none. So one trial must do.
	least := testing.AllocsPerRun(20, run)
	for trial := 1; trial < 5 && least > 0; trial++ {
		f.t.Logf("trial %d: %v allocations in a run", trial, least)
		least = min(least, testing.AllocsPerRun(20, run))
	}
	return least
}

// TestTwoSessions runs two sessions at the same time, each with connections of its own.
func TestTwoSessions(t *testing.T) {
	var running sync.WaitGroup
	for range 2 {
		f := newFixture(t, 2)
		f.output(collective.Comm{}.AllReduce(f.input(spec(tensor.F32, 3), values(tensor.F32)), gcl.Add))
		s := f.session()
		running.Go(func() {
			for range 100 {
				if got, err := s.Run(context.Background(), f.in); err != nil || element(got[f.out[0]], 0) != 12 {
					t.Error(got, err)
				}
			}
		})
	}
	running.Wait()
}
