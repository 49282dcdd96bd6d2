package plot

import "gogcl.dev/internal/ink"

// look is how a line is drawn.
type look struct {
	color  string
	dash   string // of stroke-dasharray; empty: solid
	marker marker
}

// The background, text, and what is not data.
var (
	background = ink.Ink{Light: "#fff", Dark: "#121417"}
	text       = ink.Ink{Light: "#000", Dark: "#e6e6e6"}
	small      = ink.Ink{Light: "#555", Dark: "#a6a6a6"} // of the foot
	frame      = ink.Ink{Light: "#666", Dark: "#a0a0a0"} // and of reference lines
	gridMajor  = ink.Ink{Light: "#d9d9d9", Dark: "#3a3f45"}
	gridMinor  = ink.Ink{Light: "#f0f0f0", Dark: "#23272c"}
)

// palette is Okabe and Ito's without the yellow, which is hard to see on white. Blue, green, pink, orange and sky blue
// are darker than theirs on white, and all are lighter on the dark background: lines must stand out from it by 3 to 1
// (WCAG 2.2, 1.4.11), and blue from sky blue.
var palette = [...]ink.Ink{
	{Light: "#00539c", Dark: "#56a8dc"}, {Light: "#d55e00", Dark: "#f58a3c"},
	{Light: "#008f68", Dark: "#1fc79a"}, {Light: "#c2659a", Dark: "#e39cc4"},
	{Light: "#111111", Dark: "#ffffff"}, {Light: "#a87400", Dark: "#ecb02e"}, {Light: "#2b8cc4", Dark: "#9ad7f9"},
}

// style has what is drawn in a light colour drawn in its dark one, where the reader prefers that.
func style() string {
	return ink.Style(append(palette[:], background, text, small, frame, gridMajor, gridMinor)...)
}

// reference is the look of something to compare with.
var reference = look{color: frame.Light, dash: "3 2", marker: none}

// lookOf is the look of the i-th name. Colours come again after seven, with another dash; markers after eight.
func lookOf(i int) look {
	dashes := [...]string{"", "7 3", "2 2", "8 3 2 3"}
	return look{
		color:  palette[i%len(palette)].Light,
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
		c.circle(x, y, 3, []attr{{"fill", background.Light}, {"stroke", color}, {"stroke-width", "1.6"}})
	case saltire:
		c.path(line, "M", x-2.8, y-2.8, "L", x+2.8, y+2.8, "M", x-2.8, y+2.8, "L", x+2.8, y-2.8)
	case wedge:
		c.path(fill, "M", x, y+3.6, "L", x+3.4, y-2.6, "L", x-3.4, y-2.6, "Z")
	}
}
