package kernel

// and is
//
//	for i := range dst { dst[i] = truth(a[i]) & truth(b[i]) }
func and(dst, a, b []uint8) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i]) & truth(b[i])
	}
}

// or is
//
//	for i := range dst { dst[i] = truth(a[i] | b[i]) }
func or(dst, a, b []uint8) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = truth(a[i] | b[i])
	}
}

// truth is 0 for 0 and 1 for any other byte. The compiler makes a SETNE of it, no branch.
func truth(b uint8) uint8 {
	var t uint8
	if b != 0 {
		t = 1
	}
	return t
}
