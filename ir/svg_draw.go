package ir

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gogcl.dev/internal/ink"
)

// look is how the boxes of a kind are drawn.
type look struct{ fill, fillDark, stroke, strokeDark string }

// looks are those of the kinds known here. Colours are Okabe and Ito's (https://jfly.uni-koeln.de/color/), which
// colour-blind readers can tell apart, some of them darker to stand out from white, and light ones of the same hue
// to write on.
var looks = map[string]look{
	"":           {"#ffffff", "#121417", "#555555", "#a6a6a6"},
	kindStream:   {"#d9f2e8", "#12352b", "#009e73", "#1fc79a"},
	kindVariable: {"#fdf0c8", "#3a3010", "#b07d00", "#ecb02e"},
	kindConstant: {"#f0f0f0", "#2a2d31", "#777777", "#a6a6a6"},
	kindCall:     {"#f5f8fb", "#182028", "#5b7ea3", "#7fa6cf"},
	kindRepeat:   {"#f3f7f3", "#17201a", "#5f8f5f", "#85b985"},
	kindStart:    {"#fdf3f0", "#2a1d17", "#b5651d", "#e0914a"},
	kindIf:       {"#f9f5fb", "#221a28", "#8d6aa8", "#b795d2"},
	"collective": {"#fde0cc", "#44260f", "#d55e00", "#f58a3c"},
	"remote":     {"#dcedf9", "#12304a", "#0072b2", "#56a8dc"},
	"code load":  {"#e4e4f4", "#28284a", "#6a6ab0", "#9a9ae0"},
}

// others are the looks of kinds that are not known here, in the order in which they come, and then again.
var others = []look{
	{"#f6e3ee", "#40223a", "#c2659a", "#e39cc4"},
	{"#ddf0fb", "#153444", "#2b8cc4", "#9ad7f9"},
	{"#faf6bd", "#38350f", "#8f8700", "#d8ce3a"},
}

const lineColor, changeColor, softColor = "#555555", "#c00000", "#5f5f5f"

// inks are the likes, on a dark background, of the colours that no kind has.
var inks = []ink.Ink{
	{Light: "#000000", Dark: "#e6e6e6"}, {Light: "#333333", Dark: "#cccccc"}, {Light: "#888888", Dark: "#909090"},
	{Light: changeColor, Dark: "#ff7b72"}, {Light: softColor, Dark: "#a6a6a6"},
}

// canvas collects SVG elements. Writing to memory does not fail.
type canvas struct {
	b     bytes.Buffer
	looks map[string]look
}

// pixels prints a coordinate, in tenths of a pixel.
func pixels(v float64) string {
	s := strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

// points prints a path: letters and coordinates.
func points(parts ...any) string {
	var b strings.Builder
	for i, part := range parts {
		switch v := part.(type) {
		case string:
			b.WriteString(v)
		case float64:
			if _, number := parts[max(i-1, 0)].(float64); number {
				b.WriteByte(' ')
			}
			b.WriteString(pixels(v))
		}
	}
	return b.String()
}

func (c *canvas) path(attributes, d string) {
	fmt.Fprintf(&c.b, "<path d=%q %s/>\n", d, attributes)
}

func (c *canvas) text(x, y, size float64, anchor, color, text, more string) {
	if text == "" {
		return
	}
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" font-size="%s" text-anchor="%s" fill="%s"%s>`,
		pixels(x), pixels(y), pixels(size), anchor, color, more)
	_ = xml.EscapeText(&c.b, []byte(text))
	c.b.WriteString("</text>\n")
}

// svg draws the sheet of a graph, with a legend.
func (d *drawing) svg(s *sheet) []byte {
	c := &canvas{looks: map[string]look{"": looks[""]}}
	unknown := 0
	for _, kind := range d.kinds {
		l, is := looks[kind]
		if !is {
			l = others[unknown%len(others)]
			unknown++
		}
		c.looks[kind] = l
	}
	entries := slices.Clone(d.kinds)
	if d.red {
		entries = append(entries, "changed in place")
	}
	if d.dash {
		entries = append(entries, "comes before")
	}
	width := max(s.width, 240)
	type spot struct{ x, y float64 }
	var spots []spot
	x, y := sheetMargin, s.height+8
	for _, e := range entries {
		need := 24 + textWidth(e, smallSize) + 14
		if x > sheetMargin && x+need > width {
			x, y = sheetMargin, y+20
		}
		spots = append(spots, spot{x, y})
		x += need
		width = max(width, x)
	}
	height := s.height
	if len(entries) > 0 {
		height = y + 24
	}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" font-family="Helvetica, Arial, sans-serif">`+"\n",
		pixels(width), pixels(height))
	c.style()
	c.path(`fill="#ffffff"`, points("M", 0.0, 0.0, "H", width, "V", height, "H", 0.0, "Z"))
	c.sheet(s, 0, 0)
	for i, e := range entries {
		at := spots[i]
		switch l, is := c.looks[e]; {
		case is:
			c.path(l.attributes(), points("M", at.x, at.y, "h", 18.0, "v", 12.0, "h", -18.0, "Z"))
		case e == "comes before":
			c.path(strokeOf(softColor, true), points("M", at.x, at.y+6, "h", 18.0))
		default:
			c.path(strokeOf(changeColor, false), points("M", at.x+9, at.y-2, "v", 9.0))
			c.arrow(at.x+9, at.y+12, changeColor)
		}
		c.text(at.x+24, at.y+10, smallSize, "start", "#333333", e, "")
	}
	c.b.WriteString("</svg>\n")
	return c.b.Bytes()
}

// style has the drawing follow the reader's choice of light or dark pages.
func (c *canvas) style() {
	all := slices.Clone(inks)
	for _, kind := range slices.Sorted(maps.Keys(c.looks)) {
		all = append(all, c.looks[kind].inks()...)
	}
	c.b.WriteString(ink.Style(all...))
}

func (l look) inks() []ink.Ink {
	return []ink.Ink{{Light: l.fill, Dark: l.fillDark}, {Light: l.stroke, Dark: l.strokeDark}}
}

func (l look) attributes() string {
	return fmt.Sprintf(`fill="%s" stroke="%s"`, l.fill, l.stroke)
}

func strokeOf(color string, dashed bool) string {
	if dashed {
		return fmt.Sprintf(`fill="none" stroke="%s" stroke-dasharray="4 3"`, color)
	}
	return fmt.Sprintf(`fill="none" stroke="%s" stroke-width="1.2"`, color)
}

// arrow draws a head that points down to a place.
func (c *canvas) arrow(x, y float64, color string) {
	c.path(fmt.Sprintf(`fill="%s"`, color), points("M", x, y, "l", -3.5, -7.0, "h", 7.0, "Z"))
}

// sheet draws a graph with its upper left corner at x, y.
func (c *canvas) sheet(s *sheet, x, y float64) {
	for _, layer := range s.layers {
		for _, b := range layer {
			c.drawnBox(s, b, x, y)
		}
	}
	begun := map[[2]any]bool{}
	for _, g := range s.gaps {
		color := lineColor
		switch {
		case g.red:
			color = changeColor
		case g.dashed:
			color = softColor
		}
		x1, x2 := x+g.upper.x+g.upper.portAt(g.upper.outAt, g.out), x+g.lower.x+g.lower.portAt(g.lower.inAt, g.in)
		y0, y1, y2 := y+s.tops[g.upper.layer], y+s.bottoms[g.upper.layer], y+s.tops[g.lower.layer]
		if g.upper.outline != passingBox {
			y0 = y + g.upper.y + g.upper.height
			if g.out != order {
				y0 += g.upper.below()
			}
		}
		if key := [2]any{g.upper, g.out}; !begun[key] && y1 > y0 { // along the drawnBox, and what is below it
			begun[key] = true
			above := lineColor
			if g.dashed {
				above = softColor
			}
			c.path(strokeOf(above, g.dashed), points("M", x1, y0, "V", y1))
		}
		end := y2
		if g.lower.outline != passingBox {
			end -= 5
		}
		bend := (end - y1) / 2
		c.path(strokeOf(color, g.dashed), points("M", x1, y1, "C", x1, y1+bend, x2, end-bend, x2, end))
		if g.lower.outline != passingBox {
			c.arrow(x2, y2, color)
		}
	}
}

// drawnBox draws a box, the sheet in it, and the edgeLabels below it.
func (c *canvas) drawnBox(s *sheet, b *drawnBox, dx, dy float64) {
	x, y, w, h := dx+b.x, dy+b.y, b.width, b.height
	l := c.looks[b.kind]
	switch b.outline {
	case passingBox:
		return
	case titleText:
		c.text(x, y+fontSize, fontSize, "start", "#000000", b.text, ` font-weight="bold"`)
		c.text(x, y+fontSize+lineHeight-2, smallSize, "start", softColor, b.small, "")
		return
	case pill:
		r := h / 2
		c.path(`fill="#ffffff" stroke="#888888"`,
			points("M", x+r, y, "H", x+w-r, "a", r, r, " 0 0 1 ", 0.0, h, "H", x+r, "a", r, r, " 0 0 1 ", 0.0, -h, "Z"))
		if s.depth > 0 && b.end == atTop {
			c.path(strokeOf(lineColor, false), points("M", x+w/2, dy, "V", y))
		} else if s.depth > 0 {
			c.path(strokeOf(lineColor, false), points("M", x+w/2, y+h, "V", dy+s.height))
		}
	case slanted:
		c.path(l.attributes(), points("M", x+8, y, "H", x+w, "L", x+w-8, y+h, "H", x, "Z"))
	case drum:
		side := points("M", x, y+5, "V", y+h-5, "A", w/2, 5.0, " 0 0 0 ", x+w, y+h-5, "V", y+5)
		c.path(l.attributes(), side+points("A", w/2, 5.0, " 0 0 0 ", x, y+5, "A", w/2, 5.0, " 0 0 0 ", x+w, y+5))
		y += 8 // the text is below the lid
		h -= 8
	case foldedBox:
		c.path(l.attributes(), points("M", x, y, "H",
			x+w-8, "l", 8.0, 8.0, "V", y+h, "H", x, "Z", "M", x+w-8, y, "v", 8.0, "h", 8.0))
	case nestedBox:
		c.path(l.attributes()+` stroke-width="1.5"`, points("M", x, y, "h", w, "v", h, "h", -w, "Z"))
		c.sheet(b.inner, x, y)
	default:
		c.path(l.attributes(), points("M", x+3, y, "H",
			x+w-3, "q", 3.0, 0.0, " ", 3.0, 3.0, "V", y+h-3, "q", 0.0, 3.0, " ", -3.0, 3.0,
			"H", x+3, "q", -3.0, 0.0, " ", -3.0, -3.0, "V", y+3, "q", 0.0, -3.0, " ", 3.0, -3.0, "Z"))
	}
	if b.outline != nestedBox {
		base := y + (h-lineHeight)/2 + fontSize - 1
		if b.small != "" {
			base -= (lineHeight - 3) / 2
		}
		c.text(x+w/2, base, fontSize, "middle", "#000000", b.text, "")
		c.text(x+w/2, base+lineHeight-3, smallSize, "middle", softColor, b.small, "")
	}
	bottom := dy + b.y + b.height
	for i, t := range b.edgeLabels {
		if t.name == "" {
			continue
		}
		at := x + b.outAt[i]
		c.path(strokeOf(lineColor, false), points("M", at, bottom, "v", 6.0))
		c.text(at, bottom+16, smallSize, "middle", "#000000", t.name, "")
		c.text(at, bottom+28, smallSize, "middle", softColor, t.spec, "")
		if c.read(s, b, i) {
			c.path(strokeOf(lineColor, false), points("M", at, bottom+32, "V", bottom+labelHeight))
		}
	}
}

// read reports whether a line leads from an output.
func (c *canvas) read(s *sheet, b *drawnBox, out int) bool {
	return slices.ContainsFunc(s.lines, func(l *line) bool { return l.from == b && l.out == out })
}
