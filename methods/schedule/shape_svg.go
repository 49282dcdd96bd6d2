package schedule

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"

	"gogcl.dev/internal/ink"
)

// Lengths in SVG drawings, in pixels.
const (
	svgMargin  = 14
	svgTop     = 74   // above the first rank: title, rounds, chunks
	svgLabel   = 58   // names of ranks
	svgRow     = 36   // from rank to rank
	svgInset   = 16   // from a column's edges to where arcs begin and end
	svgAside   = 20   // from where folds end to where others do
	svgLine    = 20   // of text below
	svgLetter  = 7    // about the width of one
	svgBold    = 9    // and of one in the title
	svgColumns = 24   // beyond that, equal rounds are one column
	svgCell    = 24   // height of one that is refused
	svgWide    = 1200 // beyond that, columns stand below the others
	svgBetween = 32   // from columns to those below
)

// svgColors are those of arcs: Okabe and Ito's (https://jfly.uni-koeln.de/color/), which colour-blind readers can tell
// apart, and red for what is wrong.
var svgColors = [...]string{kept: "#0072b2", folded: "#d55e00", mismatch: "#c00000"}

// svgInks are the likes of all colours on a dark background: lines stand out from both by 3 to 1, and text by 4.5 to 1.
var svgInks = []ink.Ink{
	{Light: "#ffffff", Dark: "#121417"}, {Light: "#000000", Dark: "#e6e6e6"}, {Light: "#333333", Dark: "#cccccc"},
	{Light: "#666666", Dark: "#a6a6a6"}, {Light: "#bbbbbb", Dark: "#5a6068"}, {Light: "#dddddd", Dark: "#33383e"},
	{Light: svgColors[kept], Dark: "#56a8dc"}, {Light: svgColors[folded], Dark: "#f58a3c"},
	{Light: svgColors[mismatch], Dark: "#ff7b72"},
}

// svgNames name the arcs in a legend.
var svgNames = [...]string{kept: "received", folded: "received and combined", mismatch: "send and receive do not match"}

// WriteSVG draws what [Schedule.Shape] shows as SVG: a horizontal line for each rank, a column for each round, an arrow
// from each sender to each receiver. Orange arrows end in a circle with a cross: what they bring is combined with other
// data in this round. Blue ones are received. Dashed red ones have a send and a receive that do not match. The number
// of chunks stands below the number of the round, or beside the arrows if theirs differ. The picture has a title for
// screen readers, and is dark where the reader prefers that. The same schedule gives the same bytes.
//
// Equal rounds that follow each other become one column if there are more than 24 rounds. Columns beyond a width of
// 1,200 pixels stand below the others. Any Schedule has a drawing. Of one that [Check] refuses the cell that the error
// names is red, where [Schedule.Shape] has exclamation marks, and the first line of the error stands below. Text
// says what is not drawn: ranks from 32 on, rounds after 256 columns, and messages that no rank can
// receive. It is an error if s or w is nil, and if w fails.
func (s *Schedule) WriteSVG(w io.Writer) error {
	switch {
	case w == nil:
		return errors.New("schedule: nothing to write a drawing to")
	case s == nil:
		return errors.New("schedule: no schedule to draw")
	}
	if _, err := w.Write(shapeOf(s).svg()); err != nil {
		return fmt.Errorf("schedule: drawing %v: %w", s.Collective, err)
	}
	return nil
}

// canvas collects SVG elements. Writing to memory does not fail.
type canvas struct{ bytes.Buffer }

// begin writes what comes before the drawing: the title for screen readers, the colours, the heads of arrows, and the
// background.
func (c *canvas) begin(width, height int, title string) {
	const font = `font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#000000"`
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" %s>`+
		"\n<title>", width, height, font)
	_ = xml.EscapeText(c, []byte(title))
	c.WriteString("</title>\n" + ink.Style(svgInks...))
	c.heads()
	fmt.Fprintf(c, `<path d="M0 0H%dV%dH0Z" fill="#ffffff"/>`+"\n", width, height)
}

// text writes at a place. more is further attributes.
func (c *canvas) text(x, y int, more, text string) {
	fmt.Fprintf(c, `<text x="%d" y="%d" %s>`, x, y, more)
	_ = xml.EscapeText(c, []byte(text))
	c.WriteString("</text>\n")
}

// line draws a straight line.
func (c *canvas) line(x1, y1, x2, y2 int, more string) {
	fmt.Fprintf(c, `<path d="M%d %dL%d %d" %s/>`+"\n", x1, y1, x2, y2, more)
}

// arrow draws a line with the head of its ending.
func (c *canvas) arrow(x1, y1, x2, y2 int, end ending) {
	more := fmt.Sprintf(`stroke="%s" stroke-width="1.5" marker-end="url(#schedule-%d)"`, svgColors[end], end)
	if end == mismatch {
		more += ` stroke-dasharray="4 3"`
	}
	c.line(x1, y1, x2, y2, more)
}

// heads defines those of arrows: a triangle that ends at the end of the line, a circle around it.
func (c *canvas) heads() {
	marker := func(end ending, refX int, orient, shape string) {
		const size = `markerUnits="userSpaceOnUse" markerWidth="16" markerHeight="16"`
		fmt.Fprintf(c, `<marker id="schedule-%d" %s refX="%d" refY="8" orient="%s">`, end, size, refX, orient)
		fmt.Fprintf(c, shape, svgColors[end])
		c.WriteString("</marker>\n")
	}
	c.WriteString("<defs>\n")
	for _, end := range []ending{kept, mismatch} {
		marker(end, 14, "auto", `<path d="M4 4L14 8L4 12Z" fill="%s"/>`)
	}
	const circle = `<circle cx="8" cy="8" r="6" fill="#ffffff" stroke="%[1]s" stroke-width="1.5"/>`
	marker(folded, 8, "0", circle+`<path d="M8 4V12M4 8H12" stroke="%[1]s" stroke-width="1.5"/>`)
	c.WriteString("</defs>\n")
}

// svg draws the shape.
func (sh shape) svg() []byte {
	columns := sh.single()
	if columns == nil || len(columns) > svgColumns {
		columns = sh.columns
	}
	across := 76 + 8*sh.ranks // the more ranks, the wider, so that long arrows are not too steep
	bottom := svgTop + svgRow*max(sh.ranks-1, 0)
	each := max(1, min(len(columns), (svgWide-2*svgMargin-svgLabel)/across)) // columns beside each other
	end := svgMargin + svgLabel + across*each
	if len(columns) == 0 {
		end = svgMargin + svgLabel
	}
	next := bottom + 10 + svgBetween - (svgTop - 40) // from columns to those below

	width := max(end+svgMargin, 2*svgMargin+svgBold*len(sh.title))
	rows := max(1, (len(columns)+each-1)/each)
	captions := append(sh.captions(columns), sh.refused.captions()...)
	for _, text := range captions {
		width = max(width, 2*svgMargin+text.indent()+svgLetter*len(text.text))
	}
	below := bottom + next*(rows-1) + svgRow
	height := below + svgLine*len(captions)

	c := &canvas{}
	c.begin(width, height, "Who sends to whom: "+sh.title)
	c.text(svgMargin, 24, `font-size="14" font-weight="bold"`, sh.title)
	for row := range rows {
		some := columns[each*row : min(each*(row+1), len(columns))]
		for r := range sh.ranks {
			y := next*row + svgTop + svgRow*r
			c.text(svgMargin, y+4, `fill="#333333"`, fmt.Sprint("rank ", r))
			c.line(svgMargin+svgLabel, y, svgMargin+svgLabel+across*len(some), y, `stroke="#bbbbbb"`)
		}
		if sh.ranks > 0 && len(columns) > 0 {
			c.text(svgMargin, next*row+46, `fill="#666666"`, "round")
		}
		for i, col := range some {
			if sh.ranks > 0 {
				col.svg(c, svgMargin+svgLabel+across*i, next*row, across, bottom)
			}
		}
	}
	c.captions(captions, below)
	c.WriteString("</svg>\n")
	return c.Bytes()
}

// caption is a line of text below a drawing, with an arrow that it explains or without one.
type caption struct {
	text  string
	arrow bool
	end   ending
	wrong bool // of a refusal
}

// captions writes them from y on.
func (c *canvas) captions(list []caption, y int) {
	for _, text := range list {
		if text.arrow {
			c.arrow(svgMargin, y-4, svgMargin+svgLabel-svgInset, y-4, text.end)
		}
		fill := "#333333"
		if text.wrong {
			fill = svgColors[mismatch]
		}
		c.text(svgMargin+text.indent(), y, fmt.Sprintf(`fill="%s"`, fill), text.text)
		y += svgLine
	}
}

// cell marks one that is refused.
func (c *canvas) cell(x, y, width, height int) {
	fmt.Fprintf(c, `<path d="M%d %dh%dv%dh-%dZ" fill="%s" fill-opacity="0.25" stroke="%[6]s"/>`+"\n", x, y, width, height,
		width, svgColors[mismatch])
}

func (c caption) indent() int {
	if c.arrow {
		return svgLabel
	}
	return 0
}

// captions explain the arrows that there are, and say what is not drawn.
func (sh shape) captions(columns []column) []caption {
	var seen [mismatch + 1]bool
	for _, c := range columns {
		for _, a := range c.arcs {
			seen[a.end] = true
		}
	}
	var out []caption
	for end, is := range seen {
		if is {
			out = append(out, caption{text: svgNames[end], arrow: true, end: ending(end)})
		}
	}
	for _, note := range sh.notes {
		out = append(out, caption{text: note})
	}
	return out
}

// svg draws a column from x and y on.
func (c column) svg(to *canvas, x, y, across, bottom int) {
	top := y + svgTop
	to.line(x, top-40, x, y+bottom+10, `stroke="#dddddd"`)
	if c.wrong > 0 {
		to.cell(x+2, top+svgRow*(c.wrong-1)-svgCell/2, across-4, svgCell)
	}
	to.text(x+across/2, y+46, `text-anchor="middle"`, c.name())
	each := c.each()
	if each > 0 {
		to.text(x+across/2, y+60, `text-anchor="middle" font-size="10" fill="#666666"`, counted(each, "chunk"))
	}
	begin, end := x+svgInset, x+across-svgInset
	drawn := map[int]bool{}
	for _, a := range c.arcs {
		y1, y2, stop := top+svgRow*a.from, top+svgRow*a.to, end
		if a.end == folded {
			stop -= svgAside
		}
		to.arrow(begin, y1, stop, y2, a.end)
		if !drawn[a.from] {
			drawn[a.from] = true
			fmt.Fprintf(to, `<circle cx="%d" cy="%d" r="3" fill="#333333"/>`+"\n", begin, y1)
		}
	}
	if each > 0 {
		return
	}
	numbers := map[int]int{}   // by sender
	for _, a := range c.arcs { // upon all arrows, those of a sender not beside each other
		const halo = `text-anchor="middle" font-size="10" stroke="#ffffff" stroke-width="3" paint-order="stroke"`
		eighths := 2 + numbers[a.from]%4
		numbers[a.from]++
		x, y := begin+(end-begin)*eighths/8, top+svgRow*a.from+svgRow*(a.to-a.from)*eighths/8
		to.text(x, y+4, halo, fmt.Sprint(a.chunks))
	}
}
