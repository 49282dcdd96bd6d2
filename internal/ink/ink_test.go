package ink

import (
	"math"
	"testing"
)

func TestStyle(t *testing.T) {
	const want = "<style>@media (prefers-color-scheme: dark) {\n" +
		"[fill=\"#fff\"] { fill: #000 } [stroke=\"#fff\"] { stroke: #000 }\n" +
		"[fill=\"#111111\"] { fill: #eee } [stroke=\"#111111\"] { stroke: #eee }\n" +
		"}</style>\n"
	if got := Style(Ink{"#fff", "#000"}, Ink{"#111111", "#eee"}); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestContrast has ratios that checkers of web pages show, and text that is no colour.
func TestContrast(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"#fff", "#000000", 21}, {"#000", "#ffffff", 21}, {"#777777", "#fff", 4.48}, {"#767676", "#fff", 4.54},
		{"#f00", "#fff", 4}, {"#00f", "#fff", 8.59}, {"#0a0a0a", "#0a0a0a", 1},
		{"red", "#fff", 0}, {"#fff", "#ff", 0}, {"#fff", "#gggggg", 0}, {"#fff", "000000", 0}, {"", "", 0},
	} {
		if got := Contrast(c.a, c.b); math.Abs(got-c.want) > .005 {
			t.Errorf("Contrast(%q, %q) is %.3f, want %.3f", c.a, c.b, got, c.want)
		}
	}
}
