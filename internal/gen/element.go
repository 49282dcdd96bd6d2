package main

import (
	"encoding/binary"
	"math"

	"gogcl.dev/tensor"
)

// size is the length of an element in bytes.
func size(d tensor.DType) int {
	switch d {
	case tensor.Bool, tensor.I8, tensor.U8:
		return 1
	case tensor.I16, tensor.U16, tensor.F16, tensor.BF16:
		return 2
	case tensor.I32, tensor.U32, tensor.F32:
		return 4
	}
	return 8
}

func isFloat(d tensor.DType) bool {
	return d == tensor.F16 || d == tensor.BF16 || d == tensor.F32 || d == tensor.F64
}

func signed(d tensor.DType) bool {
	return d == tensor.I8 || d == tensor.I16 || d == tensor.I32 || d == tensor.I64
}

// get reads the bits of element i.
func get(b []byte, d tensor.DType, i int) uint64 {
	switch size(d) {
	case 1:
		return uint64(b[i])
	case 2:
		return uint64(binary.NativeEndian.Uint16(b[2*i:]))
	case 4:
		return uint64(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return binary.NativeEndian.Uint64(b[8*i:])
}

// set writes the bits of element i.
func set(b []byte, d tensor.DType, i int, v uint64) {
	switch size(d) {
	case 1:
		b[i] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(b[2*i:], uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(b[4*i:], uint32(v))
	default:
		binary.NativeEndian.PutUint64(b[8*i:], v)
	}
}

// toF is the value of bits of a float type.
func toF(d tensor.DType, v uint64) float64 {
	switch d {
	case tensor.F64:
		return math.Float64frombits(v)
	case tensor.F32:
		return float64(math.Float32frombits(uint32(v)))
	case tensor.BF16:
		return float64(math.Float32frombits(uint32(v) << 16))
	}
	s, e, m := v>>15, int(v>>10&31), float64(v&1023)
	var f float64
	switch {
	case e == 31 && m != 0:
		return math.NaN()
	case e == 31:
		f = math.Inf(1)
	case e == 0:
		f = math.Ldexp(m, -24)
	default:
		f = math.Ldexp(1024+m, e-25)
	}
	if s == 1 {
		f = -f
	}
	return f
}

// fromF rounds to nearest even.
func fromF(d tensor.DType, f float64) uint64 {
	switch d {
	case tensor.F64:
		if f != f {
			return 0x7ff8000000000000
		}
		return math.Float64bits(f)
	case tensor.F32:
		if f != f {
			return 0x7fc00000
		}
		return uint64(math.Float32bits(float32(f)))
	}
	// mantissa bits, least exponent, greatest value's exponent
	p, emin, emax, shift := 11, -14, 15, uint(10)
	if d == tensor.BF16 {
		p, emin, emax, shift = 8, -126, 127, 7
	}
	neg := math.Signbit(f)
	a := math.Abs(f)
	var bits uint64
	inf := uint64(emax-emin+2) << shift
	switch {
	case f != f:
		return inf | 1<<(shift-1)
	case math.IsInf(a, 1):
		bits = inf
	case a == 0:
	default:
		_, e := math.Frexp(a) // a = m 2^e, m in [.5, 1)
		e--
		if e < emin {
			e = emin
		}
		ulp := e - (p - 1)
		q := math.RoundToEven(math.Ldexp(a, -ulp))
		if q >= math.Ldexp(1, p) {
			q /= 2
			e++
		}
		switch {
		case e > emax:
			bits = inf
		case q < math.Ldexp(1, p-1):
			bits = uint64(q) // subnormal
		default:
			bits = uint64(e-emin+1)<<shift | uint64(q)&(1<<shift-1)
		}
	}
	if neg {
		bits |= 1 << (uint(size(d))*8 - 1)
	}
	return bits
}
