package show

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"gogcl.dev/ir"
)

// maxNodes is how many nodes a drawing may have: beyond that nobody can look at it.
const maxNodes = 10000

// DOT writes a graph in the language of Graphviz (https://graphviz.org/doc/info/lang.html), which draws it:
//
//	dot -Tsvg main.dot > main.svg
//
// Operations are nodes, tensors edges from the operation that makes them, with name and spec. A call is a cluster with
// the called graph in it, and a choice one with both. An edge in red is an input that is changed in place; a dashed
// one says that an operation comes before another though it gives it nothing. Variables and constants are drums,
// transfers by streams slanted, and each kind of operations ([ir.Kinded]) has a colour. The same graph gives the same
// bytes.
//
// Errors: more than 10,000 nodes, no writer, one that fails.
func DOT(w io.Writer, g *ir.Graph) error {
	if w == nil {
		return errors.New("show: nothing to write a drawing to")
	}
	if g == nil {
		return errors.New("show: no graph to draw")
	}
	d := &drawing{kinds: map[string]string{}}
	d.printf(0, "digraph {\n")
	d.printf(1, "node [shape=box style=\"rounded,filled\" fillcolor=white fontname=\"sans-serif\" fontsize=11]\n")
	d.printf(1, "edge [fontname=\"sans-serif\" fontsize=9 color=\"#555555\"]\n")
	d.printf(1, "graph [fontname=\"sans-serif\" fontsize=11 style=rounded color=\"#888888\" label=%s]\n",
		quoted("graph "+g.Name()))
	d.graph(1, g, nil)
	d.printf(0, "}\n")
	if d.nodes > maxNodes {
		return fmt.Errorf("show: a drawing of graph %s has more than %d nodes; draw one of the graphs that it calls",
			g.Name(), maxNodes)
	}
	if _, err := w.Write(d.b.Bytes()); err != nil {
		return fmt.Errorf("show: drawing graph %s: %w", g.Name(), err)
	}
	return nil
}

// drawing collects the text.
type drawing struct {
	b        bytes.Buffer
	nodes    int
	clusters int
	kinds    map[string]string // colours
}

// colours are those of kinds, in the order in which they come, and then again: Okabe and Ito's, lightened
// (https://jfly.uni-koeln.de/color/), which colour-blind readers can tell apart.
var colours = []string{"#fde0cc", "#dcedf9", "#d9f2e8", "#fdf0c8", "#f6e3ee", "#e4e4f4"}

func (d *drawing) printf(depth int, format string, values ...any) {
	d.b.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&d.b, format, values...)
}

// node adds a node and returns its name.
func (d *drawing) node(depth int, label, attributes string) string {
	name := fmt.Sprint("n", d.nodes)
	d.nodes++
	d.printf(depth, "%s [label=%s%s]\n", name, quoted(label), attributes)
	return name
}

// edge adds an edge for a tensor.
func (d *drawing) edge(depth int, from, to string, t *ir.Tensor, changed bool) {
	colour := ""
	if changed {
		colour = ` color="#c00000"`
	}
	d.printf(depth, "%s -> %s [label=%s%s]\n", from, to, quoted(t.String()+"\n"+t.Spec().String()), colour)
}

const pill = ` shape=oval`

// graph draws a graph, and returns the nodes of its inputs, of its outputs and of further tensors that it gives out.
func (d *drawing) graph(depth int, g *ir.Graph, kept []*ir.Tensor) (inputs, outputs []string) {
	from := map[*ir.Tensor]string{}
	for i, t := range g.Inputs() {
		from[t] = d.node(depth, fmt.Sprint("input ", i), pill)
		inputs = append(inputs, from[t])
	}
	all := g.Operations()
	first := make([]string, len(all)) // a node of each operation
	began := map[ir.Operation]string{}
	for i, o := range all {
		if d.nodes > maxNodes {
			return inputs, outputs
		}
		first[i] = d.operation(depth, o, from, began)
		began[o] = first[i]
	}
	for _, pair := range silent(g, all) {
		d.printf(depth, "%s -> %s [style=dashed]\n", first[pair[0]], first[pair[1]])
	}
	for k, list := range [][]*ir.Tensor{g.Outputs(), kept} {
		for i, t := range list {
			name := d.node(depth, fmt.Sprint([]string{"output ", "kept "}[k], i), pill)
			if source, is := from[t]; is {
				d.edge(depth, source, name, t, false)
			}
			outputs = append(outputs, name)
		}
	}
	return inputs, outputs
}

// operation draws an operation, given the nodes that tensors come from, and returns a node of it.
func (d *drawing) operation(depth int, o ir.Operation, from map[*ir.Tensor]string,
	began map[ir.Operation]string) string {
	title := o.String() + "\n" + o.Position().String()
	if len(o.Calls()) > 0 {
		return d.call(depth, o, title, from)
	}
	name := d.node(depth, title, d.look(o))
	if start, is := o.Start(); is { // whose inputs it has
		d.printf(depth, "%s -> %s [style=dashed]\n", began[start], name)
	} else {
		for i, t := range o.Inputs() {
			if source, is := from[t]; is {
				d.edge(depth, source, name, t, o.Changes(i))
			}
		}
	}
	for _, t := range o.Outputs() {
		from[t] = name
	}
	return name
}

// look is the shape and the colour of an operation.
func (d *drawing) look(o ir.Operation) string {
	switch kind := o.Kind(); {
	case o.IsData():
		return " shape=cylinder"
	case o.Moves() != nil:
		return " shape=parallelogram style=filled"
	case kind != "":
		if d.kinds[kind] == "" {
			d.kinds[kind] = colours[len(d.kinds)%len(colours)]
		}
		return fmt.Sprintf(" fillcolor=%q", d.kinds[kind])
	}
	return ""
}

// call draws what calls graphs: a cluster for each, and around several another one. It returns a node in it.
func (d *drawing) call(depth int, o ir.Operation, title string, from map[*ir.Tensor]string) (some string) {
	calls, in, out := o.Calls(), o.Inputs(), o.Outputs()
	open := func(label string) {
		d.printf(depth, "subgraph cluster%d {\n", d.clusters)
		d.clusters++
		depth++
		d.printf(depth, "label=%s\n", quoted(label))
	}
	shut := func() {
		depth--
		d.printf(depth, "}\n")
	}
	next := len(in) // where the inputs of the called graphs begin
	for _, g := range calls {
		next -= len(g.Inputs())
	}
	next = max(next, 0)
	type given struct {
		input int
		node  string
	}
	var edges []given
	open(title)
	for i := range next { // a condition
		edges = append(edges, given{i, d.node(depth, fmt.Sprint("input ", i), pill)})
	}
	var results [][]string
	nodeOf := map[*ir.Tensor]string{} // by what is kept
	for _, g := range calls {
		if len(calls) > 1 {
			open(g.Name())
		}
		var kept []*ir.Tensor
		for _, t := range o.Kept() {
			if t.Graph() == g {
				kept = append(kept, t)
			}
		}
		inputs, outputs := d.graph(depth, g, kept)
		for i, t := range kept {
			if k := len(g.Outputs()) + i; k < len(outputs) {
				nodeOf[t] = outputs[k]
			}
		}
		for k, name := range inputs {
			if next+k < len(in) {
				edges = append(edges, given{next + k, name})
			}
		}
		next += len(inputs)
		results = append(results, outputs)
		if len(calls) > 1 {
			shut()
		}
	}
	outputsOf := len(calls[0].Outputs())
	for i, t := range out {
		switch {
		case i >= outputsOf:
			if k := i - outputsOf; k < len(o.Kept()) && nodeOf[o.Kept()[k]] != "" {
				from[t] = nodeOf[o.Kept()[k]]
			}
		case len(calls) > 1:
			from[t] = d.node(depth, fmt.Sprint("output ", i), pill)
			for _, outputs := range results {
				if i < len(outputs) {
					d.edge(depth, outputs[i], from[t], t, false)
				}
			}
		case i < len(results[0]):
			from[t] = results[0][i]
		}
	}
	for _, list := range results {
		if some == "" && len(list) > 0 {
			some = list[0]
		}
	}
	if len(edges) > 0 {
		some = edges[0].node
	}
	if some == "" { // it takes nothing and returns nothing
		some = d.node(depth, o.Name(), pill)
	}
	shut()
	for _, e := range edges {
		if source, is := from[in[e.input]]; is {
			d.edge(depth, source, e.node, in[e.input], o.Changes(e.input))
		}
	}
	return some
}

// silent are the pairs of operations of which one comes before the other, though it gives it no tensor, and though no
// others between them demand it. Those of a start and its wait are drawn anyway.
func silent(g *ir.Graph, all []ir.Operation) [][2]int {
	after := g.Followers()
	words := (len(all) + 63) / 64
	reach := make([][]uint64, len(all)) // bits of the operations that come after
	makes := map[*ir.Tensor]int{}
	for i, o := range all {
		for _, t := range o.Outputs() {
			makes[t] = i
		}
	}
	var out [][2]int
	for i := len(all) - 1; i >= 0; i-- {
		reach[i] = make([]uint64, words)
		far := make([]uint64, words) // those that come after an operation that comes after
		for _, j := range after[i] {
			for w, bits := range reach[j] {
				far[w] |= bits
			}
		}
		for _, j := range after[i] {
			reach[i][j/64] |= 1 << (j % 64)
			gives := slices.ContainsFunc(all[j].Inputs(), func(t *ir.Tensor) bool {
				maker, is := makes[t]
				return is && maker == i
			})
			_, waits := all[j].Start()
			if far[j/64]>>(j%64)&1 == 0 && !gives && !waits && !all[i].IsData() && !all[j].IsData() {
				out = append(out, [2]int{i, j})
			}
		}
		for w, bits := range far {
			reach[i][w] |= bits
		}
	}
	slices.SortFunc(out, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return out
}

// quoted is a string of DOT. A line break stays one; what cannot be printed becomes a space.
func quoted(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteByte(' ')
		}
	}
	return `"` + b.String() + `"`
}
