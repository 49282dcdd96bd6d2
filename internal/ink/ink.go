// Package ink has SVG drawings follow the reader's choice of light or dark pages. It measures how colours stand out.
package ink

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Ink is a colour on a light page, and its like on a dark one: #rgb or #rrggbb.
type Ink struct{ Light, Dark string }

// Style returns a style element, to stand in an SVG drawing before its shapes. Fills and strokes that have a light
// colour get its dark one where the reader prefers dark pages (prefers-color-scheme). The shapes have the light colours
// as attributes, for programs that know no style sheets.
func Style(inks ...Ink) string {
	var b strings.Builder
	b.WriteString("<style>@media (prefers-color-scheme: dark) {\n")
	for _, i := range inks {
		fmt.Fprintf(&b, "[fill=\"%s\"] { fill: %s } [stroke=\"%[1]s\"] { stroke: %[2]s }\n", i.Light, i.Dark)
	}
	b.WriteString("}</style>\n")
	return b.String()
}

// Contrast is how much two colours stand out from each other, from 1 to 21: the contrast ratio of WCAG 2.2. It is 0 for
// text that is no colour.
func Contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	if x < 0 || y < 0 {
		return 0
	}
	return (max(x, y) + .05) / (min(x, y) + .05)
}

// luminance is the relative luminance of WCAG 2.2, or -1.
func luminance(color string) float64 {
	digits, ok := strings.CutPrefix(color, "#")
	if ok && len(digits) == 3 {
		digits = string([]byte{digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]})
	}
	bits, err := strconv.ParseUint(digits, 16, 24)
	if !ok || len(digits) != 6 || err != nil {
		return -1
	}
	linear := func(shift int) float64 {
		c := float64(bits>>shift&0xff) / 255
		if c <= .04045 {
			return c / 12.92
		}
		return math.Pow((c+.055)/1.055, 2.4)
	}
	return .2126*linear(16) + .7152*linear(8) + .0722*linear(0)
}
