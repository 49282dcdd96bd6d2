package kernel

// minimum is
//
//	for i := range dst { dst[i] = min(a[i], b[i]) } // a NaN made canonical
//
// Go's min is a NaN if an operand is, and takes -0 to be less than +0.
func minimum[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	i := 0
	for ; i < len(dst)-3; i += 4 {
		d, x, y := (*[4]T)(dst[i:i+4]), (*[4]T)(a[i:i+4]), (*[4]T)(b[i:i+4])
		s0, s1, s2, s3 := min(x[0], y[0]), min(x[1], y[1]), min(x[2], y[2]), min(x[3], y[3])
		if maybeNaN(s0, s1, s2, s3) {
			s0, s1, s2, s3 = canonical(s0), canonical(s1), canonical(s2), canonical(s3)
		}
		d[0], d[1], d[2], d[3] = s0, s1, s2, s3
	}
	for ; i < len(dst); i++ {
		dst[i] = canonical(min(a[i], b[i]))
	}
}

// maximum is
//
//	for i := range dst { dst[i] = max(a[i], b[i]) } // a NaN made canonical
//
// Go's max is a NaN if an operand is, and takes -0 to be less than +0.
func maximum[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	i := 0
	for ; i < len(dst)-3; i += 4 {
		d, x, y := (*[4]T)(dst[i:i+4]), (*[4]T)(a[i:i+4]), (*[4]T)(b[i:i+4])
		s0, s1, s2, s3 := max(x[0], y[0]), max(x[1], y[1]), max(x[2], y[2]), max(x[3], y[3])
		if maybeNaN(s0, s1, s2, s3) {
			s0, s1, s2, s3 = canonical(s0), canonical(s1), canonical(s2), canonical(s3)
		}
		d[0], d[1], d[2], d[3] = s0, s1, s2, s3
	}
	for ; i < len(dst); i++ {
		dst[i] = canonical(max(a[i], b[i]))
	}
}
