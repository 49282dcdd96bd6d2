package kernel

// add is
//
//	for i := range dst { dst[i] = a[i] + b[i] } // a NaN made canonical
func add[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	i := 0
	for ; i < len(dst)-3; i += 4 {
		d, x, y := (*[4]T)(dst[i:i+4]), (*[4]T)(a[i:i+4]), (*[4]T)(b[i:i+4])
		s0, s1, s2, s3 := x[0]+y[0], x[1]+y[1], x[2]+y[2], x[3]+y[3]
		if maybeNaN(s0, s1, s2, s3) {
			s0, s1, s2, s3 = canonical(s0), canonical(s1), canonical(s2), canonical(s3)
		}
		d[0], d[1], d[2], d[3] = s0, s1, s2, s3
	}
	for ; i < len(dst); i++ {
		dst[i] = canonical(a[i] + b[i])
	}
}

// mul is
//
//	for i := range dst { dst[i] = a[i] * b[i] } // a NaN made canonical
func mul[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	i := 0
	for ; i < len(dst)-3; i += 4 {
		d, x, y := (*[4]T)(dst[i:i+4]), (*[4]T)(a[i:i+4]), (*[4]T)(b[i:i+4])
		s0, s1, s2, s3 := T(x[0]*y[0]), T(x[1]*y[1]), T(x[2]*y[2]), T(x[3]*y[3])
		if maybeNaN(s0, s1, s2, s3) {
			s0, s1, s2, s3 = canonical(s0), canonical(s1), canonical(s2), canonical(s3)
		}
		d[0], d[1], d[2], d[3] = s0, s1, s2, s3
	}
	for ; i < len(dst); i++ {
		dst[i] = canonical(T(a[i] * b[i]))
	}
}

// square is
//
//	for i := range dst { dst[i] = src[i] * src[i] } // a NaN made canonical
func square[T number](dst, src []T) { mul(dst, src, src) }

// divide is
//
//	for i := range dst { dst[i] = src[i] / T(by) } // a NaN made canonical
//
// A division, because a product with the reciprocal rounds differently. (It takes integers only so that generic code
// over numbers may call it; there is no such loop.)
func divide[T number](dst, src []T, by int) {
	d := T(by)
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = canonical(src[i] / d)
	}
}
