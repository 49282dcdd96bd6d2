package plot

import (
	"math"
	"slices"
	"strconv"
)

// span is the range of an axis.
type span struct {
	low, high float64
	linear    bool // and not logarithmic
}

// spanOf is the range of values, a little wider than they are. Without any it is 1 to 10, or 0 to 1 if linear.
func spanOf(values []float64, linear bool) span {
	if len(values) == 0 {
		if linear {
			return span{0, 1, true}
		}
		return span{1, 10, false}
	}
	low, high := slices.Min(values), slices.Max(values)
	if linear {
		margin := (high - low) * 0.04
		if low == high {
			margin = max(math.Abs(low)/2, 0.5)
		}
		if low >= 0 {
			return span{max(low-margin, 0), high + margin, true}
		}
		return span{low - margin, high + margin, true}
	}
	margin := math.Pow(high/low, 0.04)
	if high/low < 2 {
		margin = 1.5
	}
	return span{low / margin, high * margin, false}
}

// at is where v lies in the range, from 0 to 1.
func (s span) at(v float64) float64 {
	if s.linear {
		return (v - s.low) / (s.high - s.low)
	}
	return math.Log(v/s.low) / math.Log(s.high/s.low)
}

// holds reports whether v lies in the range, give or take the rounding of logarithms.
func (s span) holds(v float64) bool { return v >= s.low*(1-1e-9) && v <= s.high*(1+1e-9) }

// within is the range as far as the axis goes.
func (s span) within(a Axis) span {
	if s.linear && a.Most > s.low {
		s.high = min(s.high, a.Most)
	}
	return s
}

// tickApart is how far from each other two ticks of the x axis are, as part of its length, so that there is room for
// their texts.
const tickApart = 0.1

// withLast adds a tick at the last of the values, in place of those that are too near to it.
func withLast(major []float64, s span, values []float64) []float64 {
	if len(values) == 0 {
		return major
	}
	last := slices.Max(values)
	near := func(v float64) bool { return math.Abs(s.at(v)-s.at(last)) < tickApart }
	if slices.ContainsFunc(major, func(v float64) bool { return math.Abs(s.at(v)-s.at(last)) < 1e-9 }) {
		return major
	}
	return append(slices.DeleteFunc(major, near), last)
}

// maxTicks is how many ticks fit beside each other.
const maxTicks = 9

// ticks are where an axis has text, minor where it only has a line.
func ticks(s span, base int, whole bool) (major, minor []float64) {
	if s.linear {
		major = multiples(s)
		if whole {
			major = slices.DeleteFunc(major, func(v float64) bool { return v != math.Trunc(v) })
		}
		return major, nil
	}
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

// multiples are those in a linear range of 1, 2 or 5 times a power of ten: of the least of these that there are not
// too many of.
func multiples(s span) []float64 {
	const least = -300 // of the powers whose inverses are finite
	for e := max(math.Floor(math.Log10((s.high-s.low)/maxTicks))-1, least); ; e++ {
		for _, f := range []float64{1, 2, 5} {
			// Divided where the power is negative, so that 3 tenths are 0.3 and not 0.30000000000000004.
			times, by := f*math.Pow(10, max(e, 0)), math.Pow(10, max(-e, 0))
			first, last := math.Ceil(s.low*by/times), math.Floor(s.high*by/times)
			if last-first >= maxTicks {
				continue
			}
			var out []float64
			for i := range maxTicks {
				k := first + float64(i) // of which several may be the same number, if the range is a few ulps wide
				if !(k <= last) {
					break
				}
				v := k * times / by
				if k == 0 {
					v = 0 // and not -0
				}
				if len(out) == 0 || v > out[len(out)-1] {
					out = append(out, v)
				}
			}
			return out
		}
	}
}

// Plain is the text of a tick without a unit: the shortest decimal.
func Plain(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// Micro is a time in microseconds, with a unit.
func Micro(micro float64) string {
	switch {
	case micro >= 1e6:
		return Plain(micro/1e6) + " s"
	case micro >= 1e3:
		return Plain(micro/1e3) + " ms"
	}
	return Plain(micro) + " µs"
}
