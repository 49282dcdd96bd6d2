package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// The layout of a segment, in bytes.
const (
	pageBytes  = 4096
	headerUsed = 48 // of the page that begins a segment

	entryBytes     = 16
	entries        = 1 << 15
	directoryAt    = pageBytes
	directoryBytes = entries * entryBytes

	blocksAt = 1 << 20

	hugeBytes = 2 << 20 // a huge page
)

// window is in how many entries, one after the other, a key may be. The first one follows from the key. So an entry can
// be taken back without a trace, and who looks for a key that is not there looks at so many entries at most.
const window = 128

// abortedAt is where the header has a word that whoever aborts the job sets: see Segment.Aborted. It has a line of the
// cache of its own.
const abortedAt = 1024

// magic and version begin a segment. They are of this machine's byte order, as all words of a segment.
const (
	magic   = 0x74_6e_65_6d_67_65_73_67 // "gsegment"
	version = 2
)

// Form is how long a segment and its rings are. All processes of a job have the same.
type Form struct {
	Bytes int64 // of a segment: whole pages, at least MinBytes
	Ring  int   // bytes that a ring holds: a power of two, at least a page
	Pages int64 // bytes at the end of a segment that are for OpenPages: whole huge pages of it, 0 for none
}

// MinBytes is the length of the shortest segment.
const MinBytes = 2 * blocksAt

// DefaultForm is the form of segments of a job of processes: 64 GiB, of which 56 are for OpenPages. Where addresses
// have 32 bits it is 64 MiB, and none for OpenPages. A process maps one for each of the job. Rings of 128 and of 512
// KiB were no faster between two, and of 512 KiB slower among four on two cores, where all rings together leave the
// cache (AMD EPYC, 2026-11-27, medians of five rounds).
var DefaultForm = Form{
	Bytes: 1 << (26 + 10*(bits.UintSize/64)),
	Ring:  256 << 10,
	Pages: 56 << 30 * (bits.UintSize / 64),
}

// Within returns the form for segments of at most bytes, but not of less than MinBytes: f if it fits, else one in which
// at most half is for OpenPages.
func (f Form) Within(bytes int64) Form {
	if f.Bytes <= bytes {
		return f
	}
	f.Bytes = min(f.Bytes, max(bytes, MinBytes)/hugeBytes*hugeBytes)
	f.Pages = min(f.Pages, f.Bytes/2/hugeBytes*hugeBytes)
	return f
}

// blockBytes is how much of a segment is not for OpenPages.
func (f Form) blockBytes() int64 { return f.Bytes - f.Pages }

// check says what is wrong with a Form.
func (f Form) check() error {
	switch {
	case f.Bytes < MinBytes || f.Bytes%pageBytes != 0 || int64(int(f.Bytes)) != f.Bytes:
		return fmt.Errorf("a segment of %d bytes, want whole pages of %d, at least %d bytes", f.Bytes, pageBytes, MinBytes)
	case f.Pages < 0 || f.Pages > f.Bytes-MinBytes || f.Pages%hugeBytes != 0 || f.Pages > 0 && f.Bytes%hugeBytes != 0:
		return fmt.Errorf("%d bytes of pages in a segment of %d, want multiples of %d, and %d that are not for pages",
			f.Pages, f.Bytes, hugeBytes, MinBytes)
	case f.Ring < pageBytes || f.Ring&(f.Ring-1) != 0 || int64(f.Ring) > f.blockBytes()-blocksAt-ringAt:
		return fmt.Errorf("rings of %d bytes in a segment of %d, want a power of two, at least %d, that fits",
			f.Ring, f.blockBytes(), pageBytes)
	}
	return nil
}

// putHeader writes the header of the segment of a rank.
func putHeader(b []byte, rank int, form Form) {
	for i, word := range [headerUsed / 8]uint64{
		magic, version, uint64(rank), uint64(form.Bytes), uint64(form.Ring), uint64(form.Pages),
	} {
		binary.NativeEndian.PutUint64(b[8*i:], word)
	}
}

// checkHeader says why bytes are not the header of the segment of a rank.
func checkHeader(b []byte, rank int, form Form) error {
	if len(b) < headerUsed {
		return fmt.Errorf("its header has %d bytes, want %d", len(b), headerUsed)
	}
	for i, word := range [headerUsed / 8]struct {
		name string
		want uint64
	}{
		{"magic number", magic}, {"version", version}, {"rank", uint64(rank)},
		{"length", uint64(form.Bytes)}, {"ring length", uint64(form.Ring)},
		{"length of pages", uint64(form.Pages)},
	} {
		if got := binary.NativeEndian.Uint64(b[8*i:]); got != word.want {
			return fmt.Errorf("its header has %s %d, want %d", word.name, got, word.want)
		}
	}
	return nil
}

// blockKey names a block of a segment. It is not 0.
type blockKey uint64

// The kinds of blocks.
const (
	laneKind = iota + 1 // the word of a lane: see Segment.Lane
	ringKind            // a ring, to one peer on one lane
	seatKind            // what a member of a group shares with the others, on one lane
)

// keyOf is the key of the block of a kind on a lane, for a peer, a group or nobody (0): a mixture by the finalizer of
// MurmurHash3.
func keyOf(kind, lane, which uint64) blockKey {
	x := kind
	for _, y := range [2]uint64{lane, which} {
		x = (x ^ y) * 0x9e3779b97f4a7c15
		x = (x ^ x>>33) * 0xff51afd7ed558ccd
		x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
		x ^= x >> 33
	}
	return blockKey(max(x, 1))
}

// entry is one of a directory.
type entry struct{ key, offset atomic.Uint64 }

// errFull says that the directory has no room for a key.
var errFull = errors.New("the directory of the shared memory of this process is full: want fewer communicators and " +
	"groups at a time")

// memory is a segment as it is mapped, up to its pages.
type memory []byte

// entry is the i-th of those that a key may be in.
func (m memory) entry(key blockKey, i int) *entry {
	at := (int(key%entries) + i) % entries
	return (*entry)(unsafe.Pointer(&m[directoryAt+at*entryBytes]))
}

// find returns the n bytes of the block of a key, or nil if there is none that lies in the segment's blocks.
func (m memory) find(key blockKey, n int) []byte {
	for i := range window {
		e := m.entry(key, i)
		if e.key.Load() != uint64(key) {
			continue
		}
		offset := e.offset.Load()
		if e.key.Load() != uint64(key) { // it has been struck, and the offset is another key's
			return nil
		}
		return m.block(offset, n)
	}
	return nil
}

// block returns the n bytes at an offset, or nil if there is no such block.
func (m memory) block(offset uint64, n int) []byte {
	if offset < blocksAt || offset%pageBytes != 0 || n < 0 || n > len(m) || offset > uint64(len(m)-n) {
		return nil
	}
	at := int(offset)
	return m[at : at+n : at+n]
}

// word is the k-th of the words of 8 bytes that a block begins with.
func word(block []byte, k int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&block[8*k])) }

// enter gives a block a key that has none.
func (m memory) enter(key blockKey, offset int) error {
	for i := range window {
		if e := m.entry(key, i); e.key.Load() == 0 {
			e.offset.Store(uint64(offset))
			e.key.Store(uint64(key))
			return nil
		}
	}
	return errFull
}

// holds reports whether the directory has a block of a key at an offset.
func (m memory) holds(key blockKey, offset int) bool {
	for i := range window {
		if e := m.entry(key, i); e.key.Load() == uint64(key) {
			return e.offset.Load() == uint64(offset)
		}
	}
	return false
}

// strike takes a key back.
func (m memory) strike(key blockKey) {
	for i := range window {
		m.entry(key, i).key.CompareAndSwap(uint64(key), 0)
	}
}
