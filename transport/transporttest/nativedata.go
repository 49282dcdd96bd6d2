package transporttest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// The data of collectives of an engine, and a second implementation of them: it has the inputs of all members, and
// folds an element at a time, in rank order.

// nativeInput is what a member has. Every partial result is exact.
func nativeInput(c transport.NativeCollective, rank, salt int) []byte {
	_, n := c.Lengths(rank)
	buf := made(n, origin{rank, c.Root, int(c.Collective), salt})
	if !c.Collective.Contract().Combines {
		return buf
	}
	each := c.DType.Size()
	for i := 0; i+each <= n; i += each {
		h := int(buf[i]) + int(buf[i+each-1])<<8
		switch c.DType {
		case tensor.Bool:
			buf[i] &= 1
		case tensor.F32, tensor.F64:
			v := float64(h%31 - 15)
			if c.Operator == transport.NativeMul {
				v = []float64{1, 2, -1, 0.5, -2, 1}[h%6]
			}
			putFloat(c.DType, buf[i:], v)
		}
	}
	return buf
}

func putFloat(e tensor.DType, b []byte, v float64) {
	if e == tensor.F32 {
		binary.NativeEndian.PutUint32(b, math.Float32bits(float32(v)))
		return
	}
	binary.NativeEndian.PutUint64(b, math.Float64bits(v))
}

func float(e tensor.DType, b []byte) float64 {
	if e == tensor.F32 {
		return float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.NativeEndian.Uint64(b))
}

// integer reads an integer. A signed one is extended.
func integer(e tensor.DType, b []byte) uint64 {
	signed := e.IsSigned()
	switch e.Size() {
	case 1:
		if signed {
			return uint64(int8(b[0]))
		}
		return uint64(b[0])
	case 2:
		v := binary.NativeEndian.Uint16(b)
		if signed {
			return uint64(int16(v))
		}
		return uint64(v)
	case 4:
		v := binary.NativeEndian.Uint32(b)
		if signed {
			return uint64(int32(v))
		}
		return uint64(v)
	}
	return binary.NativeEndian.Uint64(b)
}

func putInteger(e tensor.DType, b []byte, v uint64) {
	switch e.Size() {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(b, uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(b, uint32(v))
	default:
		binary.NativeEndian.PutUint64(b, v)
	}
}

// foldNative combines b into a.
func foldNative(c transport.NativeCollective, a, b []byte) {
	each := c.DType.Size()
	for i := 0; i < len(a); i += each {
		x, y := a[i:i+each], b[i:i+each]
		switch c.DType {
		case tensor.F32, tensor.F64:
			putFloat(c.DType, x, combined(c.Operator, float(c.DType, x), float(c.DType, y)))
		case tensor.I8, tensor.I16, tensor.I32, tensor.I64:
			v := combined(c.Operator, int64(integer(c.DType, x)), int64(integer(c.DType, y)))
			putInteger(c.DType, x, uint64(v))
		default: // a bool is 0 or 1
			putInteger(c.DType, x, combined(c.Operator, integer(c.DType, x), integer(c.DType, y)))
		}
	}
}

func combined[T int64 | uint64 | float64](o transport.NativeOperator, a, b T) T {
	switch o {
	case transport.NativeAdd:
		return a + b
	case transport.NativeMul, transport.NativeAnd:
		return a * b
	case transport.NativeMin:
		return min(a, b)
	}
	return max(a, b) // NativeMax and NativeOr
}

// nativeResult is the dst of a member after the call, from the inputs by rank.
func nativeResult(c transport.NativeCollective, rank int, in [][]byte) []byte {
	n, _ := c.Lengths(rank)
	if n == 0 {
		return nil
	}
	one := c.Bytes / c.Size
	if c.Collective.Contract().Combines {
		sum := slices.Clone(in[0])
		for _, b := range in[1:] {
			foldNative(c, sum, b)
		}
		if c.Collective == schedule.ReduceScatter {
			sum = sum[rank*one:][:one]
		}
		return sum
	}
	switch c.Collective {
	case schedule.Broadcast:
		return in[c.Root]
	case schedule.Scatter:
		return in[c.Root][rank*one:][:one]
	case schedule.AllToAll:
		var out []byte
		for _, b := range in {
			out = append(out, b[rank*one:][:one]...)
		}
		return out
	}
	return slices.Concat(in...) // gathers
}

// aliasing is how dst and src of a call lie.
type aliasing int

const (
	apart     aliasing = iota
	inPlace            // in the same memory, or one in its place in the other, where that is allowed
	evenRanks          // inPlace at even ranks, apart at odd ones
	aliasings
)

// placed returns the buffers of a member, with its input in src. Each lies in memory of its own between guards, but for
// aliasing. whole is all that memory.
func placed(c transport.NativeCollective, rank int, in []byte, a aliasing) (dst, src []byte, whole [][]byte) {
	nd, ns := c.Lengths(rank)
	memory := func(n int) []byte {
		b := made(guard+n+guard, origin{9, 9, 9, 9})
		whole = append(whole, b)
		return b[guard : guard+n : guard+n]
	}
	together := (a == inPlace || a == evenRanks && rank%2 == 0) && nd > 0 && ns > 0
	one := min(nd, ns)
	switch {
	case together && nd == ns:
		dst = memory(nd)
		src = dst
	case together && !c.Collective.Contract().Combines && nd > ns:
		dst = memory(nd)
		src = dst[rank*one:][:one:one]
	case together && !c.Collective.Contract().Combines:
		src = memory(ns)
		dst = src[rank*one:][:one:one]
	default:
		dst, src = memory(nd), memory(ns)
	}
	copy(src, in)
	return dst, src, whole
}

// guard is how many bytes around a buffer must stay as they are. Elements are aligned behind it.
const guard = 64 + 8

// guarded checks the bytes around buffers.
func guarded(whole [][]byte) error {
	for _, b := range whole {
		want := made(len(b), origin{9, 9, 9, 9})
		for _, part := range [][2]int{{0, guard}, {len(b) - guard, len(b)}} {
			if err := same("bytes around a buffer", b[part[0]:part[1]], want[part[0]:part[1]]); err != nil {
				return err
			}
		}
	}
	return nil
}

// inputs are what all members have.
func nativeInputs(c transport.NativeCollective, salt int) [][]byte {
	in := make([][]byte, c.Size)
	for rank := range in {
		in[rank] = nativeInput(c, rank, salt)
	}
	return in
}

// collective carries out a call on an endpoint and checks the result, what lies around the buffers, and that src is as
// it was where it lies apart. It overwrites the buffers whatever becomes of the call.
func collective(e transport.Native, call transport.Call, members []int, c transport.NativeCollective, a aliasing,
	salt int) error {
	rank := slices.Index(members, e.Rank())
	in := nativeInputs(c, salt)
	dst, src, whole := placed(c, rank, in[rank], a)
	defer scribble(whole...)
	describe := func(err error) error {
		return fmt.Errorf("%v of %d bytes, root %d, among %v, aliasing %d: %w", c, c.Bytes, c.Root, members, a, err)
	}
	if err := e.Collective(background, call, members, c, dst, src); err != nil {
		return describe(err)
	}
	if err := same("result", dst, nativeResult(c, rank, in)); err != nil {
		return describe(err)
	}
	if len(whole) > 1 {
		if err := same("src after the call", src, in[rank]); err != nil {
			return describe(err)
		}
	}
	if err := guarded(whole); err != nil {
		return describe(err)
	}
	return nil
}
