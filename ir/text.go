package ir

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// String is the program for a person to read: the error that sticks, if there is one, and every graph as
// [Graph.String] has it, the main graph first and the others in the order of their making.
func (p *Program) String() string { return p.orNone().text(describeOp) }

// text is String with operations as describe has them.
func (p *Program) text(describe func(Op) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "program of %d %s\n", p.replicas, pluralOf(p.replicas, "replica"))
	if p.err != nil {
		fmt.Fprintf(&b, "error: %v\n", p.err)
	}
	for _, g := range p.graphs {
		b.WriteString("\n" + g.text(describe))
	}
	return b.String()
}

// String is the graph for a person to read: its inputs, its operations, its outputs.
//
//	graph train(%4.x float32 (8, 2), %5.w float32 (2, 2))
//	  1  %6 float32 (8, 2) = matmul(%4.x, %5.w)            // train.go:12
//	     in sequence
//	  3    %8 float32 (8, 2) = repeat 3 times layer(%6)    // train.go:14
//	  2  %7 = accumulate(modified %5.w, %6)                // train.go:16
//	  return %8
//
// Operations stand in the order in which they were built, in the blocks in which they were built; the number before
// each is its place in the order in which they run. Constants and variables are there from the start and have none. An
// input whose memory the operation changes is called modified. An operation is described by its String method if it has
// one, else by its name.
func (g *Graph) String() string { return g.orNone().text(describeOp) }

// text is String with operations as describe has them.
func (g *Graph) text(describe func(Op) string) string {
	w := &programText{}
	head := "graph " + plainName(g.name)
	if len(g.inputs) > 0 || g != g.program.main {
		head += "(" + joinTensors(g.inputs, typedReference) + ")"
	}
	place := g.places()
	var open []*block
	for _, n := range g.nodes {
		open = w.enter(open, n.block)
		number := ""
		if !n.persistent() {
			number = strconv.Itoa(place[n.index])
		}
		w.line(number, len(open)-1, n.text(describe), n.pos.String())
	}
	w.enter(open, g.blocks[0])
	switch {
	case len(g.outputs) > 0:
		w.line("", 0, "return "+joinTensors(g.outputs, reference), "")
	case len(g.nodes) == 0:
		w.line("", 0, "nothing", "")
	}
	return head + "\n" + w.String()
}

// places has, for each node as it was built, its place among those that run, from 1.
func (g *Graph) places() []int {
	out, next := make([]int, len(g.nodes)), 1
	for _, n := range g.runOrder() {
		if !n.persistent() {
			out[n.index] = next
			next++
		}
	}
	return out
}

// runOrder is scheduled for somebody who only looks: a graph may change afterwards, and then be scheduled anew.
func (g *Graph) runOrder() []*node {
	if g.order != nil && len(g.order) == len(g.nodes) { // several may look at what a session runs
		return g.order
	}
	g.order = nil
	order := g.scheduled()
	g.order = nil
	return order
}

// programText collects lines, to set what ends them below each other.
type programText struct {
	lines []textLine
}

type textLine struct {
	number string
	indent int
	text   string
	pos    string
}

func (w *programText) line(number string, indent int, text, pos string) {
	w.lines = append(w.lines, textLine{number, indent, text, pos})
}

// enter goes from a block, given with those around it, to another, and says where such begin.
func (w *programText) enter(open []*block, b *block) []*block {
	var path []*block
	for ; b != nil; b = b.parent {
		path = append([]*block{b}, path...)
	}
	same := 0
	for same < len(open) && same < len(path) && open[same] == path[same] {
		same++
	}
	for i := same; i < len(path); i++ {
		switch {
		case i == 0: // the graph itself
		case path[i].ordered:
			w.line("", i-1, "in sequence", "")
		default:
			w.line("", i-1, "out of sequence", "")
		}
	}
	return path
}

// widest is how long a line may be for those around it to be set as wide.
const widest = 100

func (w *programText) String() string {
	numbers, width := 0, 0
	for i := range w.lines {
		l := &w.lines[i]
		l.text = strings.Repeat("  ", l.indent) + l.text
		numbers = max(numbers, len(l.number))
		if n := len([]rune(l.text)); l.pos != "" && n <= widest {
			width = max(width, n)
		}
	}
	var b strings.Builder
	for _, l := range w.lines {
		line := l.text
		if l.pos != "" {
			line += strings.Repeat(" ", max(0, width-len([]rune(l.text)))) + "  // " + l.pos
		}
		if l.number == "" && strings.HasPrefix(l.text, "return") {
			fmt.Fprintf(&b, "  %s\n", line)
			continue
		}
		fmt.Fprintf(&b, "  %*s  %s\n", numbers, l.number, line)
	}
	return b.String()
}

// text is a node in a program as text.
func (n *node) text(describe func(Op) string) string {
	var b strings.Builder
	if len(n.out) > 0 {
		b.WriteString(joinTensors(n.out, typedReference) + " = ")
	}
	given := func(first, count int) string {
		var parts []string
		for i := first; i < first+count; i++ {
			part := reference(n.in[i])
			if n.changesInput(i) {
				part = "modified " + part
			}
			parts = append(parts, part)
		}
		return "(" + strings.Join(parts, ", ") + ")"
	}
	if p, is := n.op.(phrased); is {
		b.WriteString(p.phrase(n, given))
		return b.String()
	}
	b.WriteString(describe(n.op))
	if len(n.in) > 0 {
		b.WriteString(given(0, len(n.in)))
	}
	return b.String()
}

// describeOp is what an operation is called with what it knows of itself: `host load "x"`.
func describeOp(op Op) string {
	if s, is := op.(fmt.Stringer); is {
		return oneLine(s.String())
	}
	return oneLine(op.Name())
}

// formOf is describeOp without the elements of a constant.
func formOf(op Op) string {
	if _, is := op.(*constantOp); is {
		return op.Name()
	}
	return describeOp(op)
}

// oneLine makes sure that text stays in its line.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
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

// reference is Tensor.String, also for names with anything in them and tensors that stand for an error.
func reference(t *Tensor) string {
	switch {
	case t == nil || t.failed():
		return "%error"
	case t.name == "":
		return fmt.Sprintf("%%%d", t.id)
	}
	return fmt.Sprintf("%%%d.%s", t.id, plainName(t.name))
}

// typedReference is a tensor with its spec.
func typedReference(t *Tensor) string {
	if t == nil || t.failed() {
		return "%error"
	}
	return reference(t) + " " + t.sp.String()
}

func joinTensors(tensors []*Tensor, text func(*Tensor) string) string {
	var parts []string
	for _, t := range tensors {
		parts = append(parts, text(t))
	}
	return strings.Join(parts, ", ")
}

func pluralOf(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
