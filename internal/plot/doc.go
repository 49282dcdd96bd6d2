// Package plot draws lines on logarithmic or linear axes as SVG, without dependencies.
//
//	Figure
//	├─ title
//	├─ Rows[0]   Panel  Panel      each panel with its own axes and range
//	├─ Rows[1]   Panel  Panel
//	├─ legend                      once, below: a name has the same colour, marker and dashes in every panel
//	└─ foot                        small: where and when
//
// The same figure gives the same bytes. Colours are Okabe and Ito's, which colour-blind readers can tell apart
// (https://jfly.uni-koeln.de/color/), some of them darker; markers and dashes say the same again without colour. The
// background is white, or dark where the reader prefers dark pages (prefers-color-scheme). On both, text stands out by
// 4.5 to 1 at least and lines by 3 to 1, as WCAG 2.2 has it. The title is the picture's name for screen readers.
//
// The package knows nothing of what is drawn.
package plot
