package collective_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// counting is an endpoint that counts rounds and closings.
type counting struct {
	transport.Endpoint
	rounds, closed *int
}

func (e counting) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	*e.rounds++
	return e.Endpoint.Exchange(ctx, call, batch)
}

func (e counting) Close() error {
	*e.closed++
	return e.Endpoint.Close()
}

// TestUseTransport has sessions whose replicas are connected by the user's function.
func TestUseTransport(t *testing.T) {
	const n = 3
	f := newFixture(t, n)
	var connected int
	var rounds, closed [n]int
	collective.UseTransport(f.Program, func(replicas int) ([]transport.Endpoint, error) {
		connected++
		endpoints, err := inproc.New(replicas)
		for i, e := range endpoints {
			endpoints[i] = counting{e, &rounds[i], &closed[i]}
		}
		return endpoints, err
	})
	f.output(collective.Comm{}.AllReduce(f.input(spec(tensor.F32, 3), values(tensor.F32)), gcl.Add))
	for turn := range 2 {
		s, err := ir.NewSession(f.Program)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := f.runIn(s)[0][0], []float64{33, 36, 39}; !reflect.DeepEqual(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if err := s.Close(); err != nil || connected != turn+1 || closed != [n]int{turn + 1, turn + 1, turn + 1} ||
			rounds[0] == 0 {
			t.Errorf("connected %d times, closed %v, rounds %v: %v", connected, closed, rounds, err)
		}
	}
	collective.UseTransport(f.Program, inproc.New) // both are closed
	if f.Err() != nil {
		t.Error(f.Err())
	}
}

// TestUseTransportErrors: errors stick, and endpoints that are none of the session's are closed.
func TestUseTransportErrors(t *testing.T) {
	f := newFixture(t, 2)
	collective.UseTransport(f.Program, nil)
	if err := f.Err(); err == nil || !strings.Contains(err.Error(), "use transport at network_test.go:") ||
		!strings.Contains(err.Error(), "no function that connects the replicas") {
		t.Error(err)
	}
	f = newFixture(t, 2)
	f.output(collective.Comm{}.AllReduce(f.input(spec(tensor.F32, 3), values(tensor.F32)), gcl.Add))
	s := f.session()
	collective.UseTransport(f.Program, inproc.New)
	if err := f.Err(); err == nil || !strings.Contains(err.Error(), "use transport at network_test.go:") ||
		!strings.Contains(err.Error(), "a session of the program is connected") {
		t.Error(err)
	}
	if _, err := s.Run(context.Background(), f.in); err == nil ||
		!strings.Contains(err.Error(), "use transport at network_test.go:") {
		t.Errorf("a run after it returns %v", err)
	}

	refused := errors.New("refused")
	for want, connect := range map[string]func(e []transport.Endpoint) ([]transport.Endpoint, error){
		"refused": func(e []transport.Endpoint) ([]transport.Endpoint, error) { return e, refused },
		"the transport has 2 endpoints for 3 rep": func(e []transport.Endpoint) ([]transport.Endpoint, error) {
			return e[:2], nil
		},
		"the transport has 0 endpoints for 3 rep": func(e []transport.Endpoint) ([]transport.Endpoint, error) {
			return nil, nil
		},
		"the transport has no endpoint for replica 1": func(e []transport.Endpoint) ([]transport.Endpoint, error) {
			e[1] = nil
			return e, nil
		},
		"endpoint 0 of the transport is that of replica 1 of 3, want 0 of 3": func(e []transport.Endpoint) ([]transport.Endpoint, error) {
			e[0], e[1] = e[1], e[0]
			return e, nil
		},
		"endpoint 0 of the transport is that of replica 0 of 4, want 0 of 3": func([]transport.Endpoint) ([]transport.Endpoint, error) {
			four, err := inproc.New(4)
			return four[:3], err
		},
	} {
		f := newFixture(t, 3)
		var closed, given [3]int
		collective.UseTransport(f.Program, func(n int) ([]transport.Endpoint, error) {
			var rounds int
			e, err := inproc.New(n)
			if err == nil {
				e, err = connect(e)
			}
			for i := range e {
				if e[i] != nil {
					given[i]++
					e[i] = counting{e[i], &rounds, &closed[i]}
				}
			}
			return e, err
		})
		f.output(collective.Comm{}.AllReduce(f.input(spec(tensor.F32, 3), values(tensor.F32)), gcl.Add))
		s, err := ir.NewSession(f.Program)
		if err == nil {
			s.Close()
		}
		var run *ir.RunError
		if !errors.As(err, &run) || !strings.Contains(err.Error(), want) ||
			want == "refused" && !errors.Is(err, refused) {
			t.Errorf("%v, want %s", err, want)
		}
		if closed != given {
			t.Errorf("%s: of the endpoints %v are closed %v", want, given, closed)
		}
		collective.UseTransport(f.Program, inproc.New)
		if f.Err() != nil {
			t.Errorf("%s: %v", want, f.Err())
		}
	}
}

// allReduceBeside starts an all-reduce beside the replica, with a call of before first, and returns what ends it.
func allReduceBeside(c collective.Comm, x *ir.Tensor, operator gcl.Operator,
	before func(m *ir.Memory) error) func() *ir.Tensor {
	graph := x.Graph().Program().CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{c.AllReduce(collective.Probe(in[0], before), operator)}
	}, x)
	started := x.Graph().Start(graph, x)
	return func() *ir.Tensor { return started.Wait()[0] }
}

// TestBeside: a collective beside the replica does not wait for those of the replica, nor they for it.
func TestBeside(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		for _, g := range groupsOf(n) {
			t.Run(fmt.Sprintf("n=%d/group=%v", n, g), func(t *testing.T) {
				f, c := newFixture(t, n), collective.Comm{Group: g}
				through := make(chan struct{}, 1) // replica 0 is through with its own
				x := f.input(spec(tensor.F32, 1000), values(tensor.F32))
				var beside, own *ir.Tensor
				f.Main().InSequence(func() {
					end := allReduceBeside(c, x, gcl.Add, func(m *ir.Memory) error {
						if m.Replica == 0 { // the others are in the collective already
							<-through
						}
						return nil
					})
					own = c.AllReduce(collective.Comm{}.AllReduce(x, gcl.Max), gcl.Add)
					own = collective.Probe(own, func(m *ir.Memory) error {
						if m.Replica == 0 {
							through <- struct{}{}
						}
						return nil
					})
					beside = end()
				})
				f.output(beside)
				f.output(own)
				s := f.session()
				o := groups{must(g.Resolve(n)), tensor.F32}
				in, most := make([][]float64, n), make([][]float64, n)
				for r := range in {
					for i := range 1000 {
						in[r], most[r] = append(in[r], values(tensor.F32)(r, i)),
							append(most[r], values(tensor.F32)(n-1, i))
					}
				}
				want := [][][]float64{o.allReduce(in, gcl.Add), o.allReduce(most, gcl.Add)}
				for range 3 {
					if got := f.runIn(s); !reflect.DeepEqual(got, want) {
						t.Errorf("%v, want %v", got, want)
					}
				}
			})
		}
	}
}

// TestBesideAllocations has collectives of shards beside those of the replica.
func TestBesideAllocations(t *testing.T) {
	f := newFixture(t, 2)
	x := f.input(spec(tensor.F32, 5), values(tensor.F32))
	gather := f.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		_, whole := shards(collective.Comm{}, in, gcl.Add, true)
		return whole
	}, x, x)
	f.Main().InSequence(func() {
		for range 3 {
			started := f.Main().Start(gather, x, x)
			f.output(collective.Comm{}.AllReduce(x, gcl.Add))
			f.output(started.Wait()[1])
		}
	})
	if allocs := allocations(f); allocs > 0 {
		t.Errorf("%v allocations in a run", allocs)
	}
}

// TestBesideAlone has no other collectives.
func TestBesideAlone(t *testing.T) {
	f := newFixture(t, 2)
	x := f.input(spec(tensor.F32, 2), values(tensor.F32))
	f.output(allReduceBeside(collective.Comm{}, x, gcl.Add, func(*ir.Memory) error { return nil })())
	if got, want := f.run(), [][][]float64{{{12, 14}, {12, 14}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestBesideDisagrees has one replica take a branch with a collective beside it that the other does not take.
func TestBesideDisagrees(t *testing.T) {
	f := apart(t, func(r int) bool { return r == 2 },
		func(x *ir.Tensor) *ir.Tensor {
			return allReduceBeside(collective.Comm{}, x, gcl.Add, func(*ir.Memory) error { return nil })()
		},
		func(x *ir.Tensor) *ir.Tensor { return collective.Probe(x, func(*ir.Memory) error { return nil }) })
	s := f.session()
	_, err := s.Run(context.Background(), f.in)
	if !errors.Is(err, gcl.ErrMismatch) && !errors.Is(err, gcl.ErrAborted) {
		t.Error(err)
	}
}

// TestBesideFails has a replica fail while collectives of others run beside them.
func TestBesideFails(t *testing.T) {
	broken := errors.New("it broke")
	for _, beside := range []bool{false, true} {
		f := newFixture(t, 2)
		x := f.input(spec(tensor.F32, 1000), values(tensor.F32))
		fails := func(m *ir.Memory) error {
			if m.Replica == 1 {
				return broken
			}
			return nil
		}
		f.Main().InSequence(func() {
			end := allReduceBeside(collective.Comm{}, x, gcl.Add, func(m *ir.Memory) error {
				if beside {
					return fails(m)
				}
				return nil
			})
			y := x
			if !beside {
				y = collective.Probe(x, fails)
			}
			f.output(collective.Comm{}.AllReduce(y, gcl.Add))
			f.output(end())
		})
		s := f.session()
		if _, err := s.Run(context.Background(), f.in); !errors.Is(err, broken) {
			t.Errorf("beside %v: %v", beside, err)
		}
	}
}

// TestBesideTransport: the user's function is called once, and a second connection that cannot be made is an error.
func TestBesideTransport(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		f := newFixture(t, 2)
		connected := 0
		collective.UseTransport(f.Program, func(n int) ([]transport.Endpoint, error) {
			connected++
			endpoints, err := inproc.New(n)
			if refuse && err == nil {
				endpoints[1] = noDup{endpoints[1]}
			}
			return endpoints, err
		})
		x := f.input(spec(tensor.F32, 2), values(tensor.F32))
		f.output(allReduceBeside(collective.Comm{}, collective.Comm{}.AllReduce(x, gcl.Add), gcl.Add,
			func(*ir.Memory) error {
				return nil
			})())
		s, err := ir.NewSession(f.Program)
		if refuse {
			if !errors.Is(err, errNoDup) {
				t.Error(err)
			}
		} else if err != nil || connected != 1 {
			t.Errorf("connected %d times, %v", connected, err)
		}
		if err == nil {
			f.runIn(s)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

var errNoDup = errors.New("no second lane")

type noDup struct{ transport.Endpoint }

func (noDup) Dup(context.Context) (transport.Endpoint, error) { return nil, errNoDup }
