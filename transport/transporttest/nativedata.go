package transporttest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"gogcl.dev/transport"
)

// The data of collectives of an engine, and a second implementation of them: it has the inputs of all members, and
// folds an element at a time, in rank order.

// nativeInput is what a member has: its src, or the dst of a broadcast's root. Every partial result is exact.
func nativeInput(c transport.NativeCollective, rank, salt int) []byte {
	_, n := c.Lengths(rank)
	if c.Kind == transport.NativeBroadcast && rank == c.Root {
		n = c.Bytes
	}
	buf := made(n, origin{rank, c.Root, int(c.Kind), salt})
	if !c.Kind.Reduces() {
		return buf
	}
	each := c.Element.Size()
	for i := 0; i+each <= n; i += each {
		h := int(buf[i]) + int(buf[i+each-1])<<8
		switch c.Element {
		case transport.NativeBool:
			buf[i] &= 1
		case transport.NativeFloat32, transport.NativeFloat64:
			v := float64(h%31 - 15)
			if c.Operator == transport.NativeProduct {
				v = []float64{1, 2, -1, 0.5, -2, 1}[h%6]
			}
			putFloat(c.Element, buf[i:], v)
		}
	}
	return buf
}

func putFloat(e transport.NativeElement, b []byte, v float64) {
	if e == transport.NativeFloat32 {
		binary.NativeEndian.PutUint32(b, math.Float32bits(float32(v)))
		return
	}
	binary.NativeEndian.PutUint64(b, math.Float64bits(v))
}

func float(e transport.NativeElement, b []byte) float64 {
	if e == transport.NativeFloat32 {
		return float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.NativeEndian.Uint64(b))
}

// integer reads an integer. A signed one is extended.
func integer(e transport.NativeElement, b []byte) uint64 {
	signed := e >= transport.NativeInt8 && e <= transport.NativeInt64
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

func putInteger(e transport.NativeElement, b []byte, v uint64) {
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
	each := c.Element.Size()
	for i := 0; i < len(a); i += each {
		x, y := a[i:i+each], b[i:i+each]
		switch c.Element {
		case transport.NativeFloat32, transport.NativeFloat64:
			putFloat(c.Element, x, combined(c.Operator, float(c.Element, x), float(c.Element, y)))
		case transport.NativeInt8, transport.NativeInt16, transport.NativeInt32, transport.NativeInt64:
			v := combined(c.Operator, int64(integer(c.Element, x)), int64(integer(c.Element, y)))
			putInteger(c.Element, x, uint64(v))
		default: // a bool is 0 or 1
			putInteger(c.Element, x, combined(c.Operator, integer(c.Element, x), integer(c.Element, y)))
		}
	}
}

func combined[T int64 | uint64 | float64](o transport.NativeOperator, a, b T) T {
	switch o {
	case transport.NativeSum:
		return a + b
	case transport.NativeProduct, transport.NativeAnd:
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
	if c.Kind.Reduces() {
		sum := slices.Clone(in[0])
		for _, b := range in[1:] {
			foldNative(c, sum, b)
		}
		if c.Kind == transport.NativeReduceScatter {
			sum = sum[rank*one:][:one]
		}
		return sum
	}
	switch c.Kind {
	case transport.NativeBroadcast:
		return in[c.Root]
	case transport.NativeScatter:
		return in[c.Root][rank*one:][:one]
	case transport.NativeAllToAll:
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

// placed returns the buffers of a member, with its input in src, or in the dst of a broadcast's root. Each lies in
// memory of its own between guards, but for aliasing. whole is all that memory.
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
	case together && !c.Kind.Reduces() && nd > ns:
		dst = memory(nd)
		src = dst[rank*one:][:one:one]
	case together && !c.Kind.Reduces():
		src = memory(ns)
		dst = src[rank*one:][:one:one]
	default:
		dst, src = memory(nd), memory(ns)
	}
	if c.Kind == transport.NativeBroadcast {
		copy(dst, in)
	} else {
		copy(src, in)
	}
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
	if c.Kind != transport.NativeBroadcast && len(whole) > 1 {
		if err := same("src after the call", src, in[rank]); err != nil {
			return describe(err)
		}
	}
	if err := guarded(whole); err != nil {
		return describe(err)
	}
	return nil
}
