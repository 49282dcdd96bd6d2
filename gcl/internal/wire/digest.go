package wire

import (
	"encoding/binary"
	"math/bits"
)

// The primes of XXH64.
const (
	prime1 uint64 = 0x9e3779b185ebca87
	prime2 uint64 = 0xc2b2ae3d27d4eb4f
	prime3 uint64 = 0x165667b19e3779f9
	prime4 uint64 = 0x85ebca77c2b2ae63
	prime5 uint64 = 0x27d4eb2f165667c5
)

// Digest is the hash XXH64 of bytes, given its seed, which may be another digest:
// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md. It is several times as fast as hash/crc64 and SHA-256
// (BenchmarkDigest).
func Digest(seed uint64, b []byte) uint64 {
	e, n := binary.LittleEndian, uint64(len(b))
	hash := seed + prime5
	if n >= 32 {
		v1, v2, v3, v4 := seed+prime1+prime2, seed+prime2, seed, seed-prime1
		for ; len(b) >= 32; b = b[32:] {
			v1, v2 = round(v1, e.Uint64(b)), round(v2, e.Uint64(b[8:16]))
			v3, v4 = round(v3, e.Uint64(b[16:24])), round(v4, e.Uint64(b[24:32]))
		}
		hash = bits.RotateLeft64(v1, 1) + bits.RotateLeft64(v2, 7) + bits.RotateLeft64(v3, 12) +
			bits.RotateLeft64(v4, 18)
		for _, v := range [...]uint64{v1, v2, v3, v4} {
			hash = (hash^round(0, v))*prime1 + prime4
		}
	}
	hash += n
	for ; len(b) >= 8; b = b[8:] {
		hash = bits.RotateLeft64(hash^round(0, e.Uint64(b)), 27)*prime1 + prime4
	}
	if len(b) >= 4 {
		hash = bits.RotateLeft64(hash^uint64(e.Uint32(b))*prime1, 23)*prime2 + prime3
		b = b[4:]
	}
	for _, c := range b {
		hash = bits.RotateLeft64(hash^uint64(c)*prime5, 11) * prime1
	}
	hash = (hash ^ hash>>33) * prime2
	hash = (hash ^ hash>>29) * prime3
	return hash ^ hash>>32
}

// round adds a word to a lane of XXH64.
func round(lane, word uint64) uint64 { return bits.RotateLeft64(lane+word*prime2, 31) * prime1 }
