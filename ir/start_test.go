package ir_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/ir/show"
	"gogcl.dev/tensor"
)

// funcOp is an operation without tensors that runs a function.
type funcOp struct {
	name string
	run  func(m *ir.Memory) error
}

func (o funcOp) Name() string                       { return o.name }
func (o funcOp) Infer([]ir.Spec) ([]ir.Spec, error) { return nil, nil }
func (o funcOp) Bind(m *ir.Memory) (func() error, error) {
	return func() error { return o.run(m) }, nil
}

// keyedOp is one with an effect.
type keyedOp struct {
	funcOp
	key any
}

func (o keyedOp) OrderKey() any { return o.key }

func does(g *ir.Graph, name string, run func(m *ir.Memory) error) { ir.Apply(funcOp{name, run}, g) }

// graphOf is a graph without tensors of one operation.
func graphOf(p *ir.Program, name string, run func(m *ir.Memory) error) *ir.Graph {
	return p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
		does(g, name, run)
		return nil
	})
}

func newSession(t *testing.T, p *ir.Program) *ir.Session {
	t.Helper()
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sums is a graph that returns a+b and a+a, and changes a after that.
func sums(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	a, b := add(in[0], in[1]), add(in[0], in[0])
	return []*ir.Tensor{a, b, addTo(in[0], in[1])}
}

// What is started computes what a call does: its inputs go by value, its outputs are its own.
func TestStart(t *testing.T) {
	want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
		g := p.CreateGraph(sums, f32(), f32())
		x := add(number(m, 1), number(m, 2))
		s := m.Start(g, x, number(m, 10))
		y := add(x, number(m, 100))
		out := s.Wait()
		addTo(out[0], number(m, 1000))
		return append(out, x, y)
	}), 1013, 6, 13, 3, 103)
	want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
		// Outputs that are an input, one another, a constant: each is memory of its own.
		g := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			y, c := add(in[0], in[0]), number(g, 7)
			return []*ir.Tensor{in[0], in[0], y, y, c}
		}, f32())
		x := add(number(m, 1), number(m, 2))
		out := m.Start(g, x).Wait()
		for i, o := range out {
			addTo(o, number(m, float32(10*i)))
		}
		return append(out, addTo(x, number(m, 100)))
	}), 3, 13, 26, 36, 47, 103)
	want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
		// What is changed after the wait, or was before the start.
		g := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{add(in[0], in[0])}
		}, f32())
		x := p.Variable(tensor.Scalar(float32(1))).Tensor
		addTo(x, number(m, 1))
		out := m.Start(g, x).Wait()
		addTo(x, number(m, 1))
		return append(out, x)
	}), 4, 3)
}

// Loops, choices and calls around it and in it.
func TestStartInLoops(t *testing.T) {
	for _, odd := range []bool{true, false} {
		got := result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
			twice := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				return []*ir.Tensor{add(in[0], in[0])}
			}, f32())
			same := p.CreateGraph(identity, f32())
			inner := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { // 16 x, or 8 x
				x := g.Call(twice, g.Repeat(twice, 2, in[0])[0])[0]
				one := []*ir.Tensor{x}
				return g.If(g.Constant(tensor.Scalar(odd)), ir.Branch{Graph: twice, In: one},
					ir.Branch{Graph: same, In: one})
			}, f32())
			turn := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				a := g.Start(inner, in[0])
				b := g.Start(twice, in[0])
				y := add(in[0], in[1])
				return []*ir.Tensor{add(y, add(a.Wait()[0], b.Wait()[0]))}
			}, f32(), f32())
			branch := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				s := g.Start(turnless(p, inner), in[0])
				return []*ir.Tensor{add(in[0], s.Wait()[0])}
			}, f32())
			x := m.Repeat(turn, 2, number(m, 1), number(m, 5))[0]
			return m.If(m.Constant(tensor.Scalar(true)), ir.Branch{Graph: branch, In: []*ir.Tensor{x}},
				ir.Branch{Graph: same, In: []*ir.Tensor{x}})
		})
		x, k := float32(1), float32(8)
		if odd {
			k = 16
		}
		for range 2 {
			x += 5 + k*x + 2*x
		}
		want(t, got, x+k*x)
	}
}

// turnless is a graph that calls another.
func turnless(p *ir.Program, called *ir.Graph) *ir.Graph {
	return p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return g.Call(called, in...) }, f32())
}

// meeting is two operations of which each waits for the other.
type meeting struct{ a, b chan struct{} }

func newMeeting() meeting { return meeting{make(chan struct{}, 1), make(chan struct{}, 1)} }

func (w meeting) op(first bool) func(m *ir.Memory) error {
	mine, other := w.a, w.b
	if !first {
		mine, other = w.b, w.a
	}
	return func(m *ir.Memory) error {
		if m.Beside != first {
			return errors.New("it is said to be where it is not")
		}
		mine <- struct{}{}
		select {
		case <-other:
			return nil
		case <-m.Context().Done():
			return context.Cause(m.Context())
		}
	}
}

// A started call runs beside what is between the start and the wait, in every run and in every turn of a loop. The
// calls of one replica run in the order of their starts, and allocate nothing.
func TestStartRunsBeside(t *testing.T) {
	p := ir.New(1)
	first, second := newMeeting(), newMeeting()
	a, b := graphOf(p, "a", first.op(true)), graphOf(p, "b", second.op(true))
	turn := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		g.InSequence(func() {
			one, two := g.Start(a), g.Start(b)
			does(g, "meet a", first.op(false))
			does(g, "meet b", second.op(false))
			two.Wait()
			one.Wait()
		})
		return nil
	})
	p.Main().Repeat(turn, 3)
	s := newSession(t, p)
	if err := s.Enter(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	run := func() {
		if err := s.RunTo(ctx, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(50, run); n > 0 && !irtest.Race {
		t.Errorf("%v allocations a run", n)
	}
}

// In a sequence starts and waits come where they are written.
func TestStartOrder(t *testing.T) {
	var list []string
	note := func(name string) func(*ir.Memory) error {
		return func(m *ir.Memory) error { list = append(list, name); return nil }
	}
	p := ir.New(1)
	m := p.Main()
	m.InSequence(func() {
		does(m, "before", note("before"))
		m.Start(graphOf(p, "beside", note("beside"))).Wait()
		does(m, "after", note("after"))
	})
	if _, err := newSession(t, p).Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(list, " "); got != "before beside after" {
		t.Errorf("order %s", got)
	}
}

// Outside of sequences a start comes where least memory is alive, and what has an effect that the called graph has too
// before the start or after the wait, as it was built.
func TestStartSchedule(t *testing.T) {
	var list []string
	p := ir.New(1)
	m := p.Main()
	keyed := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
		ir.Apply(keyedOp{funcOp{"second", nil}, "key"}, g)
		return []*ir.Tensor{ir.Apply1(tracedOp{"large", &list}, g)}
	})
	var y *ir.Tensor
	var s *ir.Started
	m.InSequence(func() {
		y = ir.Apply1(tracedOp{"y", &list}, m)
		m.OutOfSequence(func() {
			s = m.Start(keyed)
			does(m, "small", nil)
			ir.Apply(keyedOp{funcOp{"first", nil}, "other"}, m)
		})
	})
	s.Wait()
	ir.Apply(keyedOp{funcOp{"third", nil}, "key"}, m, y) // which frees y, and the wait nothing
	at := map[string]int{}
	for i, step := range newSession(t, p).Report().Steps {
		at[step.Op] = i
	}
	const start, wait = "start TestStartSchedule", "wait for TestStartSchedule"
	if at["small"] > at[start] || at["first"] > at[start] || at[start] > at[wait] || at[wait] > at["third"] ||
		at["third"] == 0 {
		t.Errorf("order %v", at)
	}
}

// startedGradient is an operation that builds a start in its gradient.
type startedGradient struct {
	addOp
	graph *ir.Graph
}

func (o startedGradient) Gradient(b *ir.Backward) []*ir.Tensor {
	b.Graph().Start(o.graph, b.Grad(0)).Wait() // of which nothing is used
	return b.Graph().Start(o.graph, b.Grad(0)).Wait()
}

// An operation may start what computes its gradient.
func TestStartInGradient(t *testing.T) {
	want(t, result(t, func(p *ir.Program, m *ir.Graph) []*ir.Tensor {
		twice := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			s := add(in[0], in[0])
			return []*ir.Tensor{s, s}
		}, f32())
		f := p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ir.Apply1(startedGradient{graph: twice}, nil, in[0], in[1])}
		}, f32(), f32())
		info := ir.Autodiff(f)
		return m.Call(info.Graph, number(m, 5))
	}), 10, 10)
}

// anyLine is an error's text without the numbers of lines.
func anyLine(err error) string {
	return regexp.MustCompile(`(_test\.go):\d+`).ReplaceAllString(err.Error(), "$1:#")
}

// TestStartErrors has what cannot be started, or waited for.
func TestStartErrors(t *testing.T) {
	other := ir.New(1).CreateGraph(identity, f32())
	for _, c := range []struct {
		name  string
		build func(p *ir.Program, m *ir.Graph)
		want  string
	}{
		{"no graph", func(_ *ir.Program, m *ir.Graph) { m.Start(nil).Wait() }, "start at start_test.go:* in graph main: no graph"},
		{"another program's", func(_ *ir.Program, m *ir.Graph) { m.Start(other) }, "graph identity is of another program"},
		{"incomplete", func(p *ir.Program, _ *ir.Graph) {
			p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor { return g.Start(g).Wait() })
		}, "is not complete"},
		{"missing input", func(p *ir.Program, m *ir.Graph) { m.Start(p.CreateGraph(identity, f32())).Wait() }, "input 0, %0, is missing"},
		{"input of another shape", func(p *ir.Program, m *ir.Graph) {
			m.Start(p.CreateGraph(identity, f32(2)), number(m, 1)).Wait()
		}, "start at start_test.go:* in graph main of float32 (): input 0, %0, of graph identity is float32 (), want " +
			"float32 (2,)"},
		{"input of no graph", func(p *ir.Program, m *ir.Graph) {
			m.Start(p.CreateGraph(identity, f32()), ops.Add(nil, nil)).Wait()
		}, "start at start_test.go:* in graph main: input 0 is what an operation on no tensor has returned"},
		{"complete graph", func(p *ir.Program, m *ir.Graph) {
			p.CreateGraph(identity).Start(p.CreateGraph(identity))
		}, "start at start_test.go:* in graph identity: the graph is complete"},
		{"stream", func(p *ir.Program, m *ir.Graph) {
			in := p.HostToDevice("x", f32())
			loads := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
				return []*ir.Tensor{g.HostLoad(in)}
			})
			m.Start(p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor { return g.Call(loads) })).Wait()
		}, `host load "x" of graph TestStartErrors, built at start_test.go:*, cannot run beside a replica`},
		{"start in a start", func(p *ir.Program, m *ir.Graph) {
			same := p.CreateGraph(identity, f32())
			m.Start(p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				return g.Start(same, in...).Wait()
			}, f32()), number(m, 1)).Wait()
		}, "start identity of graph TestStartErrors, built at start_test.go:*, cannot run beside a replica"},
		{"load of code", func(p *ir.Program, m *ir.Graph) {
			same := p.CreateGraph(identity, f32())
			m.Start(p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				g.RemoteCodeLoad(same, "executable")
				return nil
			})).Wait()
		}, `remote code load of identity to "executable" of graph`},
		{"no wait", func(p *ir.Program, m *ir.Graph) {
			m.Start(p.CreateGraph(identity, f32()), number(m, 1))
		}, "start at start_test.go:* in graph main of float32 (): graph identity is never waited for: Wait must be " +
			"called"},
		{"two waits", func(p *ir.Program, m *ir.Graph) {
			s := m.Start(p.CreateGraph(identity, f32()), number(m, 1))
			s.Wait()
			s.Wait()
		}, "wait at start_test.go:* in graph main: graph identity, started at start_test.go:*, is waited for at " +
			"start_test.go:* already"},
		{"a wait when the graph is complete", func(p *ir.Program, m *ir.Graph) {
			same := p.CreateGraph(identity, f32())
			var s *ir.Started
			g := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				s = g.Start(same, in...)
				return nil
			}, f32())
			m.Call(g, number(m, 1))
			s.Wait()
		}, "wait at start_test.go:* in graph TestStartErrors: the graph is complete"},
		{"changed between", func(p *ir.Program, m *ir.Graph) {
			x := add(number(m, 1), number(m, 1))
			s := m.Start(p.CreateGraph(identity, f32()), x)
			addTo(x, x)
			s.Wait()
		}, "wait at start_test.go:* in graph main: test update at program_test.go:* changes in place %2, which graph " +
			"identity reads from its start at start_test.go:* until here"},
		{"changed between by what is said later", func(p *ir.Program, m *ir.Graph) {
			x := add(number(m, 1), number(m, 1))
			s := m.Start(p.CreateGraph(identity, f32()), x)
			call := m.CallWithInfo(p.CreateGraph(func(_ *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				addTo(in[0], in[0])
				return nil
			}, f32()), nil, x)
			s.Wait()
			call.SetParentInputModified(x)
		}, "call at start_test.go:* changes in place %2, which graph identity reads"},
		{"gradient", func(p *ir.Program, m *ir.Graph) {
			same := p.CreateGraph(identity, f32())
			ir.Autodiff(p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				return g.Start(same, in...).Wait()
			}, f32()))
		}, "wait at start_test.go:* in graph TestStartErrors: autodiff: what is started beside the replica has no " +
			"gradient"},
	} {
		p := ir.New(1)
		c.build(p, p.Main())
		s, err := ir.NewSession(p)
		if err == nil {
			s.Close()
			t.Errorf("%s: a session", c.name)
			continue
		}
		var e *ir.BuildError
		if !errors.As(err, &e) ||
			!strings.Contains(anyLine(err), strings.ReplaceAll(c.want, "_test.go:*", "_test.go:#")) {
			t.Errorf("%s: error %q, want %q", c.name, err, c.want)
		}
	}
	if out := (*ir.Started)(nil).Wait(); len(out) == 0 || out[0] == nil {
		t.Errorf("the wait of nothing returns %v", out)
	}
	p := ir.New(1)
	p.CreateGraph(identity, f32())
	newSession(t, p)
	p.Main().Start(p.Graphs()[1], nil)
	if err := p.Err(); err == nil {
		t.Error("a start after a session")
	}
}

// A gradient on another way than the started call's has none to do with it.
func TestStartOffTheWay(t *testing.T) {
	p := ir.New(1)
	same := p.CreateGraph(identity, f32())
	g := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		g.Start(same, in...).Wait()
		return []*ir.Tensor{add(in[0], in[0])}
	}, f32())
	if ir.Autodiff(g); p.Err() != nil {
		t.Error(p.Err())
	}
}

// An error, a panic, and the end of the caller's patience in what is started end the run, also where the replicas
// wait for nothing but the others' companions, and say where.
func TestStartedFails(t *testing.T) {
	reason := errors.New("enough")
	for _, how := range []string{"error", "panic", "cancel"} {
		p := ir.New(3)
		ctx, cancel := context.WithCancelCause(context.Background())
		untold := func(m *ir.Memory) error {
			<-m.Context().Done()
			return context.Cause(m.Context())
		}
		g := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
			does(g, "test fail", func(m *ir.Memory) error {
				switch {
				case m.Replica != 1:
				case how == "error":
					return errors.New("no more")
				case how == "panic":
					panic("over the edge")
				default:
					cancel(reason)
				}
				return untold(m)
			})
			return nil
		})
		main := p.Main()
		main.InSequence(func() {
			s, queued := main.Start(g), main.Start(graphOf(p, "queued", func(*ir.Memory) error {
				t.Error("it runs after an error")
				return nil
			}))
			does(main, "between", untold)
			s.Wait()
			queued.Wait()
		})
		s := newSession(t, p)
		_, err := s.Run(ctx, nil)
		var e *ir.RunError
		want := map[string]string{"error": ": no more",
			"panic": ": panic: over the edge\n\n", "cancel": ": enough"}[how]
		if !errors.As(err, &e) || !strings.Contains(anyLine(err), "built at start_test.go:#") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", how, err)
		} else if how != "cancel" &&
			(e.Replica != 1 || e.Op != "test fail" || e.Graph != "TestStartedFails" ||
				!strings.HasSuffix(e.Position.File, "start_test.go")) {
			t.Errorf("%s: it is the error of %v", how, e)
		}
		if how == "cancel" && !errors.Is(err, reason) {
			t.Errorf("%v, want %v", err, reason)
		}
		cancel(nil)
	}
}

// When the replica fails, the run ends after what it has started: nobody touches memory once it has returned.
func TestStartedIsSettled(t *testing.T) {
	for _, panics := range []bool{false, true} {
		p := ir.New(2)
		var running, ran atomic.Int32
		p.Main().InSequence(func() {
			s := p.Main().Start(graphOf(p, "slow", func(m *ir.Memory) error {
				running.Add(1)
				defer running.Add(-1)
				ran.Add(1)
				<-m.Context().Done()
				time.Sleep(10 * time.Millisecond) // so that a run that does not wait for it has returned
				return nil
			}))
			does(p.Main(), "fail", func(m *ir.Memory) error {
				for ran.Load() < 2 {
				}
				if panics {
					panic("over the edge")
				}
				return errors.New("no more")
			})
			s.Wait()
		})
		s := newSession(t, p)
		_, err := s.Run(context.Background(), nil)
		if n := running.Load(); n != 0 || err == nil ||
			!strings.Contains(anyLine(err), ": fail built at start_test.go:#") {
			t.Errorf("%d are running after %v", n, err)
		}
	}
}

// besideProgram has what drawings and reports show of what is started.
func besideProgram() *ir.Program {
	p := ir.New(1)
	v := ir.Spec{DType: tensor.I64, Shape: tensor.Shape{8}}
	inner := p.CreateGraph(clip, v)
	square := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
		x := ir.ToyWithScratch(g.Call(inner, in[0])[0], 100).Named("x")
		return []*ir.Tensor{ir.ToyScale(x, 2).Named("y")}
	}, v)
	m := p.Main()
	m.InSequence(func() {
		m.RemoteCodeLoad(square, "executable")
		m.RemoteCodeLoad(inner, "executable")
		a := m.HostLoad(p.HostToDevice("a", v))
		s := m.Start(square, a)
		b := ir.ToyWithScratch(ir.ToyScale(a, 3).Named("b"), 200).Named("b2")
		c := s.Wait()[0]
		m.HostStore(p.DeviceToHost("c", v), ir.ToyAdd(b, c).Named("d"))
	})
	return p
}

// TestStartReport looks at a program as text and as a drawing, and at the accounts of memory and code: between start
// and wait all is alive that the started graph works on, scratch memory is there twice, and its code is live.
func TestStartReport(t *testing.T) {
	p := besideProgram()
	unchanged(t, "beside.txt", p.String())
	unchanged(t, "beside.dot", draw(t, p.Main()))
	s := newSession(t, p)
	unchanged(t, "beside_code.txt", show.Code(p).String())
	r := s.Report()
	unchanged(t, "beside_report.txt", r.String())
	if r.Scratch != 128+256 || r.Peak != r.Arena+r.Scratch {
		t.Errorf("scratch %d of %d, want 384", r.Scratch, r.Peak)
	}
}
