package kernel

import "encoding/binary"

// NotFinite is the first element of data, elements of type t, that is NaN or infinite, or -1. Only floats can be.
func NotFinite(t Type, data []byte) int {
	// An element is not finite if all bits of its exponent are set. One that is added to the lowest of them then
	// carries into the sign, which the mask has cleared; and an element's carry goes no further.
	var exponent, lowest uint64
	switch t {
	case Float16:
		exponent, lowest = 0x7c007c007c007c00, 0x0400040004000400
	case BFloat16:
		exponent, lowest = 0x7f807f807f807f80, 0x0080008000800080
	case Float32:
		exponent, lowest = 0x7f8000007f800000, 0x0080000000800000
	case Float64:
		exponent, lowest = 0x7ff0000000000000, 0x0010000000000000
	default:
		return -1
	}
	signs := exponent + lowest
	bad := func(word []byte) bool { return (binary.NativeEndian.Uint64(word)&exponent+lowest)&signs != 0 }
	at := 0
	for ; at+64 <= len(data); at += 64 {
		b := data[at : at+64 : at+64]
		e := binary.NativeEndian
		low := (e.Uint64(b[0:])&exponent + lowest) | (e.Uint64(b[8:])&exponent + lowest) |
			(e.Uint64(b[16:])&exponent + lowest) | (e.Uint64(b[24:])&exponent + lowest)
		high := (e.Uint64(b[32:])&exponent + lowest) | (e.Uint64(b[40:])&exponent + lowest) |
			(e.Uint64(b[48:])&exponent + lowest) | (e.Uint64(b[56:])&exponent + lowest)
		if (low|high)&signs != 0 {
			break
		}
	}
	size := t.Size()
	for ; at < len(data); at += size {
		var word [8]byte
		copy(word[:], data[at:at+size])
		if bad(word[:]) {
			return at / size
		}
	}
	return -1
}
