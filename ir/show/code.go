package show

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gogcl.dev/ir"
)

// CodeReport says of a program, step by step, the code of which graphs is in memory.
//
// The code of a graph is live where some way through the program goes on to a call of it without loading it before;
// and while it runs. So it is live from a load to the last call before the next load or the end; what is called
// before it is ever loaded is live from the start; and in a loop it is live from a call to the loop's end if the next
// turn calls it without a load. That of a graph that is started is live from the start to the wait. Of what is called
// after a choice, a load in a branch counts only if every branch loads: otherwise the code is live in both branches
// and before. The code of a graph that is loaded nowhere is always live, as that of the main graph is.
//
// Bytes are estimates: see [CodeSize].
type CodeReport struct {
	Graphs []CodeSize // that the program calls or loads, in the order in which they were made
	Steps  []CodeStep
	Loads  []string // the graphs whose code is loaded, in the order of the loads; a loop's loads once
	Peak   int      // bytes of the step with most live
}

// CodeSize is the code of a graph. Its bytes are estimated: 512 for each operation; 128 for moving a tensor between
// host and replica; 64 for a call, a loop or a choice and 32 for each tensor that it is given; 64 for a load of code;
// none for constants and variables, which are data. The code of the graphs that it calls is theirs. The numbers are
// assumptions, not measurements: here the code of an operation is part of the executable. They serve to compare
// programs.
type CodeSize struct {
	Graph  string
	Bytes  int
	Always bool // live, since it is never loaded
}

// CodeStep is a step of a program with called graphs in the place of their calls: a call, followed by the steps of the
// called graph one deeper. Loads that follow each other in one graph are one step.
type CodeStep struct {
	Op       string
	Graph    string // in which it is
	Position ir.Position
	Depth    int
	Live     []string // graphs whose code is live in this step, in the order of CodeReport.Graphs
	Bytes    int      // of their code
}

// What is assumed of code, in bytes: see CodeSize.
const (
	operationCode = 512
	transferCode  = 128
	callCode      = 64
	argumentCode  = 32
	loadCode      = 64
)

// codeBytes estimates the code of an operation.
func codeBytes(o ir.Operation) int {
	_, waits := o.Start()
	switch {
	case o.IsData():
		return 0
	case len(o.Calls()) > 0:
		return callCode + argumentCode*len(o.Inputs())
	case waits:
		return callCode
	case o.Moves() != nil:
		return transferCode
	case o.Loads() != nil:
		return loadCode
	}
	return operationCode
}

// Code works out which code of a program is live when. What is to be added at the end ([ir.Program.AtEnd]) is there
// once a session is made.
func Code(p *ir.Program) *CodeReport {
	if p == nil {
		return &CodeReport{}
	}
	l := newCodeLiveness(p)
	block := l.expand(p.Main(), 0)
	l.before(block, l.none(), l.none())
	report := &CodeReport{}
	bytes := map[*ir.Graph]int{}
	for _, g := range l.graphs {
		if !l.has(l.used, g) {
			continue
		}
		for _, o := range l.operations(g) {
			bytes[g] += codeBytes(o)
		}
		report.Graphs = append(report.Graphs, CodeSize{g.Name(), bytes[g], !l.has(l.loaded, g)})
	}
	l.list(block, func(c *codeStep) {
		first := c.nodes[0]
		step := CodeStep{Op: c.text(), Graph: first.Graph().Name(), Position: first.Position(), Depth: c.depth}
		for _, g := range l.graphs {
			if l.has(l.used, g) && (l.has(c.live, g) || !l.has(l.loaded, g)) {
				step.Live = append(step.Live, g.Name())
				step.Bytes += bytes[g]
			}
		}
		report.Steps = append(report.Steps, step)
		report.Peak = max(report.Peak, step.Bytes)
		for _, g := range c.loads {
			report.Loads = append(report.Loads, g.Name())
		}
	})
	return report
}

// codeStep is an operation, or several that load code, and the steps of the graphs that it calls.
type codeStep struct {
	nodes  []ir.Operation
	loads  []*ir.Graph
	calls  []*ir.Graph   // one, or the branches of a choice
	bodies [][]*codeStep // of calls
	depth  int
	live   graphSet
}

func (c *codeStep) text() string {
	if len(c.loads) < 2 {
		return c.nodes[0].String()
	}
	var names []string
	for _, g := range c.loads {
		names = append(names, plainName(g.Name()))
	}
	return fmt.Sprintf("remote code load of %s to %q, merged", strings.Join(names, ", "), "executable")
}

// graphSet is a set of a program's graphs: a bit for each, in the order of their making. One is not changed once it is
// another's too.
type graphSet []uint64

// with is a and b.
func (a graphSet) with(b graphSet) graphSet {
	out := slices.Clone(a)
	for i := range out {
		out[i] |= b[i]
	}
	return out
}

// without is a but for b.
func (a graphSet) without(b graphSet) graphSet {
	out := slices.Clone(a)
	for i := range out {
		out[i] &^= b[i]
	}
	return out
}

// both is what is in a and in b.
func (a graphSet) both(b graphSet) graphSet { return a.without(a.without(b)) }

// codeLiveness follows the code of a program's graphs.
type codeLiveness struct {
	graphs  []*ir.Graph
	numbers map[*ir.Graph]int
	ops     map[*ir.Graph][]ir.Operation // see operations
	loaded  graphSet                     // somewhere
	used    graphSet                     // called or loaded somewhere, or the main graph
	flows   map[*ir.Graph]codeFlow
	calls   map[*ir.Graph]graphSet // by graph: itself, and those that it calls, and so on
}

// codeFlow is what a graph makes of what is live after it: before it are live, beside what it needs, those live after
// it that it does not load.
type codeFlow struct{ needs, loads graphSet }

func newCodeLiveness(p *ir.Program) *codeLiveness {
	l := &codeLiveness{graphs: p.Graphs(), numbers: map[*ir.Graph]int{}, ops: map[*ir.Graph][]ir.Operation{},
		flows: map[*ir.Graph]codeFlow{}, calls: map[*ir.Graph]graphSet{}}
	for i, g := range l.graphs {
		l.numbers[g] = i
	}
	l.loaded, l.used = l.none(), l.of(p.Main())
	return l
}

// operations are those of a graph, found once.
func (l *codeLiveness) operations(g *ir.Graph) []ir.Operation {
	if _, is := l.ops[g]; !is {
		l.ops[g] = g.Operations()
	}
	return l.ops[g]
}

// none is the empty set.
func (l *codeLiveness) none() graphSet { return make(graphSet, (len(l.numbers)+63)/64) }

// of is a set of some graphs.
func (l *codeLiveness) of(graphs ...*ir.Graph) graphSet {
	out := l.none()
	for _, g := range graphs {
		l.put(out, g)
	}
	return out
}

func (l *codeLiveness) put(s graphSet, g *ir.Graph) { s[l.numbers[g]/64] |= 1 << (l.numbers[g] % 64) }

func (l *codeLiveness) has(s graphSet, g *ir.Graph) bool {
	return s[l.numbers[g]/64]>>(l.numbers[g]%64)&1 != 0
}

// flow is that of a graph, found once.
func (l *codeLiveness) flow(g *ir.Graph) codeFlow {
	if f, is := l.flows[g]; is {
		return f
	}
	f := codeFlow{l.none(), l.none()}
	for _, n := range slices.Backward(l.operations(g)) {
		if loaded := n.Loads(); loaded != nil {
			f.loads, f.needs = f.loads.with(l.of(loaded)), f.needs.without(l.of(loaded))
		}
		switch calls := n.Calls(); len(calls) {
		case 1: // of a loop too: what the next turn needs, this one does
			inner := l.flow(calls[0])
			f.needs = f.needs.without(inner.loads).with(inner.needs).with(l.of(calls...))
			f.loads = f.loads.with(inner.loads)
		case 2:
			a, b := l.flow(calls[0]), l.flow(calls[1])
			loads := a.loads.both(b.loads)
			f.needs = f.needs.without(loads).with(a.needs).with(b.needs).with(l.of(calls...))
			f.loads = f.loads.with(loads)
		}
	}
	l.flows[g] = f
	return f
}

// expand lists the steps of a graph in the order in which they run.
func (l *codeLiveness) expand(g *ir.Graph, depth int) []*codeStep {
	var steps []*codeStep
	for _, n := range l.operations(g) {
		if n.IsData() {
			continue
		}
		c := &codeStep{nodes: []ir.Operation{n}, calls: n.Calls(), depth: depth}
		if loaded := n.Loads(); loaded != nil {
			c.loads = []*ir.Graph{loaded}
			l.put(l.loaded, loaded)
			l.put(l.used, loaded)
			if last := len(steps) - 1; last >= 0 && steps[last].loads != nil {
				steps[last].nodes = append(steps[last].nodes, n)
				steps[last].loads = append(steps[last].loads, loaded)
				continue
			}
		}
		for _, called := range c.calls {
			l.put(l.used, called)
			c.bodies = append(c.bodies, l.expand(called, depth+1))
		}
		steps = append(steps, c)
	}
	return steps
}

// list calls f for each step.
func (l *codeLiveness) list(steps []*codeStep, f func(*codeStep)) {
	for _, c := range steps {
		f(c)
		for _, body := range c.bodies {
			l.list(body, f)
		}
	}
}

// before returns what is live before some steps, given what is live after them, and notes for each step what is live in
// it: also the graphs that are running, those that contain the steps.
func (l *codeLiveness) before(steps []*codeStep, after, running graphSet) graphSet {
	live, alone := after, running
	started := map[ir.Operation]bool{} // whose waits come after
	beside := func(n ir.Operation, runs bool) {
		started[n] = runs
		running = alone
		for n := range started {
			if started[n] {
				running = running.with(l.runs(n))
			}
		}
	}
	for _, c := range slices.Backward(steps) {
		if start, is := c.nodes[0].Start(); is {
			beside(start, true)
		}
		during := live.with(running)
		switch {
		case c.loads != nil:
			live = live.without(l.of(c.loads...))
		case len(c.calls) == 1:
			called := l.of(c.calls[0])
			next := live
			if c.nodes[0].Turns() > 1 { // after a turn may come the next one
				next = live.with(l.flow(c.calls[0]).needs).with(called)
			}
			live = l.before(c.bodies[0], next, running.with(called)).with(called)
			during = live.with(running)
		case len(c.calls) == 2:
			live = l.choice(c, live, running)
			during = live.with(running)
		}
		c.live = during
		if started[c.nodes[0]] {
			beside(c.nodes[0], false)
		}
	}
	return live
}

// runs are the graphs that an operation calls, and those that they call.
func (l *codeLiveness) runs(o ir.Operation) graphSet {
	out := l.none()
	for _, called := range o.Calls() {
		if l.calls[called] == nil {
			all := l.of(called)
			for _, o := range l.operations(called) {
				all = all.with(l.runs(o))
			}
			l.calls[called] = all
		}
		out = out.with(l.calls[called])
	}
	return out
}

// choice is before for a choice. What is needed after it counts as loaded in it only if both branches load; else it is
// live throughout.
func (l *codeLiveness) choice(c *codeStep, after, running graphSet) graphSet {
	passed := after.both(l.flow(c.calls[0]).loads).both(l.flow(c.calls[1]).loads)
	kept := after.without(passed)
	before := kept.with(l.of(c.calls...))
	for i, called := range c.calls {
		before = before.with(l.before(c.bodies[i], passed, running.with(kept).with(l.of(called))))
	}
	return before
}

// plainName is a name as it is if it can be read among others, else in quotes.
func plainName(name string) string {
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./[]:", r) {
			return strconv.Quote(name)
		}
	}
	return name
}

// indented is the text of a step inside so many loops and choices. A report may be a caller's own, with any depth.
func indented(depth int, text string) string {
	return strings.Repeat("  ", min(max(depth, 0), maxIndent)) + text
}

// maxIndent bounds the indentation in a report: deeper steps stand below each other.
const maxIndent = 40

// String is a table for a person to read: the graphs, and for each step what is live.
func (r *CodeReport) String() string {
	if r == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "code, estimated: %d bytes at most\n", r.Peak)
	names, sizes := 0, 0
	for _, g := range r.Graphs {
		names, sizes = max(names, len([]rune(g.Graph))), max(sizes, len(fmt.Sprint(g.Bytes)))
	}
	for _, g := range r.Graphs {
		fmt.Fprintf(&b, "  %-*s  %*d", names, g.Graph, sizes, g.Bytes)
		if g.Always {
			b.WriteString("  always live")
		}
		b.WriteByte('\n')
	}
	width, sizes := 0, 0
	texts := make([]string, len(r.Steps))
	for i, s := range r.Steps {
		texts[i] = indented(s.Depth, s.Op)
		width, sizes = max(width, len([]rune(texts[i]))), max(sizes, len(fmt.Sprint(s.Bytes)))
	}
	for i, s := range r.Steps {
		fmt.Fprintf(&b, "%-*s  %*d  %s\n", width, texts[i], sizes, s.Bytes, strings.Join(s.Live, " "))
	}
	return b.String()
}
