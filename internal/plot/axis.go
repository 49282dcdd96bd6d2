package plot

import (
	"math"
	"strconv"
)

// span is the range of an axis.
type span struct{ low, high float64 }

// spanOf is the range of values, a little wider than they are. Without any it is 1 to 10.
func spanOf(values []float64) span {
	s := span{math.Inf(1), 0}
	for _, v := range values {
		s.low, s.high = min(s.low, v), max(s.high, v)
	}
	if s.high == 0 {
		return span{1, 10}
	}
	margin := math.Pow(s.high/s.low, 0.04)
	if s.high/s.low < 2 {
		margin = 1.5
	}
	return span{s.low / margin, s.high * margin}
}

// at is where v lies in the range, from 0 to 1.
func (s span) at(v float64) float64 { return math.Log(v/s.low) / math.Log(s.high/s.low) }

// holds reports whether v lies in the range, give or take the rounding of logarithms.
func (s span) holds(v float64) bool { return v >= s.low*(1-1e-9) && v <= s.high*(1+1e-9) }

// maxTicks is how many ticks fit beside each other.
const maxTicks = 9

// ticks are where an axis has text, minor where it only has a line.
func ticks(s span, base int) (major, minor []float64) {
	if base == 2 {
		return powers(s, 2, everyFor(s, 2)), nil
	}
	major = steps(s, 1, 2, 5)
	if len(major) <= maxTicks {
		return major, nil
	}
	every := everyFor(s, 10)
	major = powers(s, 10, every)
	if every == 1 {
		minor = steps(s, 2, 3, 4, 5, 6, 7, 8, 9)
	}
	return major, minor
}

// everyFor is how many powers lie from tick to tick.
func everyFor(s span, base float64) int {
	for every := 1; ; every++ {
		if len(powers(s, base, every)) <= maxTicks {
			return every
		}
	}
}

// powers are the powers of base in a range, each so many above the one before.
func powers(s span, base float64, every int) []float64 {
	var out []float64
	first := int(math.Ceil(math.Log(s.low)/math.Log(base) - 1e-9))
	for e := first; s.holds(math.Pow(base, float64(e))); e += every {
		out = append(out, math.Pow(base, float64(e)))
	}
	return out
}

// steps are the powers of ten in a range times each factor.
func steps(s span, factors ...float64) []float64 {
	var out []float64
	for e := int(math.Floor(math.Log10(s.low))); math.Pow(10, float64(e)) <= s.high; e++ {
		for _, f := range factors {
			if v := f * math.Pow(10, float64(e)); s.holds(v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// Plain is the text of a tick without a unit: the shortest decimal.
func Plain(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
