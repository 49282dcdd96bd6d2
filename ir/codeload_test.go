package ir_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/ir"
	"gogcl.dev/ir/show"
	"gogcl.dev/tensor"
)

// coded is a program with graphs of one input and one output for the tests of code: g1, of two operations, and others.
type coded struct {
	*ir.Program
	main *ir.Graph
	x    *ir.Tensor
	g1   *ir.Graph
}

func newCoded() *coded {
	p := ir.New(1)
	c := &coded{Program: p, main: p.Main(), x: p.Variable(zeros(f32(2, 2))).Tensor}
	c.g1 = c.graph(g1)
	return c
}

func (c *coded) graph(build func(*ir.Graph, []*ir.Tensor) []*ir.Tensor) *ir.Graph {
	return c.CreateGraph(build, f32(2, 2))
}

func g1(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	return []*ir.Tensor{ir.ToyRelu(ir.ToyRelu(in[0]))}
}

func g2(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return []*ir.Tensor{ir.ToyRelu(in[0])} }

func (c *coded) op()                { ir.ToyOfKind("op", "", c.x) }
func (c *coded) load(g *ir.Graph)   { c.main.RemoteCodeLoad(g, "executable") }
func (c *coded) call(g *ir.Graph)   { c.main.Call(g, c.x) }
func (c *coded) callNo(g *ir.Graph) { c.main.Call(g) }

// loader is a graph of a name of its own that loads another.
type loader struct{ of *ir.Graph }

func (l loader) g2(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor { return l.build(g) }
func (l loader) g3(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor { return l.build(g) }
func (l loader) g4(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor { return l.build(g) }
func (l loader) build(g *ir.Graph) []*ir.Tensor {
	g.RemoteCodeLoad(l.of, "executable")
	return nil
}

// report is the code of the program: for each step, what it does and which graphs beside main are live.
func (c *coded) report(t *testing.T) (steps string, r *show.CodeReport) {
	t.Helper()
	s, err := ir.NewSession(c.Program)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r = show.Code(s.Program())
	var b strings.Builder
	short := strings.NewReplacer("remote code load of", "load", ` to "executable"`, "", "loader.", "")
	for _, step := range r.Steps {
		if len(step.Live) == 0 || step.Live[0] != "main" {
			t.Errorf("%s: the main graph's code is not live: %v", step.Op, step.Live)
			continue
		}
		b.WriteString(strings.Repeat(" ",
			step.Depth) + short.Replace(step.Op) + ":" +
			short.Replace(strings.Join(append([]string{""}, step.Live[1:]...), " ")) + "\n")
	}
	return b.String(), r
}

// TestCodeLiveness has the examples of the chapter on loading code, and what else decides what is live.
func TestCodeLiveness(t *testing.T) {
	branches := func(c *coded, then, els func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor) {
		a, b := c.graph(then), c.graph(els)
		x := []*ir.Tensor{c.x}
		c.main.If(ir.ToyAbove(c.x, 0), ir.Branch{Graph: a, In: x}, ir.Branch{Graph: b, In: x})
	}
	for _, test := range []struct {
		name  string
		build func(*coded)
		want  string
		loads string
	}{
		{"one load", func(c *coded) {
			c.op()
			c.load(c.g1)
			c.call(c.g1)
			c.op()
			c.call(c.g1)
			c.op()
			c.call(c.g1)
			c.op()
		}, `
op:
load g1: g1
call g1: g1
 relu: g1
 relu: g1
op: g1
call g1: g1
 relu: g1
 relu: g1
op: g1
call g1: g1
 relu: g1
 relu: g1
op:
`, "g1"},
		{"a load before each call", func(c *coded) {
			for range 3 {
				c.op()
				c.load(c.g1)
				c.call(c.g1)
			}
			c.op()
		}, strings.Repeat(`
op:
load g1: g1
call g1: g1
 relu: g1
 relu: g1`, 3) + `
op:
`, "g1 g1 g1"},
		{"no load", func(c *coded) {
			c.op()
			c.call(c.g1)
			c.op()
		}, `
op: g1
call g1: g1
 relu: g1
 relu: g1
op: g1
`, ""},
		{"a call before the first load", func(c *coded) {
			c.op()
			c.call(c.g1)
			c.op()
			c.load(c.g1)
			c.call(c.g1)
			c.op()
		}, `
op: g1
call g1: g1
 relu: g1
 relu: g1
op:
load g1: g1
call g1: g1
 relu: g1
 relu: g1
op:
`, "g1"},
		{"loads that follow each other", func(c *coded) {
			two := c.graph(g2)
			c.load(c.g1)
			c.load(two)
			c.op()
			c.call(two)
			c.load(two)
			c.op()
			c.load(c.g1)
			c.call(c.g1)
			c.call(two)
		}, `
load g1, g2, merged: g2
op: g2
call g2: g2
 relu: g2
load g2: g2
op: g2
load g1: g1 g2
call g1: g1 g2
 relu: g1 g2
 relu: g1 g2
call g2: g2
 relu: g2
`, "g1 g2 g2 g1"},
		{"nested", func(c *coded) {
			two := c.CreateGraph(loader{c.g1}.g2)
			c.load(c.g1)
			c.callNo(two)
			c.call(c.g1)
		}, `
load g1: g2
call g2: g2
 load g1: g1 g2
call g1: g1 g2
 relu: g1 g2
 relu: g1 g2
`, "g1 g1"},
		{"nested twice", func(c *coded) {
			two := c.CreateGraph(loader{c.g1}.g2)
			three, four := c.CreateGraph(loader{c.g1}.g3), c.CreateGraph(loader{two}.g4)
			c.load(three)
			c.callNo(three)
			c.load(four)
			c.callNo(four)
		}, `
load g3: g3
call g3: g3
 load g1: g3
load g4: g4
call g4: g4
 load g2: g4
`, "g3 g1 g4 g2"},
		{"a load in one branch", func(c *coded) {
			c.op()
			branches(c, loading{c.g1}.then, g2)
			c.op()
			c.call(c.g1)
			c.op()
		}, `
op: g1 loading.then g2
any above 0: g1 loading.then g2
if: g1 loading.then g2
 op: g1 loading.then g2
 load g1: g1 loading.then g2
 relu: g1 loading.then g2
op: g1 loading.then g2
call g1: g1 loading.then g2
 relu: g1 loading.then g2
 relu: g1 loading.then g2
op: loading.then g2
`, "g1"},
		{"a load in both branches", func(c *coded) {
			c.op()
			branches(c, loading{c.g1}.then, loading{c.g1}.els)
			c.op()
			c.call(c.g1)
			c.op()
		}, `
op: loading.then loading.els
any above 0: loading.then loading.els
if: loading.then loading.els
 op: loading.then loading.els
 load g1: g1 loading.then loading.els
 op: loading.then loading.els
 load g1: g1 loading.then loading.els
op: g1 loading.then loading.els
call g1: g1 loading.then loading.els
 relu: g1 loading.then loading.els
 relu: g1 loading.then loading.els
op: loading.then loading.els
`, "g1 g1"},
		{"a load and a call in one branch", func(c *coded) {
			c.op()
			branches(c, loading{c.g1}.calling, g2)
			c.op()
		}, `
op: loading.calling g2
any above 0: loading.calling g2
if: loading.calling g2
 op: loading.calling g2
 load g1: g1 loading.calling g2
 call g1: g1 loading.calling g2
  relu: g1 loading.calling g2
  relu: g1 loading.calling g2
 op: loading.calling g2
 relu: loading.calling g2
op: loading.calling g2
`, "g1"},
		{"a load before a loop", func(c *coded) {
			c.load(c.g1)
			c.op()
			c.main.Repeat(c.graph(loading{c.g1}.turn), 2, c.x)
			c.op()
		}, `
load g1: g1 loading.turn
op: g1 loading.turn
repeat 2 times loading.turn: g1 loading.turn
 op: g1 loading.turn
 call g1: g1 loading.turn
  relu: g1 loading.turn
  relu: g1 loading.turn
 op: g1 loading.turn
op: loading.turn
`, "g1"},
		{"a load before a loop of one turn", func(c *coded) {
			c.load(c.g1)
			c.main.Repeat(c.graph(loading{c.g1}.turn), 1, c.x)
		}, `
load g1: g1 loading.turn
repeat 1 time loading.turn: g1 loading.turn
 op: g1 loading.turn
 call g1: g1 loading.turn
  relu: g1 loading.turn
  relu: g1 loading.turn
 op: loading.turn
`, "g1"},
		{"a load in a loop", func(c *coded) {
			c.op()
			c.main.Repeat(c.graph(loading{c.g1}.calling), 2, c.x)
			c.op()
		}, `
op: loading.calling
repeat 2 times loading.calling: loading.calling
 op: loading.calling
 load g1: g1 loading.calling
 call g1: g1 loading.calling
  relu: g1 loading.calling
  relu: g1 loading.calling
 op: loading.calling
op: loading.calling
`, "g1"},
		{"a load at the end of a turn", func(c *coded) {
			c.load(c.g1)
			c.main.Repeat(c.graph(loading{c.g1}.ahead), 2, c.x)
			c.op()
		}, `
load g1: g1 loading.ahead
repeat 2 times loading.ahead: g1 loading.ahead
 call g1: g1 loading.ahead
  relu: g1 loading.ahead
  relu: g1 loading.ahead
 op: loading.ahead
 load g1: g1 loading.ahead
 op: g1 loading.ahead
op: loading.ahead
`, "g1 g1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCoded()
			c.main.InSequence(func() { test.build(c) })
			steps, r := c.report(t)
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"),
				strings.ReplaceAll(steps, "remote code ", "")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			loads := strings.NewReplacer("loader.", "").Replace(strings.Join(r.Loads, " "))
			if loads != test.loads {
				t.Errorf("loads seen %s, want %s", loads, test.loads)
			}
		})
	}
}

// loading has graphs of one input that load and call another.
type loading struct{ of *ir.Graph }

func (l loading) run(g *ir.Graph, in []*ir.Tensor, steps string) []*ir.Tensor {
	g.InSequence(func() {
		for _, s := range steps {
			switch s {
			case 'o':
				ir.ToyOfKind("op", "", in[0])
			case 'l':
				g.RemoteCodeLoad(l.of, "executable")
			case 'c':
				g.Call(l.of, in[0])
			}
		}
	})
	return in
}

func (l loading) then(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor    { return l.run(g, in, "ol") }
func (l loading) els(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor     { return l.run(g, in, "ol") }
func (l loading) calling(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor { return l.run(g, in, "olco") }
func (l loading) turn(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor    { return l.run(g, in, "oco") }
func (l loading) ahead(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor   { return l.run(g, in, "colo") }

// TestCodeSizes compares a report whose bytes are computed by hand: main has two loads of 64, an op of 512, two calls
// of 64 with one input of 32, a load from a stream and a store to one of 128 each; g1 has two ops, and g2 one.
func TestCodeSizes(t *testing.T) {
	c := newCoded()
	two := c.graph(g2)
	c.main.InSequence(func() {
		x := c.main.HostLoad(c.HostToDevice("in", f32(2, 2)))
		c.load(two)
		c.load(c.g1)
		c.call(c.g1)
		c.op()
		c.call(two)
		c.main.HostStore(c.DeviceToHost("out", f32(2, 2)), x)
	})
	_, r := c.report(t)
	want := []show.CodeSize{{Graph: "main", Bytes: 2*64 + 512 + 2*(64+32) + 2*128, Always: true},
		{Graph: "g1", Bytes: 1024}, {Graph: "g2", Bytes: 512}}
	if !slices.Equal(r.Graphs, want) {
		t.Errorf("%v, want %v", r.Graphs, want)
	}
	if want := 1088 + 1024 + 512; r.Peak != want {
		t.Errorf("a peak of %d, want %d", r.Peak, want)
	}
	var bytes []int
	for _, s := range r.Steps {
		bytes = append(bytes, s.Bytes)
	}
	if want := []int{1088, 2624, 2624, 2624, 2624, 1600, 1600, 1600, 1088}; !slices.Equal(bytes, want) {
		t.Errorf("bytes by step are %v, want %v", bytes, want)
	}
	unchanged(t, "code.txt", r.String())
}

// TestRemoteCodeLoadErrors has what sticks.
func TestRemoteCodeLoadErrors(t *testing.T) {
	for _, test := range []struct {
		name, want string
		build      func(*coded)
	}{
		{"destination", `destination "sram" does not exist, want "executable"`, func(c *coded) { c.main.RemoteCodeLoad(c.g1, "sram") }},
		{"no destination", `destination "" does not exist, want "executable"`, func(c *coded) { c.main.RemoteCodeLoad(c.g1, "") }},
		{"no graph", "no graph", func(c *coded) { c.load(nil) }},
		{"main loads main", "graph main cannot load its own code", func(c *coded) { c.load(c.main) }},
		{"itself", "cannot load its own code", func(c *coded) {
			c.graph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				g.RemoteCodeLoad(g, "executable")
				return in
			})
		}},
		{"a graph that is being built", "is not complete", func(c *coded) {
			c.graph(func(outer *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
				c.CreateGraph(loader{outer}.g2)
				return in
			})
		}},
		{"main from another graph", "the main graph is always loaded", func(c *coded) { c.CreateGraph(loader{c.main}.g2) }},
		{"another program", "graph g1 is of another program", func(c *coded) { c.load(newCoded().g1) }},
		{"a complete graph", "the graph is complete", func(c *coded) { c.graph(g2).RemoteCodeLoad(c.g1, "executable") }},
		{"after a session", "a session of the program exists", func(c *coded) {
			c.report(t)
			c.load(c.g1)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCoded()
			test.build(c)
			err := c.Err()
			if err == nil || !strings.Contains(err.Error(), test.want) ||
				!strings.Contains(err.Error(), "remote code load at codeload_test.go:") {
				t.Errorf("%v, want ...%s", err, test.want)
			}
		})
	}
}

// TestRemoteCodeLoadChangesNothing runs a program with loads and without.
func TestRemoteCodeLoadChangesNothing(t *testing.T) {
	var results []*tensor.Tensor
	for _, load := range []bool{false, true} {
		p := ir.New(1)
		spec := ir.Spec{DType: tensor.I64, Shape: tensor.Shape{2}}
		g := p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return []*ir.Tensor{ir.ToyScale(in[0], 3)}
		}, spec)
		in, out := p.HostToDevice("in", spec), p.DeviceToHost("out", spec)
		p.Main().InSequence(func() {
			x := p.Main().HostLoad(in)
			for range 3 {
				if load {
					p.Main().RemoteCodeLoad(g, "executable")
				}
				x = p.Main().Call(g, x)[0]
			}
			p.Main().HostStore(out, x)
		})
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		data, _ := tensor.FromSlice([]int64{1, 2}, 2)
		got, err := s.Run(t.Context(), map[*ir.Stream]*tensor.Tensor{in: data})
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, got[out])
	}
	if want, _ := tensor.FromSlice([]int64{27, 54}, 2); !results[0].Equal(want) || !results[1].Equal(want) {
		t.Errorf("%v without loads and %v with them, want %v", results[0], results[1], want)
	}
}
