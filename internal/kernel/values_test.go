package kernel

import (
	"encoding/binary"
	"math/rand/v2"
)

// specials are the elements, as bits, where something happens: zeros, ones, ends of the range, subnormals, infinities,
// NaNs quiet and signalling, values that round.
func specials(t Type) []uint64 {
	switch t {
	case Bool:
		return []uint64{0, 1}
	case Float16:
		return []uint64{
			0x0000, 0x8000, 0x3c00, 0xbc00, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
			0x7e00, 0xfe00, 0x7c01, 0xfc01, 0x7fff, 0x3555, 0x4248, 0x1400, 0x6800, 0xe7ff, 0x3c01,
		}
	case BFloat16:
		return []uint64{
			0x0000, 0x8000, 0x3f80, 0xbf80, 0x0001, 0x8001, 0x007f, 0x0080, 0x8080, 0x7f7f, 0xff7f, 0x7f80, 0xff80,
			0x7fc0, 0xffc0, 0x7f81, 0xff81, 0x7fff, 0x3eab, 0x4049, 0x1400, 0x6800, 0xe7ff, 0x3f81,
		}
	case Float32:
		return []uint64{
			0, 1 << 31, 0x3f800000, 0xbf800000, 1, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff,
			0xff7fffff,
			0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xffbfffff, 0x7fffffff, 0x3eaaaaab, 0x40490fdb,
			0x1f000000, 0x5f000000, 0xdf7fffff, 0x3f800001, 0x33800000, 0x00400000,
		}
	case Float64:
		return []uint64{
			0, 1 << 63, 0x3ff0000000000000, 0xbff0000000000000, 1, 1<<63 | 1, 0x000fffffffffffff, 0x0010000000000000,
			0x8010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000,
			0x7ff8000000000000, 0x7ff8000000000001, 0xfff8000000000000, 0x7ff0000000000001, 0xfff7ffffffffffff,
			0x3fd5555555555555, 0x400921fb54442d18, 0x1ff0000000000000, 0x5fe0000000000000, 0x3ff0000000000001,
			0x3ca0000000000000, 0x0008000000000000,
		}
	}
	top := uint64(1) << (8*t.Size() - 1)
	mask := top | (top - 1)
	return []uint64{0, 1, 2, 3, 7, mask, mask - 1, top, top - 1, top + 1, top | 2, mask / 3, mask / 5 * 3, 100 & mask}
}

// mixed is n elements of type t: the specials, and bits at random between them. The same for the same seed.
func mixed(t Type, n int, seed uint64) []uint64 {
	rng := rand.New(rand.NewPCG(seed, uint64(t)))
	special := specials(t)
	mask := ^uint64(0) >> (64 - 8*t.Size())
	if t == Bool {
		mask = 1
	}
	elements := make([]uint64, n)
	for i := range elements {
		if rng.IntN(3) == 0 {
			elements[i] = special[rng.IntN(len(special))]
		} else {
			elements[i] = rng.Uint64() & mask
		}
	}
	return elements
}

// load and store move one element's bits.
func load(t Type, b []byte, i int) uint64 {
	b = b[i*t.Size():]
	switch t.Size() {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.NativeEndian.Uint16(b))
	case 4:
		return uint64(binary.NativeEndian.Uint32(b))
	}
	return binary.NativeEndian.Uint64(b)
}

func store(t Type, b []byte, i int, bits uint64) {
	b = b[i*t.Size():]
	switch t.Size() {
	case 1:
		b[0] = byte(bits)
	case 2:
		binary.NativeEndian.PutUint16(b, uint16(bits))
	case 4:
		binary.NativeEndian.PutUint32(b, uint32(bits))
	default:
		binary.NativeEndian.PutUint64(b, bits)
	}
}

// pack is elements as bytes that start at a cache line.
func pack(t Type, elements []uint64) []byte {
	b := aligned(len(elements) * t.Size())
	for i, e := range elements {
		store(t, b, i, e)
	}
	return b
}
