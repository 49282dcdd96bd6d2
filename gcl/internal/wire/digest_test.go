package wire_test

import (
	"crypto/sha256"
	"fmt"
	"hash/crc64"
	"testing"

	"gogcl.dev/gcl/internal/wire"
)

// TestDigest: known values, which reach every part of the loop, and another seed.
func TestDigest(t *testing.T) {
	for text, want := range map[string]uint64{
		"": 0xef46db3751d8e999, "a": 0xd24ec4f1a98c6e5b, "asd": 0x631c37ce72a97393, "asdf": 0x415872f599cea71e,
		"Call me Ishmael. Some years ago--never mind how long precisely-": 0x02a2e85470d6fd96,
	} {
		if got := wire.Digest(0, []byte(text)); got != want {
			t.Errorf("%q: %#x, want %#x", text, got, want)
		}
		if wire.Digest(1, []byte(text)) == want {
			t.Errorf("%q: the seed changes nothing", text)
		}
	}
}

// BenchmarkDigest compares it with hashes of the standard library.
func BenchmarkDigest(b *testing.B) {
	data, table := make([]byte, 1<<20), crc64.MakeTable(crc64.ECMA)
	for name, hash := range map[string]func(b []byte) uint64{
		"Digest": func(b []byte) uint64 { return wire.Digest(0, b) },
		"crc64":  func(b []byte) uint64 { return crc64.Checksum(b, table) },
		"sha256": func(b []byte) uint64 { sum := sha256.Sum256(b); return uint64(sum[0]) },
	} {
		for _, n := range []int{8, 4 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("hash=%s/size=%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				var all uint64
				for b.Loop() {
					all += hash(data[:n])
				}
				_ = all
			})
		}
	}
}
