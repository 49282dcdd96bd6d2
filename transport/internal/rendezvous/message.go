package rendezvous

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"gogcl.dev/transport/internal/handshake"
)

// tag is the kind of a message on a connection: its first byte. Four bytes of length follow.
type tag uint8

const (
	tagHere   tag = iota + 1 // r to 0: here
	tagTable                 // 0 to r: table
	tagGot                   // r to 0: empty
	tagBegin                 // 0 to r: empty
	tagFailed                // both ways: an Error
)

// maxSelf bounds the text of where a replica is.
const maxSelf = 255

// maxLeft bounds the time that a replica has left: 104 days, in nanoseconds.
const maxLeft = 1 << 53

// maxHere is the longest here.
const maxHere = 4 + 8 + 1 + maxSelf + MaxBlob

// maxTable is the longest table of a job.
func maxTable(size int) int { return 4 + size*(4+MaxBlob) }

// malformedError says that an authenticated replica has sent bytes that are no message.
type malformedError struct {
	what string
}

func (e *malformedError) Error() string { return "malformed: " + e.what }

func errMalformed(what string) error { return &malformedError{what} }

// appendMessage appends a message.
func appendMessage(b []byte, t tag, body []byte) []byte {
	return append(appendUint32(append(b, byte(t)), len(body)), body...)
}

// readMessage reads a message whose body is bounded by limit(tag), negative for one that may not come. The buffer grows
// with what arrives, not by the length that was sent.
func readMessage(r io.Reader, limit func(tag) int) (tag, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	t, length := tag(head[0]), int64(binary.BigEndian.Uint32(head[1:]))
	if most := limit(t); length > int64(most) {
		return 0, nil, errMalformed(fmt.Sprintf("message %d of %d bytes, at most %d", t, length, most))
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, length); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return t, body.Bytes(), nil
}

// limitAtHost bounds what replica 0 reads.
func limitAtHost(t tag) int {
	switch t {
	case tagHere:
		return maxHere
	case tagGot:
		return 0
	case tagFailed:
		return maxError
	}
	return -1
}

// limitAtVisitor bounds what the others read.
func limitAtVisitor(size int) func(tag) int {
	return func(t tag) int {
		switch t {
		case tagTable:
			return maxTable(size)
		case tagBegin:
			return 0
		case tagFailed:
			return maxError
		}
		return -1
	}
}

// here is what a replica says of itself.
type here struct {
	size int           // of the job, as the replica believes
	left time.Duration // until its deadline; 0: none
	self string        // where it is
	blob []byte
}

func appendHere(b []byte, h here) []byte {
	b = appendUint32(b, h.size)
	b = binary.BigEndian.AppendUint64(b, uint64(h.left))
	b = append(b, byte(len(h.self)))
	b = append(b, h.self...)
	return append(b, h.blob...)
}

func parseHere(b []byte) (here, error) {
	f := fields{b}
	var h here
	h.size = f.length(MaxSize)
	h.left = time.Duration(min(f.uint64(), maxLeft))
	h.self = handshake.Bounded(string(f.bytes(int(f.uint8()))), maxSelf)
	h.blob = f.rest()
	if f.short() || len(h.blob) > MaxBlob {
		return here{}, errMalformed("what a replica says of itself")
	}
	return h, nil
}

// appendTable appends the blobs of all ranks.
func appendTable(b []byte, blobs [][]byte) []byte {
	b = appendUint32(b, len(blobs))
	for _, blob := range blobs {
		b = append(appendUint32(b, len(blob)), blob...)
	}
	return b
}

func parseTable(b []byte, size int) ([][]byte, error) {
	f := fields{b}
	if f.length(MaxSize) != size {
		return nil, errMalformed("a table of another size")
	}
	blobs := make([][]byte, size)
	for r := range blobs {
		blobs[r] = f.bytes(f.length(MaxBlob))
	}
	if len(f.rest()) > 0 || f.short() {
		return nil, errMalformed("a table")
	}
	return blobs, nil
}

func appendUint32(b []byte, v int) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// fields takes a message apart. Once it has been asked for more than there is, or has met a length beyond its limit, it
// is short, and all further fields are zero.
type fields struct {
	left []byte // nil: short
}

func (f *fields) short() bool { return f.left == nil }

// bytes returns the next n bytes, which belong to the message.
func (f *fields) bytes(n int) []byte {
	if f.left == nil || n > len(f.left) {
		f.left = nil
		return nil
	}
	b := f.left[:n:n]
	f.left = f.left[n:]
	return b
}

func (f *fields) rest() []byte { return f.bytes(len(f.left)) }

func (f *fields) uint8() uint8 {
	if b := f.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) uint64() uint64 {
	if b := f.bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// length is a number of 32 bits up to a limit.
func (f *fields) length(limit int) int {
	b := f.bytes(4)
	if b == nil {
		return 0
	}
	v := binary.BigEndian.Uint32(b)
	if uint64(v) > uint64(limit) {
		f.left = nil
		return 0
	}
	return int(v)
}
