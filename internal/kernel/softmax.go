package kernel

import "math"

// sumSegment is how many elements Exponentials adds up before the sum goes to that of the row.
const sumSegment = 4096

// Exponentials returns a loop over a row, or nil if t is neither Float32 nor Float64. With m for the greatest element,
// NaNs passed over, it sets dst[i] = exp(src[i] - m), the difference rounded to t, and returns m and the sum of the
// exponentials before they are rounded to t. A NaN in src makes the sum one. dst is src, or does not overlap it.
//
// The order of the sum is the same everywhere. Segments of 4,096 elements are added one after the other. In a segment
// element i of all that fill eights goes to part i mod 8; of the parts 0 and 4, 1 and 5, 2 and 6, 3 and 7 are added;
// then the first and the third, the second and the fourth; then these. What fills no eight is added to that.
func Exponentials(t Type) func(dst, src []byte) (greatest, sum float64) {
	return chosen.exponentials(t)
}

func (v *version) exponentials(t Type) func(dst, src []byte) (greatest, sum float64) {
	largest, shifted := at(&v.greatest, t), at(&v.shiftedExp, t)
	if largest == nil {
		return nil
	}
	segment := sumSegment * t.Size()
	return func(dst, src []byte) (greatest, sum float64) {
		src = src[:len(dst)]
		greatest = largest(src)
		for len(dst) > segment {
			sum += shifted(dst[:segment], src, greatest)
			dst, src = dst[segment:], src[segment:]
		}
		return greatest, sum + shifted(dst, src, greatest)
	}
}

// Scale returns the loop dst[i] = src[i] * by, computed in float64, or nil if t is neither Float32 nor Float64. dst is
// src, or does not overlap it.
func Scale(t Type) func(dst, src []byte, by float64) { return at(&chosen.scale, t) }

// softmaxes fills in the loops in plain Go.
func softmaxes[T float32 | float64](v *version, t Type) {
	v.greatest[t] = func(src []byte) float64 { return above(T(math.Inf(-1)), view[T](src)) }
	v.shiftedExp[t] = func(dst, src []byte, shift float64) float64 {
		d, s := view[T](dst), view[T](src)
		s = s[:len(d)]
		var parts [8]float64
		whole := len(s) &^ 7
		for i, x := range s[:whole] {
			e := exp(float64(x-T(shift)), 0)
			d[i] = T(canonical(e))
			parts[i&7] += e
		}
		a, b := (parts[0]+parts[4])+(parts[2]+parts[6]), (parts[1]+parts[5])+(parts[3]+parts[7])
		return shiftedRest(d[whole:], s[whole:], T(shift), a+b)
	}
	v.scale[t] = func(dst, src []byte, by float64) {
		d, s := view[T](dst), view[T](src)
		s = s[:len(d)]
		for i, x := range s {
			d[i] = T(canonical(float64(float64(x) * by)))
		}
	}
}

// above is the greatest of some elements and another, which may be 0 but not -0.
func above[T float32 | float64](greatest T, x []T) float64 {
	for _, v := range x {
		if v > greatest {
			greatest = v
		}
	}
	if greatest == 0 {
		return 0
	}
	return float64(greatest)
}

// shiftedRest is shiftedExp of what fills no eight. It adds to a sum.
func shiftedRest[T float32 | float64](d, s []T, shift T, sum float64) float64 {
	for i, x := range s {
		e := exp(float64(x-shift), 0)
		d[i] = T(canonical(e))
		sum += e
	}
	return sum
}
