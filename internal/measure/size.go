package measure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// units are the suffixes of a size, the longer ones first. As in nccl-tests K is 1024.
var units = []struct {
	suffix string
	bytes  uint64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30},
	{"B", 1}, {"", 1},
}

// ParseSize reads a number of bytes: 8, 8B, 1K, 1KiB, 1M, 64MiB, 1G. It is 1 or more.
func ParseSize(text string) (int, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || n == 0 || digits[0] == '+' {
			break
		}
		if n > math.MaxInt/u.bytes {
			return 0, fmt.Errorf("size %q is too large", text)
		}
		return int(n * u.bytes), nil
	}
	return 0, fmt.Errorf("size %q, want something like 8, 1K, 1KiB or 64MiB", text)
}

// FormatSize is a number of bytes in the largest unit that gives a whole number: 8 B, 1 KiB, 36 KiB, 64 MiB.
func FormatSize(n int) string {
	for _, u := range []struct {
		bytes int
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d %s", n/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// series is the sizes from first up, each factor times the one before, up to last.
func series(first, last, factor int) []int {
	var out []int
	for n := first; n <= last; n *= factor {
		out = append(out, n)
		if n > last/factor { // the next one is too large, perhaps for an int
			break
		}
	}
	return out
}
