package measure

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int{
		"8": 8, "8B": 8, "1K": 1024, "1KiB": 1024, "1M": 1 << 20, "64MiB": 64 << 20, "1G": 1 << 30, "1GiB": 1 << 30,
		"007": 7, "1536": 1536,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%s: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "0K", "-8", "+8", "8 ", " 8", "1k", "1KB", "K",
		"KiB", "1.5K", "8BB", "0x10", "1_000", "1KiBB", "18446744073709551616", "9223372036854775808", "99999999999G"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q: %d, want an error", text, got)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"8", "1K", "64MiB", "", "KiB", "9999999999999999999G", "+1", "1\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text)
		if err != nil {
			return
		}
		if n < 1 {
			t.Fatalf("%q is %d", text, n)
		}
		if again, err := ParseSize(fmt.Sprintf("%dB", n)); err != nil || again != n {
			t.Fatalf("%q is %d, and that is %d, %v", text, n, again, err)
		}
	})
}

func TestSeries(t *testing.T) {
	for _, c := range []struct {
		first, last, factor int
		want                []int
	}{
		{8, 8, 2, []int{8}}, {8, 15, 2, []int{8}}, {8, 64, 2, []int{8, 16, 32, 64}}, {3, 100, 10, []int{3, 30}},
		{math.MaxInt - 1, math.MaxInt, 2, []int{math.MaxInt - 1}},
	} {
		if got := series(c.first, c.last, c.factor); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v", c, got)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int]string{8: "8 B", 1000: "1000 B",
		1024: "1 KiB", 1025: "1025 B", 36 << 10: "36 KiB", 64 << 20: "64 MiB", 1 << 30: "1 GiB"} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
