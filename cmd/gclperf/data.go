package main

import (
	"encoding/binary"
	"math"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// period is after how many elements the values of a replica repeat. A prime: whole blocks in a wrong place show, as
// their lengths are not its multiples.
const period = 4093

// pattern is what the replicas hold at the start, and what they must hold in the end. Blocks of period elements stand
// for buffers of any length: element i of a buffer is element i mod period of its block.
type pattern struct {
	dtype  tensor.DType
	inputs [][]byte // by replica
	folded []byte   // of an all-reduce
}

// newPattern makes the values for n replicas. Every partial result of op is exact in the element type, so that the
// order in which replicas are combined does not matter. A collective that does not reduce has operator gcl.Local.
func newPattern(dtype tensor.DType, op gcl.Operator, n int) *pattern {
	p := &pattern{dtype: dtype}
	v := values{dtype: dtype, op: op, n: n}
	if n == 1 { // a group of one copies
		v.op = gcl.Local
	}
	size := dtype.Size()
	p.inputs = make([][]byte, n)
	for r := range p.inputs {
		p.inputs[r] = make([]byte, period*size)
		for i := range period {
			v.encode(p.inputs[r][i*size:], float64(v.of(r, i)), v.of(r, i))
		}
	}
	if !v.op.Combines() {
		return p
	}
	p.folded = make([]byte, period*size)
	for i := range period {
		sum := v.fold(i)
		quotient := float64(sum)
		if op.Divides() {
			quotient = v.divide(sum, n)
		}
		v.encode(p.folded[i*size:], quotient, sum)
	}
	return p
}

// result is the block that replica r must hold after a reduction.
func (p *pattern) result(r int) []byte {
	if p.folded == nil {
		return p.inputs[r]
	}
	return p.folded
}

// values says which values replicas hold, as integers.
type values struct {
	dtype tensor.DType
	op    gcl.Operator
	n     int
}

// of is the value of replica r at index i.
func (v values) of(r, i int) int64 {
	h := mix(uint64(r)<<32 | uint64(i))
	switch {
	case v.dtype == tensor.Bool:
		return v.boolean(h, r, i)
	case rules[v.op].factors:
		return v.factor(r, i)
	case v.dtype.IsFloat():
		return v.float(h, r, i)
	}
	return v.wrap(int64(h))
}

// boolean is 0 or 1. The result of a reduction hangs on one replica at every other index.
func (v values) boolean(h uint64, r, i int) int64 {
	at := mix(uint64(i))
	rule, reduces := rules[v.op]
	switch lone := at&1 == 0 && r == int(at>>1%uint64(v.n)); {
	case !reduces:
		return int64(h & 1)
	case lone:
		return 1 - rule.neutral
	}
	return rule.neutral
}

// factor is 1, but at two or three replicas for each index: the product of all is -122 to 122.
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

// float is such that the values of all replicas, or their squares, have a sum that the type holds exactly. With more
// replicas than it can count to, most of them are zero.
func (v values) float(h uint64, r, i int) int64 {
	exact := int64(1) << 24
	switch v.dtype {
	case tensor.F16:
		exact = 1 << 11
	case tensor.BF16:
		exact = 1 << 8
	}
	top := exact / int64(v.n)
	switch {
	case v.op.Squares():
		top = int64(math.Sqrt(float64(top)))
	case !rules[v.op].grows:
		top = exact
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

// wrap brings an integer into the range of the type, as the type itself does. 64-bit unsigned ones keep to the lower
// half, for the sake of int64.
func (v values) wrap(x int64) int64 {
	switch v.dtype {
	case tensor.I8:
		return int64(int8(x))
	case tensor.I16:
		return int64(int16(x))
	case tensor.I32:
		return int64(int32(x))
	case tensor.U8:
		return int64(uint8(x))
	case tensor.U16:
		return int64(uint16(x))
	case tensor.U32:
		return int64(uint32(x))
	case tensor.U64:
		return int64(uint64(x) >> 1)
	}
	return x
}

// fold is the reduction of all replicas' values at index i. Integers wrap at 64 bits, and the type cuts off the rest.
func (v values) fold(i int) int64 {
	fold := rules[v.op].of
	acc := v.input(0, i)
	for r := 1; r < v.n; r++ {
		acc = fold(acc, v.input(r, i))
	}
	return acc
}

// input is what replica r contributes to the reduction at index i.
func (v values) input(r, i int) int64 {
	x := v.of(r, i)
	if v.op.Squares() {
		x *= x
	}
	return x
}

// rule is what an operator that combines does with integers, and what values it needs.
type rule struct {
	of      func(a, b int64) int64
	grows   bool  // the result of many replicas may be larger than any of them has
	factors bool  // most values must be 1, for the result not to grow out of the type
	neutral int64 // of an operator of bool: what changes nothing
}

// rules are those of the operators, written down a second time.
var rules = map[gcl.Operator]rule{
	gcl.Add:        {of: sum, grows: true},
	gcl.Mean:       {of: sum, grows: true},
	gcl.SquareAdd:  {of: sum, grows: true},
	gcl.Mul:        {of: func(a, b int64) int64 { return a * b }, grows: true, factors: true},
	gcl.Min:        {of: least},
	gcl.Max:        {of: greatest},
	gcl.LogicalAnd: {of: least, neutral: 1},
	gcl.LogicalOr:  {of: greatest, neutral: 0},
}

func sum(a, b int64) int64      { return a + b }
func least(a, b int64) int64    { return min(a, b) }
func greatest(a, b int64) int64 { return max(a, b) }

// divide is the one division of a Mean: in float32 for the types that are calculated with in it.
func (v values) divide(sum int64, n int) float64 {
	if v.dtype == tensor.F64 {
		return float64(sum) / float64(n)
	}
	return float64(float32(sum) / float32(n))
}

// encode puts a value at the start of dst: x of a float, k of the others.
func (v values) encode(dst []byte, x float64, k int64) {
	switch v.dtype {
	case tensor.F16:
		binary.NativeEndian.PutUint16(dst, uint16(tensor.Float16FromFloat32(float32(x))))
	case tensor.BF16:
		binary.NativeEndian.PutUint16(dst, uint16(tensor.BFloat16FromFloat32(float32(x))))
	case tensor.F32:
		binary.NativeEndian.PutUint32(dst, math.Float32bits(float32(x)))
	case tensor.F64:
		binary.NativeEndian.PutUint64(dst, math.Float64bits(x))
	default:
		switch v.dtype.Size() {
		case 1:
			dst[0] = byte(k)
		case 2:
			binary.NativeEndian.PutUint16(dst, uint16(k))
		case 4:
			binary.NativeEndian.PutUint32(dst, uint32(k))
		default:
			binary.NativeEndian.PutUint64(dst, uint64(k))
		}
	}
}

// mix makes of a number one that looks random: the finalizer of splitmix64, http://xoshiro.di.unimi.it/splitmix64.c.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
