package ir

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// Kinded is an operation that says what kind it is, by which drawings colour it: "collective", say. The empty kind is
// that of plain computation.
type Kinded interface {
	Op
	Kind() string
}

// maxBoxes is how many boxes a drawing may have: beyond that nobody can look at it.
const maxBoxes = 10000

// WriteSVG draws the graph as SVG. Operations are boxes, from top to bottom; tensors are lines from the operation that
// makes them, with name and spec where they begin. A call is a box with the called graph drawn in it; a choice one
// with both. Streams, variables and constants have shapes of their own, and the kinds of operations ([Kinded])
// colours, which a legend names. A line that ends in red is an input that is changed in place; a dashed one says that
// an operation comes before another though it gives it nothing. The background is white, or dark where the reader
// prefers dark pages. The same graph gives the same bytes.
//
// It is an error if there would be more than 10000 boxes, and if w fails.
func (g *Graph) WriteSVG(w io.Writer) error {
	if w == nil {
		return errors.New("ir: nothing to write a drawing to")
	}
	g = g.orNone()
	d := &drawing{}
	s := d.graph("graph "+g.name, g, nil, 0)
	if d.boxes > maxBoxes {
		return fmt.Errorf("ir: a drawing of graph %s has more than %d boxes; draw one of the graphs that it calls",
			g.name, maxBoxes)
	}
	s.layout()
	if _, err := w.Write(d.svg(s)); err != nil {
		return fmt.Errorf("ir: drawing graph %s: %w", g.name, err)
	}
	return nil
}

// drawing counts what is drawn.
type drawing struct {
	boxes int
	kinds []string // in the order in which they come
	red   bool     // an input is changed
	dash  bool     // there is a dashed line
}

// outline is the shape of a box.
type outline uint8

const (
	plainBox   outline = iota
	titleText          // only text
	pill               // an input or output of a graph
	slanted            // a stream
	drum               // a variable
	foldedBox          // a constant
	nestedBox          // a call
	passingBox         // where a line passes a layer
)

// sheet is a graph as it is drawn, in coordinates of its own.
type sheet struct {
	boxes         []*drawnBox
	lines         []*line
	layers        [][]*drawnBox
	tops, bottoms []float64 // of layers
	gaps          []segment
	width, height float64
	depth         int
}

// box is an operation, or an end of a graph.
type drawnBox struct {
	outline    outline
	kind       string
	text       string
	small      string   // below, smaller
	inputs     int      // lines that may end here
	edgeLabels []label  // of the outputs
	inner      *sheet   // of a nestedBox
	end        position // where it stays
	before     bool     // a dashed line begins here
	after      bool     // a dashed line ends here
	least      float64  // width, for a label below a nestedBox

	layer         int
	x, y          float64 // of the upper left corner
	width, height float64 // of the outline
	inAt, outAt   []float64
}

// label is the text at the beginning of a line.
type label struct{ name, spec string }

type position uint8

const (
	anywhere position = iota
	atTop
	atBottom
)

// line leads from an output to an input.
type line struct {
	from, to *drawnBox
	out, in  int // order: of a dashed line
	red      bool
}

// order is the number of the place where dashed lines begin and end.
const order = -1

// graph makes the sheet of a graph, with further outputs of its call.
func (d *drawing) graph(title string, g *Graph, exports []*Tensor, depth int) *sheet {
	s := &sheet{depth: depth}
	d.add(s, &drawnBox{outline: titleText, text: title, end: atTop})
	type origin struct {
		drawnBox *drawnBox
		out      int
	}
	from := map[*Tensor]origin{}
	for i, t := range g.inputs {
		from[t] = origin{d.add(s,
			&drawnBox{outline: pill, text: fmt.Sprint("input ", i), edgeLabels: edgeLabels(t), end: atTop, inputs: 1}),
			0}
	}
	var drawn []*drawnBox
	for _, n := range g.nodes {
		if d.boxes > maxBoxes {
			return s
		}
		b := d.add(s, d.node(n, depth))
		drawn = append(drawn, b)
		for i, t := range n.in[:b.inputs] {
			if o, is := from[t]; is {
				s.lines = append(s.lines, &line{o.drawnBox, b, o.out, i, n.changesInput(i)})
				d.red = d.red || n.changesInput(i)
			}
		}
		for i, t := range n.out {
			from[t] = origin{b, i}
		}
	}
	for _, e := range g.silentOrder() {
		a, b := drawn[e[0]], drawn[e[1]]
		a.before, b.after, d.dash = true, true, true
		s.lines = append(s.lines, &line{a, b, order, order, false})
	}
	for i, t := range append(slices.Clone(g.outputs), exports...) {
		b := d.add(s, &drawnBox{outline: pill, text: fmt.Sprint("output ", i), end: atBottom, inputs: 1})
		if o, is := from[t]; is {
			s.lines = append(s.lines, &line{o.drawnBox, b, o.out, 0, false})
		}
	}
	return s
}

func (d *drawing) add(s *sheet, b *drawnBox) *drawnBox {
	d.boxes++
	if b.kind != "" && !slices.Contains(d.kinds, b.kind) {
		d.kinds = append(d.kinds, b.kind)
	}
	s.boxes = append(s.boxes, b)
	return b
}

func edgeLabels(tensors ...*Tensor) []label {
	var out []label
	for _, t := range tensors {
		if t.failed() {
			out = append(out, label{name: reference(t)})
			continue
		}
		out = append(out, label{reference(t), t.sp.String()})
	}
	return out
}

// Kinds that operations of this package have.
const (
	kindStream   = "stream"
	kindVariable = "variable"
	kindConstant = "constant"
	kindCall     = "call"
	kindRepeat   = "repeat"
	kindIf       = "if"
	kindStart    = "start"
)

// node makes the box of a node.
func (d *drawing) node(n *node, depth int) *drawnBox {
	b := &drawnBox{text: describeOp(n.op), small: n.pos.String(), inputs: len(n.in), edgeLabels: edgeLabels(n.out...)}
	if k, is := n.op.(Kinded); is {
		b.kind = oneLine(k.Kind())
	}
	switch op := n.op.(type) {
	case control:
		op.draw(d, b, n, depth)
	case moving:
		b.outline, b.kind = slanted, kindStream
	}
	if b.inner != nil { // its title says it
		b.inner.boxes[0].text, b.inner.boxes[0].small = b.text, b.small
	}
	return b
}

// choice makes the sheet of an If: its inputs, a box for each branch, its outputs.
func (d *drawing) choice(n *node, op *ifOp, depth int) *sheet {
	s := &sheet{depth: depth}
	d.add(s, &drawnBox{outline: titleText, end: atTop})
	for i := range n.in {
		name := "condition"
		if i > 0 {
			name = fmt.Sprint("input ", i)
		}
		d.add(s, &drawnBox{outline: pill, text: name, end: atTop, inputs: 1, edgeLabels: []label{{}}})
	}
	first := 1
	var branches []*drawnBox
	for i, g := range []*Graph{op.then, op.els} {
		title := []string{"then ", "else "}[i] + plainName(g.name)
		b := &drawnBox{outline: nestedBox, kind: kindCall, text: title, inputs: len(g.inputs),
			inner: d.graph(title, g, nil, depth+1)}
		b.edgeLabels = make([]label, len(g.outputs))
		branches = append(branches, d.add(s, b))
		for k := range g.inputs {
			s.lines = append(s.lines, &line{s.boxes[1+first+k], b, 0, k, n.changesInput(first + k)})
		}
		first += len(g.inputs)
	}
	for i := range op.then.outputs {
		out := d.add(s, &drawnBox{outline: pill, text: fmt.Sprint("output ", i), end: atBottom, inputs: 1})
		for _, b := range branches {
			s.lines = append(s.lines, &line{b, out, i, 0, false})
		}
	}
	return s
}

// silentOrder are the pairs of nodes of which one comes before the other, though it gives it no tensor, and though no
// other nodes between them demand it: because of a change in place, of a stream, or of InSequence. Those of a start
// and its wait are always there.
func (g *Graph) silentOrder() [][2]int {
	after := g.pairs()
	words := (len(g.nodes) + 63) / 64
	reach := make([][]uint64, len(g.nodes)) // bits of the nodes that come after
	var out [][2]int
	for i := len(g.nodes) - 1; i >= 0; i-- {
		reach[i] = make([]uint64, words)
		far := make([]uint64, words) // those that come after a node that comes after
		for _, j := range after[i] {
			for w, bits := range reach[j] {
				far[w] |= bits
			}
		}
		for _, j := range after[i] {
			reach[i][j/64] |= 1 << (j % 64)
			gives := slices.ContainsFunc(g.nodes[j].in, func(t *Tensor) bool { return t.node == g.nodes[i] })
			direct := far[j/64]>>(j%64)&1 == 0 || g.nodes[j].begun() == g.nodes[i]
			if direct && !gives && !g.nodes[i].persistent() && !g.nodes[j].persistent() {
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
