package oracle

import (
	"math"

	"gogcl.dev/tensor"
)

// Inputs makes the data of n ranks for a reduction by an operator, with Local for anything. Neighbours and ranks
// differ. Every partial result in any order is exact, so that all methods have the same bits.
func Inputs[T tensor.Element](op Operator, n, elements int) [][]T {
	v, of := values{tensor.DTypeOf[T](), op.rule(), n}, converter[T]()
	out := make([][]T, n)
	for r := range out {
		out[r] = make([]T, elements)
		for i := range out[r] {
			out[r][i] = of(v.of(r, i))
		}
	}
	return out
}

// converter makes elements of integers, which wrap. A bool is whether the integer is not 0.
func converter[T tensor.Element]() func(int64) T {
	var of any
	switch tensor.DTypeOf[T]() {
	case tensor.Bool:
		of = func(v int64) bool { return v != 0 }
	case tensor.I8:
		of = func(v int64) int8 { return int8(v) }
	case tensor.I16:
		of = func(v int64) int16 { return int16(v) }
	case tensor.I32:
		of = func(v int64) int32 { return int32(v) }
	case tensor.I64:
		of = func(v int64) int64 { return v }
	case tensor.U8:
		of = func(v int64) uint8 { return uint8(v) }
	case tensor.U16:
		of = func(v int64) uint16 { return uint16(v) }
	case tensor.U32:
		of = func(v int64) uint32 { return uint32(v) }
	case tensor.U64:
		of = func(v int64) uint64 { return uint64(v) }
	case tensor.F16:
		of = func(v int64) tensor.Float16 { return tensor.Float16FromFloat32(float32(v)) }
	case tensor.BF16:
		of = func(v int64) tensor.BFloat16 { return tensor.BFloat16FromFloat32(float32(v)) }
	case tensor.F32:
		of = func(v int64) float32 { return float32(v) }
	case tensor.F64:
		of = func(v int64) float64 { return float64(v) }
	}
	return of.(func(int64) T)
}

// values says which values ranks hold, as integers.
type values struct {
	dtype tensor.DType
	rule  rule
	n     int
}

// of is the value of rank r at index i.
func (v values) of(r, i int) int64 {
	h := mix(uint64(r)<<32 | uint64(i))
	switch {
	case v.dtype == tensor.Bool:
		return v.boolean(h, r, i)
	case v.rule.factors:
		return v.factor(r, i)
	case v.dtype.IsFloat():
		return v.float(h, r, i)
	}
	return int64(h)
}

// boolean is 0 or 1. The result of a reduction hangs on one rank at every other index.
func (v values) boolean(h uint64, r, i int) int64 {
	at := mix(uint64(i))
	lone := at&1 == 0 && r == int(at>>1%uint64(v.n))
	switch v.rule.combine {
	case least: // all are true but one
		return truth(!lone)
	case greatest:
		return truth(lone)
	}
	return int64(h & 1)
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// factor is 1, but at two or three ranks for each index: the product of all is -122 to 122.
func (v values) factor(r, i int) int64 {
	switch (r + i) % v.n {
	case 0:
		return 1 + int64(mix(uint64(i))%61)
	case 1:
		return 2
	case 2:
		if v.dtype.IsSigned() {
			return -1
		}
	}
	return 1
}

// float is such that the values of all ranks, or their squares, have a sum that the type holds exactly. With more ranks
// than it can count to, most of them are zero.
func (v values) float(h uint64, r, i int) int64 {
	exact := int64(1) << 24
	switch v.dtype {
	case tensor.F16:
		exact = 1 << 11
	case tensor.BF16:
		exact = 1 << 8
	}
	top := exact
	if v.rule.grows {
		top /= int64(v.n)
	}
	if v.rule.squares {
		top = int64(math.Sqrt(float64(top)))
	}
	if top == 0 {
		every := int64(v.n)/exact + 1
		if int64(r+i)%every != 0 {
			return 0
		}
		top = 1
	}
	return int64(h%uint64(2*top+1)) - top
}

// mix makes of a number one that looks random: the finalizer of splitmix64, http://xoshiro.di.unimi.it/splitmix64.c.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
