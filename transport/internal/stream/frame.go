package stream

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"gogcl.dev/transport"
)

// frameAlign is the length of a header. Payloads are padded to multiples of it, so that a header never wraps in a ring,
// and payloads lie there as folds want them.
const frameAlign = 64

// A header, little endian:
//
//	 0       2       3       4      6         8        16     60      64
//	┌───────┬───────┬───────┬──────┬─────────┬────────┬──────┬───────┐
//	│ magic │version│ flags │ tag  │  read   │ length │ Call │ CRC32C│ of what is before it
//	└───────┴───────┴───────┴──────┴─────────┴────────┴──────┴───────┘
const (
	frameMagic   = 0x6c67
	frameVersion = 1
	crcAt        = 60

	// A trailer of 64 bytes follows the payload, which begins with the CRC32C of the payload.
	summed = 1 << 0

	// The frame is no message: it says what has been read, of a call that is zero.
	credits = 1 << 1
)

// frame is a header in memory.
type frame struct {
	tag    uint16
	read   uint16 // messages from the receiver that the sender has read on this lane, modulo 1<<16
	flags  uint8
	length uint64 // of the payload
	call   transport.Call
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// put writes a header into b, of frameAlign bytes.
func (f *frame) put(b []byte) {
	binary.LittleEndian.PutUint16(b, frameMagic)
	b[2], b[3] = frameVersion, f.flags
	binary.LittleEndian.PutUint16(b[4:], f.tag)
	binary.LittleEndian.PutUint16(b[6:], f.read)
	binary.LittleEndian.PutUint64(b[8:], f.length)
	transport.AppendCall(b[16:16], f.call)
	binary.LittleEndian.PutUint32(b[crcAt:], crc32.Checksum(b[:crcAt], castagnoli))
}

// corruptError says that what has come is not what a replica sends.
type corruptError string

func (e corruptError) Error() string { return string(e) + ": something has changed it on the way" }

const errBadSum = corruptError("the checksum of a message is wrong")

// parse reads a header from b, of at least frameAlign bytes.
func (f *frame) parse(b []byte) error {
	b = b[:frameAlign]
	switch {
	case binary.LittleEndian.Uint16(b) != frameMagic:
		return corruptError("the connection does not carry frames")
	case b[2] != frameVersion:
		return corruptError(fmt.Sprintf("a frame of version %d, want %d", b[2], frameVersion))
	case binary.LittleEndian.Uint32(b[crcAt:]) != crc32.Checksum(b[:crcAt], castagnoli):
		return corruptError("the checksum of a header is wrong")
	case b[3]&^(summed|credits) != 0:
		return corruptError(fmt.Sprintf("a frame with flags %#x, which version %d does not have", b[3], frameVersion))
	}
	g := frame{
		flags: b[3], tag: binary.LittleEndian.Uint16(b[4:]), read: binary.LittleEndian.Uint16(b[6:]),
		length: binary.LittleEndian.Uint64(b[8:]), call: transport.ParseCall(b[16:]),
	}
	if credit := (frame{flags: credits, read: g.read}); g.flags&credits != 0 && g != credit {
		return corruptError("a frame that only says what has been read has more in it")
	}
	*f = g
	return nil
}

// pad is how many bytes fill up n to a multiple of frameAlign.
func pad(n int) int { return -n & (frameAlign - 1) }
