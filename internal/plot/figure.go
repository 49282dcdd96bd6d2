package plot

// Figure is rows of panels, with a title above and a legend below.
type Figure struct {
	Title string
	Rows  [][]Panel
	Foot  string // small below the legend, if not empty: where and when
}

// Panel is one plot.
type Panel struct {
	Title string
	X, Y  Axis
	Lines []Line
}

// Axis is a logarithmic axis, or with Base 0 a linear one. Its range is that of the data, and a linear one goes below 0
// only where the data does. The last point of the data has a tick on the x axis.
type Axis struct {
	Label string
	// 2: ticks at powers of two; 10: at 1, 2, 5, 10, ... or at powers of ten, whichever fits; 0: at round numbers
	Base  int
	Tick  func(float64) string // the text of a tick
	Most  float64              // the end of a linear axis on which nothing can lie beyond it, 0: there is none
	Whole bool                 // a linear axis has ticks at whole numbers only
}

// Line is points joined by lines, in the order given. What the axes have no place for is left out: numbers that are not
// finite and, on a logarithmic axis, not above 0.
type Line struct {
	Name      string // in the legend; lines of one name look the same in all panels
	Points    []Point
	Reference bool // drawn in grey below the others: something to compare with
}

// Point is a place in a panel, in the units of its axes.
type Point struct{ X, Y float64 }
