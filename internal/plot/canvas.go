package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
)

// canvas collects SVG elements. Writing to memory does not fail.
type canvas struct{ b bytes.Buffer }

type attr struct{ name, value string }

// number prints a coordinate, in tenths of a pixel.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	if n := len(s) - 2; s[n:] == ".0" {
		s = s[:n]
	}
	if s == "-0" {
		return "0"
	}
	return s
}

func (c *canvas) element(name string, attrs []attr) {
	fmt.Fprintf(&c.b, "<%s", name)
	for _, a := range attrs {
		fmt.Fprintf(&c.b, ` %s="%s"`, a.name, a.value)
	}
	c.b.WriteString("/>\n")
}

func (c *canvas) circle(x, y, r float64, attrs []attr) {
	c.element("circle", append([]attr{{"cx", number(x)}, {"cy", number(y)}, {"r", number(r)}}, attrs...))
}

// path draws what the commands, strings and numbers, say.
func (c *canvas) path(attrs []attr, commands ...any) {
	var d bytes.Buffer
	for i, part := range commands {
		switch v := part.(type) {
		case string:
			d.WriteString(v)
		case float64:
			if _, afterNumber := commands[max(i-1, 0)].(float64); afterNumber {
				d.WriteByte(' ')
			}
			d.WriteString(number(v))
		}
	}
	c.element("path", append([]attr{{"d", d.String()}}, attrs...))
}

// text writes at a place. anchor is start, middle or end.
func (c *canvas) text(x, y float64, anchor, text string, attrs ...attr) {
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" text-anchor="%s"`, number(x), number(y), anchor)
	for _, a := range attrs {
		fmt.Fprintf(&c.b, ` %s="%s"`, a.name, a.value)
	}
	c.b.WriteByte('>')
	_ = xml.EscapeText(&c.b, []byte(text))
	c.b.WriteString("</text>\n")
}
