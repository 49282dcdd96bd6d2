package remote

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"gogcl.dev/tensor"
)

// A file begins with two pages, each of which may hold a header. Headers are written to them by turns, with increasing
// sequence numbers, and the valid one with the highest counts: a header that is cut short leaves the one before. The
// numbers are little endian, whatever the order of the entries:
//
//	 0  magic, 8 bytes              48  replica, 8
//	 8  version, 4                  56  shard, 8
//	12  byte order mark, 4          64  1 if the entries are shards, 8
//	16  sequence number, 8          72  dtype's name, 2 bytes of length before it
//	24  entries, 8                      buffer, likewise
//	32  1 while it is open, 8           shape, 2 bytes of rank, 8 for each dimension
//	40  bytes of an entry, 8            shape of the whole, likewise; of rank 0 where the entries are no shards
//	                              4092  crc32c of all before it, 4
//
// A header with no entries is that of a file whose making was cut short.
const (
	magic      = "gogclbuf"
	version    = 3
	pageBytes  = 4096 // a page of most machines, and a block of most file systems
	headBytes  = 2 * pageBytes
	fixedBytes = 72
	sumBytes   = 4
)

// mark is written in the byte order of the host, which is that of the entries.
const mark = 0x0a0b0c0d

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type header struct {
	spec  Spec
	bytes int    // of an entry
	seq   uint64 // of this header
	open  bool   // by a process that has not closed it, or that found entries lost
}

// page encodes h. The error: the names and the shape do not fit.
func (h header) page() ([]byte, error) {
	dtype := h.spec.DType.String()
	names := 2 + len(dtype) + 2 + len(h.spec.Buffer)
	shapes := 2 + 8*len(h.spec.Shape) + 2 + 8*len(h.spec.Whole)
	need := fixedBytes + names + shapes + sumBytes
	if need > pageBytes {
		return nil, fmt.Errorf("the buffer's name of %d bytes and shapes of %d dimensions take %d bytes with all "+
			"else, a header has %d",
			len(h.spec.Buffer), len(h.spec.Shape)+len(h.spec.Whole), need, pageBytes)
	}
	le := binary.LittleEndian
	b := make([]byte, 0, pageBytes)
	b = append(b, magic...)
	b = le.AppendUint32(b, version)
	b = binary.NativeEndian.AppendUint32(b, mark)
	b = le.AppendUint64(b, h.seq)
	b = le.AppendUint64(b, uint64(h.spec.Entries))
	b = le.AppendUint64(b, flag(h.open))
	b = le.AppendUint64(b, uint64(h.bytes))
	b = le.AppendUint64(b, uint64(h.spec.Replica))
	b = le.AppendUint64(b, uint64(h.spec.Shard))
	b = le.AppendUint64(b, flag(h.spec.Whole != nil))
	b = append(le.AppendUint16(b, uint16(len(dtype))), dtype...)
	b = append(le.AppendUint16(b, uint16(len(h.spec.Buffer))), h.spec.Buffer...)
	for _, shape := range []tensor.Shape{h.spec.Shape, h.spec.Whole} {
		b = le.AppendUint16(b, uint16(len(shape)))
		for _, d := range shape {
			b = le.AppendUint64(b, uint64(d))
		}
	}
	b = b[:pageBytes]
	seal(b)
	return b, nil
}

func flag(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// seal writes a page's checksum.
func seal(page []byte) {
	body := page[:pageBytes-sumBytes]
	binary.LittleEndian.PutUint32(page[len(body):], crc32.Checksum(body, castagnoli))
}

// errNoMagic is of a page that no header was ever written to.
var errNoMagic = errors.New("it is not a file of remote entries: it does not begin like one")

// errOld is of a file of version 1 or 2. The files of version 1 were named by the buffers' numbers, and entries that
// were never stored could not be told from ones that were zeroed. Those of version 2 did not say of which tensor their
// entries were shards, and an entry could be taken for one of another file.
var errOld = fmt.Errorf("this program reads version %d: save a checkpoint (package rts/checkpoint) "+
	"with the gogcl that wrote it and load that; %s", version, anew)

// anew ends errors of files whose entries cannot be had. Of a sharded variable the file of one replica is a part only.
const anew = "to begin anew, remove the buffer's files of all replicas"

// parsePage decodes a header. Whatever it says has been looked at: entries may be 0, all else is as Spec wants it.
func parsePage(page []byte) (header, error) {
	le := binary.LittleEndian
	if !bytes.HasPrefix(page, []byte(magic)) {
		return header{}, errNoMagic
	}
	if len(page) < pageBytes {
		return header{}, fmt.Errorf("it is truncated: %d bytes, a header has %d", len(page), pageBytes)
	}
	if v := le.Uint32(page[8:]); 0 < v && v < version {
		return header{}, fmt.Errorf("its format has version %d, %w", v, errOld)
	} else if v != version {
		return header{}, fmt.Errorf("its format has version %d, this program reads version %d", v, version)
	}
	if got := binary.NativeEndian.Uint32(page[12:]); got != mark {
		return header{}, fmt.Errorf("its bytes are in the order of another machine: mark %#x, want %#x",
			got, uint32(mark))
	}
	body := page[:pageBytes-sumBytes]
	if got, want := crc32.Checksum(body, castagnoli), le.Uint32(page[len(body):]); got != want {
		return header{}, fmt.Errorf("its header is damaged: checksum %08x, want %08x", got, want)
	}
	h := header{seq: le.Uint64(page[16:]), open: le.Uint64(page[32:]) != 0}
	entries, size, replica, shard := le.Uint64(page[24:]), le.Uint64(page[40:]), le.Uint64(page[48:]),
		le.Uint64(page[56:])
	if max(entries, size, replica, shard) > math.MaxInt {
		return header{}, fmt.Errorf("its header speaks of %d entries of %d bytes for replica %d, shard %d: too many "+
			"for this machine",
			entries, size, replica, shard)
	}
	rest := body[fixedBytes:]
	text := func() (string, bool) {
		if len(rest) < 2 {
			return "", false
		}
		n := int(le.Uint16(rest))
		if n > len(rest)-2 {
			return "", false
		}
		s := string(rest[2 : 2+n])
		rest = rest[2+n:]
		return s, true
	}
	var numbers error
	dims := func() (tensor.Shape, bool) {
		if len(rest) < 2 {
			return nil, false
		}
		rank := int(le.Uint16(rest))
		if rest = rest[2:]; 8*rank > len(rest) {
			return nil, false
		}
		shape := make(tensor.Shape, rank)
		for i := range shape {
			d := le.Uint64(rest[8*i:])
			if d > math.MaxInt {
				numbers = cmp.Or(numbers, fmt.Errorf("its header is damaged: dimension %d of the shape is %d", i, d))
				continue
			}
			shape[i] = int(d)
		}
		rest = rest[8*rank:]
		return shape, true
	}
	dtype, ok1 := text()
	buffer, ok2 := text()
	shape, ok3 := dims()
	whole, ok4 := dims()
	switch {
	case !ok1 || !ok2 || !ok3 || !ok4:
		return header{}, errors.New("its header is damaged: names and shapes are longer than it is")
	case numbers != nil:
		return header{}, numbers
	}
	h.spec = Spec{Buffer: buffer, Replica: int(replica), Entries: int(entries), Shape: shape, Shard: int(shard)}
	if le.Uint64(page[64:]) != 0 {
		h.spec.Whole = whole
	}
	var err error
	if h.spec.DType, err = tensor.ParseDType(dtype); err != nil {
		return header{}, fmt.Errorf("its header is damaged: %w", err)
	}
	sound := h.spec
	sound.Entries = max(sound.Entries, 1)
	if h.bytes, err = sound.entryBytes(); err != nil {
		return header{}, fmt.Errorf("its header is damaged: %w", err)
	}
	if uint64(h.bytes) != size {
		return header{}, fmt.Errorf("its header is damaged: entries of %d bytes, but %v of shape %v takes %d",
			size, h.spec.DType, h.spec.Shape, h.bytes)
	}
	return h, nil
}

// parseHead decodes the beginning of a file of size bytes: head is its first headBytes, or all if it is shorter. Where
// one page is damaged, the entries cannot be taken for whole, and the header is open. No number of the result
// is larger than the file warrants.
func parseHead(head []byte, size int64) (header, error) {
	h, err := parsePage(head[:min(len(head), pageBytes)])
	if len(head) == headBytes {
		other, otherErr := parsePage(head[pageBytes:])
		switch {
		case err != nil && otherErr == nil:
			h, err = other, nil
			h.open = true
		case err == nil && otherErr != nil:
			h.open = true
		case err == nil && other.seq > h.seq:
			h = other
		}
	}
	if err != nil {
		return header{}, err
	}
	if h.spec.Entries == 0 {
		return h, nil
	}
	want, err := fileBytes(h.bytes, h.spec.Entries)
	if err != nil {
		return header{}, fmt.Errorf("its header is damaged: %w", err)
	}
	if size < want {
		return header{}, fmt.Errorf("it is truncated: %d bytes, its header speaks of %d entries of %d bytes, which "+
			"take %d",
			size, h.spec.Entries, h.bytes, want)
	}
	return h, nil
}

// differs is the error of a file that holds something else than is wanted.
func differs(holds, want Spec) error {
	switch {
	case holds.Buffer != want.Buffer || holds.Replica != want.Replica:
		return fmt.Errorf("it holds %v", holds)
	case holds.DType != want.DType || !holds.Shape.Equal(want.Shape):
		return fmt.Errorf("it holds %s; wanted: %s", holds.contents(), want.contents())
	case (holds.Whole == nil) != (want.Whole == nil) || !holds.Whole.Equal(want.Whole) || holds.Shard != want.Shard:
		return fmt.Errorf("its entries are %s; wanted: %s", holds.division(), want.division())
	case holds.Entries > want.Entries:
		return fmt.Errorf("it holds %s; wanted: %s", holds.contents(), want.contents())
	}
	return nil
}
