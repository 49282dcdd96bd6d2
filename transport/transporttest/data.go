package transporttest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"unsafe"

	"gogcl.dev/transport"
)

// origin says whose bytes these are: what from sends to to, under the tag, in the round. A replica's own operand has
// from and to alike.
type origin struct{ from, to, tag, round int }

// fill writes bytes that depend on the origin and on their place.
func fill(buf []byte, o origin) []byte {
	x := uint64(o.from)*0x9e3779b97f4a7c15 + uint64(o.to)*0xbf58476d1ce4e5b9
	x += uint64(o.tag)*0x94d049bb133111eb + uint64(o.round)*0xd6e8feb86659fd93
	x ^= x >> 29
	for i := 0; i < len(buf); i += 8 {
		x += 0x9e3779b97f4a7c15
		word := (x ^ x>>32) * 0xd6e8feb86659fd93
		word ^= word >> 29
		if i+8 <= len(buf) {
			binary.LittleEndian.PutUint64(buf[i:], word)
			continue
		}
		for k := i; k < len(buf); k++ {
			buf[k] = byte(word)
			word >>= 8
		}
	}
	return buf
}

// made returns n bytes of the origin.
func made(n int, o origin) []byte { return fill(make([]byte, n), o) }

// scribble spoils buffers that belong to the caller again.
func scribble(bufs ...[]byte) {
	for _, b := range bufs {
		if len(b) == 0 {
			continue
		}
		b[0] = 0xdb
		for n := 1; n < len(b); n *= 2 {
			copy(b[n:], b[:n])
		}
	}
}

// scribbleBatch spoils all buffers of a batch.
func scribbleBatch(batch []transport.Transfer) {
	for i := range batch {
		scribble(batch[i].Buf, batch[i].With)
	}
}

// same returns an error when got is not what it should be.
func same(what string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d bytes, want %d", what, len(got), len(want))
	}
	wrong, first := 0, -1
	for i := range got {
		if got[i] != want[i] {
			if wrong++; first < 0 {
				first = i
			}
		}
	}
	return fmt.Errorf("%s: %d of %d bytes are wrong, the first at %d: %#x, want %#x",
		what, wrong, len(got), first, got[first], want[first])
}

// op is the fold of the suite: neither commutative nor associative.
func op(dst, a, b []byte) {
	for i := range dst {
		dst[i] = a[i]*31 + b[i] + 7
	}
}

// checkedOp is op for a receive into buf. It reports pieces that a Fold may not be given.
func checkedOp(t testing.TB, buf []byte) func(dst, a, b []byte) {
	return func(dst, a, b []byte) {
		if len(dst) != len(a) || len(dst) != len(b) {
			t.Errorf("Fold is given slices of %d, %d and %d bytes", len(dst), len(a), len(b))
			return
		}
		if len(dst) == 0 {
			t.Errorf("Fold is given an empty piece of a Buf of %d bytes", len(buf))
			return
		}
		start := uintptr(unsafe.Pointer(&dst[0])) - uintptr(unsafe.Pointer(&buf[0]))
		end := start + uintptr(len(dst))
		switch {
		case end > uintptr(len(buf)) || end < start:
			t.Errorf("Fold writes %d bytes at %d of a Buf of %d", len(dst), start, len(buf))
			return
		case start%64 != 0:
			t.Errorf("Fold is given a piece that starts at %d of %d", start, len(buf))
		case len(dst)%64 != 0 && end != uintptr(len(buf)):
			t.Errorf("Fold is given %d bytes at %d of %d", len(dst), start, len(buf))
		}
		op(dst, a, b)
	}
}

// Short forms of transfers.

func send(peer, tag int, buf []byte) transport.Transfer {
	return transport.Transfer{Peer: peer, Tag: uint32(tag), Kind: transport.Send, Buf: buf}
}

func recv(peer, tag int, buf []byte) transport.Transfer {
	return transport.Transfer{Peer: peer, Tag: uint32(tag), Kind: transport.Recv, Buf: buf}
}

func recvFold(t testing.TB, peer, tag int, buf, with []byte) transport.Transfer {
	return transport.Transfer{Peer: peer, Tag: uint32(tag), Kind: transport.RecvFold, Buf: buf, With: with,
		Fold: checkedOp(t, buf)}
}

func next(t testing.TB, peer, tag int, buf, with []byte) transport.Transfer {
	x := recvFold(t, peer, tag, buf, with)
	x.Next = true
	return x
}
