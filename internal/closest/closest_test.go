package closest

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"ring", "ring", 0}, {"ring", "rings", 1}, {"ring", "rng", 1}, {"ring", "sing", 1},
		// which takes two edits if the same letters may be edited twice
		{"ring", "rnig", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
		{"Größe", "grosse", 3}, {"SYNCFUL", "Syncful", 0}, {"ab", "ba", 1}, {"aab", "aba", 1},
	} {
		for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			if got := distance(letters(pair[0]), letters(pair[1])); got != c.want {
				t.Errorf("%q to %q: %d, want %d", pair[0], pair[1], got, c.want)
			}
		}
	}
}

// dumb is the definition, tried out from the end.
func dumb(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	n, m := len(a)-1, len(b)-1
	change := dumb(a[:n], b[:m])
	if a[n] != b[m] {
		change++
	}
	d := min(change, dumb(a[:n], b)+1, dumb(a, b[:m])+1)
	if n > 0 && m > 0 && a[n] == b[m-1] && a[n-1] == b[m] {
		d = min(d, dumb(a[:n-1], b[:m-1])+1)
	}
	return d
}

func TestDistanceAgainstOracle(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	word := func() string {
		b := make([]byte, rng.IntN(6))
		for i := range b {
			b[i] = "abc"[rng.IntN(3)]
		}
		return string(b)
	}
	for range 2000 {
		a, b := word(), word()
		if got, want := distance(letters(a), letters(b)), dumb(a, b); got != want {
			t.Fatalf("%q to %q: %d, want %d", a, b, got, want)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	choices := []string{"auto", "broadcast", "clockwise_ring", "anticlockwise_ring", "ring", "rang"}
	for word, want := range map[string]string{
		"broadcats": "broadcast", "clockwise": "clockwise_ring",
		"counterclockwise_ring": "anticlockwise_ring", "AUTO": "auto", "": "auto",
		"rung":                     "ring", // the first of two
		strings.Repeat("x", 1<<20): "auto", // all are as far
		"\xff\xfe":                 "auto",
	} {
		if got := Of(word, choices); got != want {
			t.Errorf("%.30q: %q, want %q", word, got, want)
		}
	}
	if got := Of("x", nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}

func TestNear(t *testing.T) {
	t.Parallel()
	choices := []string{"collective", "iters", "implementation", "method", "max", "min", "n"}
	for word, want := range map[string]string{
		"methd": "method", "colective": "collective", "coll": "collective", "IMPL": "implementation",
		"m":   "", // three choices begin with it, but one letter says nothing
		"mi":  "min",
		"mix": "max", // the first of two
		"k":   "", "nonsense": "", "": "", "x": "", "itres": "iters",
	} {
		if got := Near(word, choices); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Near("x", nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}
