package launch

import (
	"errors"
	"fmt"
	"strings"
)

// maxNodes is the most names that [Nodes] returns, the largest number of ranks that a schedule has.
const maxNodes = 1 << 16

// Nodes expands a list of hosts as Slurm writes it, in its order:
//
//	node[01-03,7],login1,gpu[1-2]-ib[0-1]
//
// is node01 node02 node03 node7 login1 gpu1-ib0 gpu1-ib1 gpu2-ib0 gpu2-ib1. A number keeps the leading zeros of the
// first in its range. A list of more than 65,536 names is an error, found before any is made.
func Nodes(list string) ([]string, error) {
	var names []string
	total := int64(0)
	for rest, more := list, true; more; {
		var item string
		item, rest, more = cutItem(rest)
		parts, err := parseItem(item)
		if err != nil {
			return nil, fmt.Errorf("%s: %w, in %s", show(list), err, show(item))
		}
		total += countNames(parts)
		if total > maxNodes {
			return nil, fmt.Errorf("%s: more than %d names", show(list), maxNodes)
		}
		names = expand(names, "", parts)
	}
	for _, name := range names {
		if err := checkName(name); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", show(list), show(name), err)
		}
	}
	return names, nil
}

// cutItem cuts a list at its first comma outside of brackets. more says that there was one.
func cutItem(list string) (item, rest string, more bool) {
	depth := 0
	for i := range len(list) {
		switch list[i] {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth <= 0 {
				return list[:i], list[i+1:], true
			}
		}
	}
	return list, "", false
}

// A nodePart is a text and the numbers that may follow it. Without ranges only the text follows.
type nodePart struct {
	text   string
	ranges []nodeRange
}

// A nodeRange is the numbers first to last, printed with at least width digits.
type nodeRange struct{ first, last, width int }

// countNames is how many names the parts of one item stand for. It stops counting above maxNodes.
func countNames(parts []nodePart) int64 {
	count := int64(1)
	for _, p := range parts {
		if p.ranges == nil {
			continue
		}
		numbers := int64(0)
		for _, r := range p.ranges {
			numbers += int64(r.last - r.first + 1)
		}
		if count *= min(numbers, maxNodes+1); count > maxNodes {
			return count
		}
	}
	return count
}

// parseItem cuts one name with brackets into its parts.
func parseItem(item string) (parts []nodePart, err error) {
	if item == "" {
		return nil, errors.New("an empty name")
	}
	length := 0 // of the shortest name
	for rest := item; rest != ""; {
		at := strings.IndexAny(rest, "[]")
		if at < 0 {
			at = len(rest)
		}
		part := nodePart{text: rest[:at]}
		if length += at; length > maxName {
			return nil, fmt.Errorf("a name of more than %d bytes", maxName)
		}
		if at == len(rest) {
			return append(parts, part), nil
		}
		if rest[at] == ']' {
			return nil, errors.New("] without [")
		}
		inside, after, closed := strings.Cut(rest[at+1:], "]")
		if !closed {
			return nil, errors.New("[ without ]")
		}
		rest = after
		for text := range strings.SplitSeq(inside, ",") {
			r, err := parseRange(text)
			if err != nil {
				return nil, err
			}
			part.ranges = append(part.ranges, r)
		}
		length += part.ranges[0].width
		parts = append(parts, part)
	}
	return parts, nil
}

// maxDigits bounds the numbers of nodes, leading zeros included: nine digits fit an int of 32 bits.
const maxDigits, maxNumber = 9, 999_999_999

// parseRange reads "7" or "01-03".
func parseRange(text string) (nodeRange, error) {
	low, high, found := strings.Cut(text, "-")
	if !found {
		high = low
	}
	first, ok1 := number(low, maxNumber)
	last, ok2 := number(high, maxNumber)
	switch {
	case !ok1 || !ok2 || len(low) > maxDigits || len(high) > maxDigits:
		return nodeRange{}, fmt.Errorf("%s: want a number of at most %d digits, or two with - between", show(text),
			maxDigits)
	case first > last:
		return nodeRange{}, fmt.Errorf("%s: the first number is above the last", show(text))
	case len(high) < len(low) || len(high) > len(low) && high[0] == '0':
		return nodeRange{}, fmt.Errorf("%s: both numbers want the same leading zeros", show(text))
	}
	return nodeRange{first: first, last: last, width: len(low)}, nil
}

// expand appends the names that begin with prefix and go on as parts say, the last bracket changing fastest.
func expand(names []string, prefix string, parts []nodePart) []string {
	if len(parts) == 0 {
		return append(names, prefix)
	}
	p := parts[0]
	if p.ranges == nil {
		return expand(names, prefix+p.text, parts[1:])
	}
	for _, r := range p.ranges {
		for n := r.first; n <= r.last; n++ {
			names = expand(names, fmt.Sprintf("%s%s%0*d", prefix, p.text, r.width, n), parts[1:])
		}
	}
	return names
}
