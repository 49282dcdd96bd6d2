package kernel

// halfBlock is how many 16-bit elements go through float32 at a time: their float32s lie on the stack, which Go clears
// on each call (64: the time of about ten elements), and stay in the first-level cache.
const halfBlock = 64

// binary16 is
//
//	for i := range dst { dst[i] = narrow(widen(a[i]) op widen(b[i])) } // a NaN made canonical
func binary16(op Op, t Type, dst, a, b []uint16) {
	var x, y [halfBlock]float32
	for len(dst) > 0 {
		n := min(len(dst), halfBlock)
		widen16(t, x[:n], a[:n])
		widen16(t, y[:n], b[:n])
		combine(op, x[:n], x[:n], y[:n])
		narrow16(t, dst[:n], x[:n])
		dst, a, b = dst[n:], a[n:], b[n:]
	}
}

// square16 is
//
//	for i := range dst { dst[i] = narrow(widen(src[i]) * widen(src[i])) } // a NaN made canonical
func square16(t Type, dst, src []uint16) {
	var x [halfBlock]float32
	for len(dst) > 0 {
		n := min(len(dst), halfBlock)
		widen16(t, x[:n], src[:n])
		square(x[:n], x[:n])
		narrow16(t, dst[:n], x[:n])
		dst, src = dst[n:], src[n:]
	}
}

// divide16 is
//
//	for i := range dst { dst[i] = narrow(widen(src[i]) / float32(by)) } // a NaN made canonical
func divide16(t Type, dst, src []uint16, by int) {
	var x [halfBlock]float32
	for len(dst) > 0 {
		n := min(len(dst), halfBlock)
		widen16(t, x[:n], src[:n])
		divide(x[:n], x[:n], by)
		narrow16(t, dst[:n], x[:n])
		dst, src = dst[n:], src[n:]
	}
}

// widen16 is
//
//	for i := range dst { dst[i] = widen(src[i]) } // F16ToF32 or BF16ToF32
func widen16(t Type, dst []float32, src []uint16) {
	src = src[:len(dst)]
	if t == Float16 {
		for i := range dst {
			dst[i] = F16ToF32(src[i])
		}
		return
	}
	for i := range dst {
		dst[i] = BF16ToF32(src[i])
	}
}

// narrow16 is
//
//	for i := range dst { dst[i] = narrow(src[i]) } // F32ToF16 or F32ToBF16
func narrow16(t Type, dst []uint16, src []float32) {
	src = src[:len(dst)]
	if t == Float16 {
		for i := range dst {
			dst[i] = F32ToF16(src[i])
		}
		return
	}
	for i := range dst {
		dst[i] = F32ToBF16(src[i])
	}
}
