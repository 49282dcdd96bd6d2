package plot

// Figure is rows of panels, with a title above and a legend below.
type Figure struct {
	Title string
	Rows  [][]Panel
}

// Panel is one plot.
type Panel struct {
	Title string
	X, Y  Axis
	Lines []Line
}

// Axis is a logarithmic axis. Its range is that of the data.
type Axis struct {
	Label string
	Base  int                  // 2: ticks at powers of two; 10: at 1, 2, 5, 10, ... or at powers of ten, whichever fits
	Tick  func(float64) string // the text of a tick
}

// Line is points joined by lines, in the order given. What is not a number above 0 is left out.
type Line struct {
	Name      string // in the legend; lines of one name look the same in all panels
	Points    []Point
	Reference bool // drawn in grey below the others: something to compare with
}

// Point is a place in a panel, in the units of its axes.
type Point struct{ X, Y float64 }
