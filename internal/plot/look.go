package plot

// look is how a line is drawn.
type look struct {
	color  string
	dash   string // of stroke-dasharray; empty: solid
	marker marker
}

// palette is Okabe and Ito's without the yellow, which is hard to see on white.
var palette = [...]string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9"}

// reference is the look of something to compare with.
var reference = look{color: "#666", dash: "3 2", marker: none}

// lookOf is the look of the i-th name. Colours come again after seven, with another dash; markers after eight.
func lookOf(i int) look {
	dashes := [...]string{"", "7 3", "2 2", "8 3 2 3"}
	return look{
		color:  palette[i%len(palette)],
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
		c.circle(x, y, 3, []attr{{"fill", "#fff"}, {"stroke", color}, {"stroke-width", "1.6"}})
	case saltire:
		c.path(line, "M", x-2.8, y-2.8, "L", x+2.8, y+2.8, "M", x-2.8, y+2.8, "L", x+2.8, y-2.8)
	case wedge:
		c.path(fill, "M", x, y+3.6, "L", x+3.4, y-2.6, "L", x-3.4, y-2.6, "Z")
	}
}
