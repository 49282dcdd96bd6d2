package plot

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
)

// Lengths in pixels.
const (
	panelWidth, panelHeight = 400.0, 270.0
	left, right             = 74.0, 18.0 // of a panel, for ticks and label
	above, below            = 34.0, 58.0
	titleHeight             = 34.0
	legendLine              = 20.0
	footHeight              = 18.0
	letter                  = 6.8 // about the width of one, at 12 pixels
	sample                  = 34.0
)

// Write draws the figure.
func (f *Figure) Write(w io.Writer) error {
	columns := 1
	for _, row := range f.Rows {
		columns = max(columns, len(row))
	}
	width := float64(columns) * (left + panelWidth + right)
	names, looks := f.legend()
	entries := place(names, width)
	legendTop := titleHeight + float64(len(f.Rows))*(above+panelHeight+below)
	height := legendTop + 14
	if len(entries) > 0 {
		height = entries[len(entries)-1].y + legendTop + legendLine
	}
	if f.Foot != "" {
		height += footHeight
	}
	c := &canvas{}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" `+
		`role="img" font-family="Helvetica, Arial, sans-serif" font-size="12" `+
		`fill="%[3]s">`+"\n<title>", number(width), number(height), text.Light)
	_ = xml.EscapeText(&c.b, []byte(f.Title)) // writing to memory does not fail
	c.b.WriteString("</title>\n" + style())
	c.element("rect", []attr{{"width", number(width)}, {"height", number(height)}, {"fill", background.Light}})
	c.text(width/2, 22, "middle", f.Title, attr{"font-size", "15"}, attr{"font-weight", "bold"})
	for i, row := range f.Rows {
		for j, p := range row {
			p.draw(c, float64(j)*(left+panelWidth+right)+left, titleHeight+float64(i)*(above+panelHeight+below)+above,
				looks)
		}
	}
	for i, e := range entries {
		l := looks[names[i]]
		c.line([]Point{{e.x, legendTop + e.y}, {e.x + sample - 8, legendTop + e.y}}, l)
		l.marker.svg(c, e.x+(sample-8)/2, legendTop+e.y, l.color)
		c.text(e.x+sample, legendTop+e.y+4, "start", names[i])
	}
	if f.Foot != "" {
		c.text(left, height-7, "start", f.Foot, attr{"font-size", "10"}, attr{"fill", small.Light})
	}
	c.b.WriteString("</svg>\n")
	_, err := w.Write(c.b.Bytes())
	return err
}

// legend gives each name a look, in the order in which they come.
func (f *Figure) legend() (names []string, looks map[string]look) {
	looks = map[string]look{}
	numbered := 0
	for _, row := range f.Rows {
		for _, p := range row {
			for _, l := range p.Lines {
				if _, known := looks[l.Name]; known {
					continue
				}
				names = append(names, l.Name)
				looks[l.Name] = reference
				if !l.Reference {
					looks[l.Name] = lookOf(numbered)
					numbered++
				}
			}
		}
	}
	return names, looks
}

// place puts the entries of a legend in lines, as many to a line as fit.
func place(names []string, width float64) []spot {
	var out []spot
	x, y := left, 8.0
	for _, name := range names {
		need := sample + letter*float64(len([]rune(name))) + 22
		if x > left && x+need > width-right {
			x, y = left, y+legendLine
		}
		out = append(out, spot{x, y})
		x += need
	}
	return out
}

// draw draws a panel whose plot has its upper left corner at x, y.
func (p *Panel) draw(c *canvas, x, y float64, looks map[string]look) {
	var xs, ys []float64
	for _, l := range p.Lines {
		for _, pt := range l.points(p.X, p.Y) {
			xs, ys = append(xs, pt.X), append(ys, pt.Y)
		}
	}
	sx := spanOf(xs, p.X.Base == 0).within(p.X)
	sy := spanOf(ys, p.Y.Base == 0).within(p.Y)
	toX := func(v float64) float64 { return x + sx.at(v)*panelWidth }
	toY := func(v float64) float64 { return y + (1-sy.at(v))*panelHeight }
	grid := func(color string) []attr { return []attr{{"stroke", color}} }
	major, minor := ticks(sy, p.Y.Base, p.Y.Whole)
	for _, v := range minor {
		c.path(grid(gridMinor.Light), "M", x, toY(v), "H", x+panelWidth)
	}
	for _, v := range major {
		c.path(grid(gridMajor.Light), "M", x, toY(v), "H", x+panelWidth)
		c.text(x-7, toY(v)+4, "end", p.Y.Tick(v), attr{"font-size", "11"})
	}
	major, _ = ticks(sx, p.X.Base, p.X.Whole)
	for _, v := range withLast(major, sx, xs) {
		c.path(grid(gridMajor.Light), "M", toX(v), y, "V", y+panelHeight)
		c.text(toX(v), y+panelHeight+17, "middle", p.X.Tick(v), attr{"font-size", "11"})
	}
	c.path([]attr{{"fill", "none"}, {"stroke", frame.Light}},
		"M", x, y, "H", x+panelWidth, "V", y+panelHeight, "H", x, "Z")
	c.text(x+panelWidth/2, y-10, "middle", p.Title, attr{"font-weight", "bold"})
	c.text(x+panelWidth/2, y+panelHeight+38, "middle", p.X.Label)
	c.text(x-left+16, y+panelHeight/2, "middle", p.Y.Label,
		attr{"transform", fmt.Sprintf("rotate(-90 %s %s)", number(x-left+16), number(y+panelHeight/2))})
	for _, under := range []bool{true, false} {
		for _, l := range p.Lines {
			if l.Reference != under {
				continue
			}
			var at []Point
			for _, pt := range l.points(p.X, p.Y) {
				at = append(at, Point{toX(pt.X), toY(pt.Y)})
			}
			c.line(at, looks[l.Name])
			for _, pt := range at {
				looks[l.Name].marker.svg(c, pt.X, pt.Y, looks[l.Name].color)
			}
		}
	}
}

// points are those that the axes have a place for.
func (l *Line) points(x, y Axis) []Point {
	var out []Point
	for _, p := range l.Points {
		if x.has(p.X) && y.has(p.Y) {
			out = append(out, p)
		}
	}
	return out
}

// line joins points, in pixels.
func (c *canvas) line(points []Point, l look) {
	if len(points) < 2 {
		return
	}
	var commands []any
	for i, p := range points {
		commands = append(commands, "ML"[min(i, 1):min(i, 1)+1], p.X, p.Y)
	}
	attrs := []attr{{"fill", "none"}, {"stroke", l.color}, {"stroke-width", "1.8"}, {"stroke-linejoin", "round"}}
	if l.dash != "" {
		attrs = append(attrs, attr{"stroke-dasharray", l.dash})
	}
	c.path(attrs, commands...)
}

// spot is where an entry of a legend begins, y from the top of the legend.
type spot struct{ x, y float64 }

// has reports whether the axis has a place for v.
func (a Axis) has(v float64) bool {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return false
	}
	return v > 0 || a.Base == 0
}
