package plot

import (
	"fmt"
	"strings"
)

// look is how a line is drawn.
type look struct {
	color  string
	dash   string // of stroke-dasharray; empty: solid
	marker marker
}

// ink is a colour on white and its like on the dark background.
type ink struct{ light, dark string }

// The background, text, and what is not data.
var (
	background = ink{"#fff", "#121417"}
	text       = ink{"#000", "#e6e6e6"}
	small      = ink{"#555", "#a6a6a6"} // of the foot
	frame      = ink{"#666", "#a0a0a0"} // and of reference lines
	gridMajor  = ink{"#d9d9d9", "#3a3f45"}
	gridMinor  = ink{"#f0f0f0", "#23272c"}
)

// palette is Okabe and Ito's without the yellow, which is hard to see on white. Blue, green, pink, orange and sky blue
// are darker than theirs on white, and all are lighter on the dark background: lines must stand out from it by 3 to 1
// (WCAG 2.2, 1.4.11), and blue from sky blue.
var palette = [...]ink{
	{"#00539c", "#56a8dc"}, {"#d55e00", "#f58a3c"}, {"#008f68", "#1fc79a"}, {"#c2659a", "#e39cc4"},
	{"#111111", "#ffffff"}, {"#a87400", "#ecb02e"}, {"#2b8cc4", "#9ad7f9"},
}

// style has what is drawn in a light colour drawn in its dark one, where the reader prefers that. The elements have the
// light colours as attributes, for programs that know no style sheets.
func style() string {
	var b strings.Builder
	b.WriteString("<style>@media (prefers-color-scheme: dark) {\n")
	fmt.Fprintf(&b, "text { fill: %s }\n", text.dark)
	for _, i := range append(palette[:], background, small, frame, gridMajor, gridMinor) {
		fmt.Fprintf(&b, "[fill=\"%s\"] { fill: %s } [stroke=\"%[1]s\"] { stroke: %[2]s }\n", i.light, i.dark)
	}
	b.WriteString("}</style>\n")
	return b.String()
}

// reference is the look of something to compare with.
var reference = look{color: frame.light, dash: "3 2", marker: none}

// lookOf is the look of the i-th name. Colours come again after seven, with another dash; markers after eight.
func lookOf(i int) look {
	dashes := [...]string{"", "7 3", "2 2", "8 3 2 3"}
	return look{
		color:  palette[i%len(palette)].light,
		dash:   dashes[i/len(palette)%len(dashes)],
		marker: marker(i%int(numMarkers)) + 1,
	}
}

// marker is the shape at a point.
type marker int

const (
	none marker = iota
	disc
	square
	triangle
	diamond
	cross
	ring
	saltire
	wedge
	numMarkers = iota - 1
)

// svg draws a marker around a point.
func (m marker) svg(c *canvas, x, y float64, color string) {
	fill := []attr{{"fill", color}}
	line := []attr{{"fill", "none"}, {"stroke", color}, {"stroke-width", "1.6"}}
	switch m {
	case disc:
		c.circle(x, y, 3, fill)
	case square:
		c.path(fill, "M", x-2.7, y-2.7, "H", x+2.7, "V", y+2.7, "H", x-2.7, "Z")
	case triangle:
		c.path(fill, "M", x, y-3.6, "L", x+3.4, y+2.6, "L", x-3.4, y+2.6, "Z")
	case diamond:
		c.path(fill, "M", x, y-3.8, "L", x+3.8, y, "L", x, y+3.8, "L", x-3.8, y, "Z")
	case cross:
		c.path(line, "M", x-3.5, y, "H", x+3.5, "M", x, y-3.5, "V", y+3.5)
	case ring:
		c.circle(x, y, 3, []attr{{"fill", background.light}, {"stroke", color}, {"stroke-width", "1.6"}})
	case saltire:
		c.path(line, "M", x-2.8, y-2.8, "L", x+2.8, y+2.8, "M", x-2.8, y+2.8, "L", x+2.8, y-2.8)
	case wedge:
		c.path(fill, "M", x, y+3.6, "L", x+3.4, y-2.6, "L", x-3.4, y-2.6, "Z")
	}
}
