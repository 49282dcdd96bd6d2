// Package plot draws lines on logarithmic or linear axes as SVG, without dependencies.
//
//	Figure
//	├─ title
//	├─ Rows[0]   Panel  Panel      each panel with its own axes and range
//	├─ Rows[1]   Panel  Panel
//	└─ legend                      once, below: a name has the same colour, marker and dashes in every panel
//
// The same figure gives the same bytes. Colours are Okabe and Ito's, which colour-blind readers can tell apart
// (https://jfly.uni-koeln.de/color/); markers and dashes say the same again without colour. The background is white
// whatever the page's is.
//
// The package knows nothing of what is drawn.
package plot
