package schedule

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
)

// Lengths in SVG drawings, in pixels.
const (
	svgMargin  = 14
	svgTop     = 74 // above the first rank: title, rounds, chunks
	svgLabel   = 58 // names of ranks
	svgRow     = 36 // from rank to rank
	svgInset   = 16 // from a column's edges to where arcs begin and end
	svgAside   = 20 // from where folds end to where others do
	svgLine    = 20 // of text below
	svgLetter  = 7  // about the width of one
	svgBold    = 9  // and of one in the title
	svgColumns = 24 // beyond that, equal rounds are one column
)

// svgColors are those of arcs: Okabe and Ito's (https://jfly.uni-koeln.de/color/), which colour-blind readers can tell
// apart, and red for what is wrong.
var svgColors = [...]string{kept: "#0072b2", folded: "#d55e00", mismatch: "#c00000"}

// svgNames name the arcs in a legend.
var svgNames = [...]string{kept: "received", folded: "received and combined", mismatch: "send and receive do not match"}

// WriteSVG draws what [Schedule.Shape] shows as SVG: a horizontal line for each rank, a column for each round, an arrow
// from each sender to each receiver. Orange arrows with a cross in a circle end in a reduction, blue ones do not, and
// dashed red ones have a send and a receive that do not match. The number of chunks stands below the number of the round,
// or beside the arrows if theirs differ. The background is white. The same schedule gives the same bytes.
//
// Equal rounds that follow each other become one column if there are more than 24 columns. Any Schedule has a drawing,
// with text below it for ranks and rounds that are left out, as in Shape. The error is that of w, or for a nil Schedule
// or w.
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
	more := fmt.Sprintf(`fill="none" stroke="%s" stroke-width="1.5" marker-end="url(#schedule-%d)"`, svgColors[end], end)
	if end == mismatch {
		more += ` stroke-dasharray="4 3"`
	}
	c.line(x1, y1, x2, y2, more)
}

// heads defines those of arrows: a triangle that ends at the end of the line, a circle around it.
func (c *canvas) heads() {
	const marker = `<marker id="schedule-%d" markerUnits="userSpaceOnUse" markerWidth="16" markerHeight="16" refX="%d" refY="8"%s>`
	c.WriteString("<defs>\n")
	for _, end := range []ending{kept, mismatch} {
		fmt.Fprintf(c, marker+`<path d="M4 4L14 8L4 12Z" fill="%s"/></marker>`+"\n", end, 14, ` orient="auto"`, svgColors[end])
	}
	fmt.Fprintf(c, marker+`<circle cx="8" cy="8" r="6" fill="#ffffff" stroke="%s" stroke-width="1.5"/>`, folded, 8, "", svgColors[folded])
	fmt.Fprintf(c, `<path d="M8 4V12M4 8H12" stroke="%s" stroke-width="1.5"/></marker>`+"\n", svgColors[folded])
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
	end := svgMargin + svgLabel + across*len(columns)

	var seen [mismatch + 1]bool
	below := 0 // lines of text
	width := max(end+svgMargin, 2*svgMargin+svgBold*len(sh.title))
	for _, c := range columns {
		for _, a := range c.arcs {
			seen[a.end] = true
		}
	}
	for end, is := range seen {
		if is {
			below++
			width = max(width, 2*svgMargin+svgLabel+svgLetter*len(svgNames[end]))
		}
	}
	for _, note := range sh.notes {
		below++
		width = max(width, 2*svgMargin+svgLetter*len(note))
	}
	height := bottom + svgRow + svgLine*below

	c := &canvas{}
	const attributes = `width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#000000"`
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" `+attributes+">\n", width, height)
	c.heads()
	fmt.Fprintf(c, `<path d="M0 0H%dV%dH0Z" fill="#ffffff"/>`+"\n", width, height)
	c.text(svgMargin, 24, `font-size="14" font-weight="bold"`, sh.title)
	for r := range sh.ranks {
		y := svgTop + svgRow*r
		c.text(svgMargin, y+4, `fill="#333333"`, fmt.Sprint("rank ", r))
		c.line(svgMargin+svgLabel, y, end, y, `stroke="#bbbbbb"`)
	}
	if sh.ranks > 0 && len(columns) > 0 {
		c.text(svgMargin, 46, `fill="#777777"`, "round")
		for i, col := range columns {
			col.svg(c, svgMargin+svgLabel+across*i, across, bottom)
		}
	}
	y := bottom + svgRow
	for e, is := range seen {
		if is {
			c.arrow(svgMargin, y-4, svgMargin+svgLabel-svgInset, y-4, ending(e))
			c.text(svgMargin+svgLabel, y, `fill="#333333"`, svgNames[e])
			y += svgLine
		}
	}
	for _, note := range sh.notes {
		c.text(svgMargin, y, `fill="#777777"`, note)
		y += svgLine
	}
	c.WriteString("</svg>\n")
	return c.Bytes()
}

// svg draws a column from x on.
func (c column) svg(to *canvas, x, across, bottom int) {
	to.line(x, svgTop-40, x, bottom+10, `stroke="#dddddd"`)
	to.text(x+across/2, 46, `text-anchor="middle"`, c.name())
	each := c.each()
	if each > 0 {
		to.text(x+across/2, 60, `text-anchor="middle" font-size="10" fill="#777777"`, counted(each, "chunk"))
	}
	begin, end := x+svgInset, x+across-svgInset
	drawn := map[int]bool{}
	for _, a := range c.arcs {
		y1, y2, stop := svgTop+svgRow*a.from, svgTop+svgRow*a.to, end
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
		x, y := begin+(end-begin)*eighths/8, svgTop+svgRow*a.from+svgRow*(a.to-a.from)*eighths/8
		to.text(x, y+4, halo, fmt.Sprint(a.chunks))
	}
}
