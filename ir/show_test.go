package ir_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/show"
)

func draw(t *testing.T, g *ir.Graph) string {
	t.Helper()
	var b bytes.Buffer
	if err := show.DOT(&b, g); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDOT compares drawings.
func TestDOT(t *testing.T) {
	p := perceptron()
	unchanged(t, "perceptron.dot", draw(t, p.Main()))
	unchanged(t, "oddities.dot", draw(t, oddities().Main()))
	unchanged(t, "empty.dot", draw(t, ir.New(1).Main()))
	if a, b := draw(t, p.Main()), draw(t, perceptron().Main()); a != b {
		t.Error("two drawings of the same graph differ")
	}
}

// TestRandomDrawings draws the graphs of random programs: braces close, an edge joins nodes that are there, and every
// input of an operation that is no data has one.
func TestRandomDrawings(t *testing.T) {
	node, edge := regexp.MustCompile(`(?m)^ *(n\d+) \[`), regexp.MustCompile(`(?m)^ *(n\d+) -> (n\d+) \[`)
	for seed := range uint64(100) {
		for _, g := range ir.RandomProgram(seed, true).Graphs() {
			text := draw(t, g)
			seen := map[string]bool{}
			for _, m := range node.FindAllStringSubmatch(text, -1) {
				if seen[m[1]] {
					t.Fatalf("seed %d: %s twice in\n%s", seed, m[1], text)
				}
				seen[m[1]] = true
			}
			for _, m := range edge.FindAllStringSubmatch(text, -1) {
				if !seen[m[1]] || !seen[m[2]] {
					t.Fatalf("seed %d: an edge from %s to %s in\n%s", seed, m[1], m[2], text)
				}
			}
			if strings.Count(text, "{") != strings.Count(text, "}") {
				t.Fatalf("seed %d: braces of\n%s", seed, text)
			}
			inputs := 0
			for _, o := range g.Operations() {
				if _, waits := o.Start(); !waits {
					inputs += len(o.Inputs())
				}
			}
			if edges := strings.Count(text, " -> "); edges < inputs {
				t.Fatalf("seed %d: %d edges for %d inputs in\n%s", seed, edges, inputs, text)
			}
		}
	}
}

// TestDOTText has names with what DOT does not allow as it stands.
func TestDOTText(t *testing.T) {
	p := ir.New(1)
	x := p.Main().HostLoad(p.HostToDevice("a\"b\\\x00", f32(2)))
	ir.ToyOfKind(`"];`, `kind "`, x).Named("c\nd")
	text := draw(t, p.Main())
	if !strings.Contains(text, `label="\"];\n`) || strings.Contains(text, "\x00") {
		t.Error(text)
	}
}

// TestDOTErrors has a drawing that is too large, in little time though it would have a million nodes, and a writer that
// fails.
func TestDOTErrors(t *testing.T) {
	p := ir.New(1)
	g := p.CreateGraph(clip, f32(2))
	for range 20 {
		inner := g
		g = p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return g.Call(inner, g.Call(inner, in...)...)
		}, f32(2))
	}
	full := errors.New("disk full")
	for _, c := range []struct {
		w    io.Writer
		g    *ir.Graph
		want string
	}{
		{io.Discard, g, "show: a drawing of graph " + g.Name() + " has more than 10000 nodes"},
		{failing{full}, ir.New(1).Main(), "show: drawing graph main: disk full"},
		{nil, g, "show: nothing to write a drawing to"},
		{io.Discard, nil, "show: no graph to draw"},
	} {
		if err := show.DOT(c.w, c.g); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestNoOperation: the zero Operation is there to be asked.
func TestNoOperation(t *testing.T) {
	var o ir.Operation
	if _, waits := o.Start(); waits || o.String() != "operation" || o.Graph() == nil || o.IsData() || o.Turns() != 1 ||
		len(o.Inputs())+len(o.Outputs())+len(o.Calls()) > 0 || o.Loads() != nil || o.Moves() != nil || o.Changes(0) {
		t.Errorf("%v", o)
	}
	if c := show.Code(nil); len(c.Steps) != 0 {
		t.Error(c)
	}
}

// TestRandomCode follows random programs with loads of code, as a machine would: of every way that is tried, what is
// called before it is loaded is live in the report. Without choices there is one way, and the report has no more.
func TestRandomCode(t *testing.T) {
	for seed := range uint64(200) {
		for _, ifs := range []bool{false, true} {
			p := ir.RandomProgram(seed, ifs)
			w := &backward{rng: rand.New(rand.NewPCG(seed, 1)), used: graphSet{}, loaded: graphSet{}}
			steps := w.expand(p.Main())
			for range 20 {
				w.follow(steps, graphSet{}, graphSet{})
			}
			r := show.Code(p)
			if len(r.Steps) != len(w.needed) {
				t.Fatalf("seed %d: %d steps, want %d", seed, len(r.Steps), len(w.needed))
			}
			for i, step := range r.Steps {
				for _, g := range p.Graphs() {
					want := w.needed[i][g] || w.used[g] && !w.loaded[g] || g == p.Main()
					got := slices.Contains(step.Live, g.Name())
					if want && !got || !ifs && want != got {
						t.Fatalf("seed %d, step %d, %s: %s live: %v, want %v\n%v\n%v",
							seed, i, step.Op, g.Name(), got, want, r, p)
					}
				}
			}
		}
	}
}

// graphSet is a set of graphs.
type graphSet map[*ir.Graph]bool

func withGraphs(a, b graphSet) graphSet {
	out := graphSet{}
	for _, s := range []graphSet{a, b} {
		for g := range s {
			out[g] = true
		}
	}
	return out
}

// runsOf are the graphs that an operation calls, and those that they call.
func runsOf(o ir.Operation) graphSet {
	out := graphSet{}
	for _, g := range o.Calls() {
		out[g] = true
		for _, inner := range g.Operations() {
			out = withGraphs(out, runsOf(inner))
		}
	}
	return out
}

// backward goes one way through a program from its end.
type backward struct {
	rng          *rand.Rand
	needed       []graphSet // by step of the report
	used, loaded graphSet   // called or loaded, and loaded, somewhere
}

// codeStep is an operation, or several that load code, with the steps of what it calls.
type codeStep struct {
	at     int
	o      ir.Operation
	loads  []*ir.Graph
	bodies [][]*codeStep
}

func (w *backward) expand(g *ir.Graph) (steps []*codeStep) {
	for _, o := range g.Operations() {
		if o.IsData() {
			continue
		}
		if g := o.Loads(); g != nil {
			w.used[g], w.loaded[g] = true, true
			if last := len(steps) - 1; last >= 0 && steps[last].loads != nil {
				steps[last].loads = append(steps[last].loads, g)
				continue
			}
		}
		c := &codeStep{at: len(w.needed), o: o}
		if g := o.Loads(); g != nil {
			c.loads = []*ir.Graph{g}
		}
		w.needed = append(w.needed, nil)
		steps = append(steps, c)
		for _, called := range o.Calls() {
			w.used[called] = true
			c.bodies = append(c.bodies, w.expand(called))
		}
	}
	return steps
}

func (w *backward) follow(steps []*codeStep, live, running graphSet) {
	beside := map[ir.Operation]bool{}
	for _, c := range slices.Backward(steps) {
		if start, is := c.o.Start(); is {
			beside[start] = true
		}
		alone := running
		for o := range beside {
			running = withGraphs(running, runsOf(o))
		}
		calls := c.o.Calls()
		switch {
		case c.loads != nil:
		case calls != nil:
			for range c.o.Turns() {
				k := w.rng.IntN(len(calls))
				w.follow(c.bodies[k], live, withGraphs(running, graphSet{calls[k]: true}))
				live[calls[k]] = true
			}
		}
		w.needed[c.at] = withGraphs(w.needed[c.at], withGraphs(live, running))
		for _, g := range c.loads {
			delete(live, g)
		}
		delete(beside, c.o)
		running = alone
	}
}

// TestOperationsAsTheyRun: a graph that is differentiated runs in the order that Operations and programs as text say,
// though a gradient has it give out more than its outputs.
func TestOperationsAsTheyRun(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		p := newGradientProgram(seed, true)
		s, err := ir.NewSession(p.Program)
		if err != nil {
			t.Fatal(err)
		}
		g := p.Graphs()[1] // which the main graph calls once
		var want, got []string
		for _, o := range g.Operations() {
			if !o.IsData() && len(o.Calls()) == 0 && o.String() != "keep" {
				want = append(want, o.String())
			}
		}
		for _, step := range s.Report().Steps {
			if step.Graph == g.Name() && slices.Contains(want, step.Op) {
				got = append(got, step.Op)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: graph %s runs %q, and says %q", seed, g.Name(), got, want)
		}
		compared += len(want)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if compared < 100 {
		t.Errorf("%d operations compared", compared)
	}
}

// TestKeptIsDrawn: a drawing says which tensor a call gives out for a gradient.
func TestKeptIsDrawn(t *testing.T) {
	kept, drawn := regexp.MustCompile(`(?m)^ *(n\d+) \[label="kept `), 0
	for seed := range uint64(60) {
		p := newGradientProgram(seed, true)
		text := draw(t, p.Main())
		for _, m := range kept.FindAllStringSubmatch(text, -1) {
			if drawn++; !strings.Contains(text, " -> "+m[1]+" [") {
				t.Fatalf("seed %d: nothing leads to %s in\n%s", seed, m[1], text)
			}
		}
	}
	if drawn < 20 {
		t.Errorf("%d kept tensors drawn", drawn)
	}
}
