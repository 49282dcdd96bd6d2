package schedule

import (
	"fmt"
	"strconv"
	"strings"
)

// quoted is a piece of the text as errors have it.
func quoted(text string) string {
	if text == "" {
		return "nothing"
	}
	return strconv.Quote(clipped(text))
}

// counted is a number with its noun.
func counted[T int | int64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// numbered is a range of numbers with its noun.
func numbered(noun string, first, last int) string {
	if first == last {
		return fmt.Sprint(noun, " ", first)
	}
	return fmt.Sprintf("%ss %d to %d", noun, first, last)
}

// ranges lists numbers, those that follow each other as one range: "0-2, 5".
func ranges(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		first := i
		for i++; i < len(list) && list[i] == list[i-1]+1; i++ {
		}
		if first > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, list[first])
		if i > first+1 {
			fmt.Fprintf(&b, "-%d", list[i-1])
		}
	}
	return b.String()
}

// clipped is a text, cut if it is long.
func clipped(text string) string {
	const most = 40
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
