package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// byteSize is a number of bytes with the text form 8B, 1KiB, 16MiB.
type byteSize int

func (s byteSize) String() string {
	switch {
	case s >= 1<<20 && s%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", int(s>>20))
	case s >= 1<<10 && s%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", int(s>>10))
	}
	return fmt.Sprintf("%dB", int(s))
}

// maxSize keeps lengths in the range of an int on any machine.
const maxSize byteSize = 1<<31 - 1

// parseSize is the inverse of String.
func parseSize(text string) (byteSize, error) {
	for _, unit := range []struct {
		suffix string
		bytes  byteSize
	}{{"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}} {
		if digits, ok := strings.CutSuffix(text, unit.suffix); ok {
			n, err := strconv.ParseUint(digits, 10, 31)
			if err != nil || n > uint64(maxSize/unit.bytes) {
				break
			}
			return byteSize(n) * unit.bytes, nil
		}
	}
	return 0, fmt.Errorf("size %q, want something like 8B, 1KiB or 16MiB, below 2048MiB", text)
}

// list is a flag whose value is a list with commas.
type list[T any] struct {
	values []T
	parse  func(string) (T, error)
}

func (l *list[T]) String() string {
	if l == nil {
		return ""
	}
	var parts []string
	for _, v := range l.values {
		parts = append(parts, fmt.Sprint(v))
	}
	return strings.Join(parts, ",")
}

func (l *list[T]) Set(text string) error {
	var values []T
	for part := range strings.SplitSeq(text, ",") {
		v, err := l.parse(part)
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	l.values = values
	return nil
}
