package remote

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"math"
)

// After the header pages of a file come its entries, in groups. A group begins with a table of groupEntries rows of two
// words each, then come the bytes of its entries, each up to the next multiple of 8:
//
//	header | row 0 .. row 255 | entry 0 .. entry 255 | row 256 .. | entry 256 .. entry 300
//	pages  |      table       |                      |   table    |      the last group may have fewer
//
// The first word of a row is the state of its entry: storing, or in its upper half the mark of what was never stored or
// of what is stored, in its lower half the checksum of the bytes, if there are any. A checksum begins with the file's
// buffer and replica and the number of the entry, so that a row that was copied to another place does not fit. No state
// is zero, so that a file whose bytes were zeroed is not taken for one in which nothing was stored. The second word is
// the tag of the variable that has the entry. Both are in the order of the host.
//
// That the states lie together lets Open and Grow reach all of them, and leave the bytes of entries that were never
// stored untouched on the disk.
const (
	groupEntries = 256
	wordBytes    = 8
	rowBytes     = 2 * wordBytes
	tableBytes   = groupEntries * rowBytes

	// The states differ from each other, and from what damage likes to leave, in many bits.
	neverMark  uint64 = 0x6e657665          // "neve", the upper half
	storing    uint64 = 0x73746f72_696e672e // "storing."
	storedMark uint64 = 0x64617461          // "data", the upper half
)

// firstSum is the checksum of what a file is: its buffer and replica. The checksums of its entries go on from there, so
// that an entry of another file is not taken for one of its own.
func firstSum(spec Spec) uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "%q %d", spec.Buffer, spec.Replica), castagnoli)
}

// sumOf is where the checksum of an entry begins: each at another number, so that no entry is taken for another.
func (k *file) sumOf(entry int) uint32 { return k.first + uint32(entry) }

// storedWord is the state of an entry whose bytes have that checksum.
func storedWord(sum uint32) uint64 { return storedMark<<32 | uint64(sum) }

// neverWord is the state of an entry that was never stored: its checksum is that of no bytes.
func (k *file) neverWord(entry int) uint64 { return neverMark<<32 | uint64(k.sumOf(entry)) }

// stateOf looks at the first word of an entry's row. Where the entry is lost, the error says why.
func (k *file) stateOf(entry int, word uint64) (isStored bool, sum uint32, err error) {
	switch {
	case word == k.neverWord(entry):
		return false, 0, nil
	case word == storing:
		return true, 0, fmt.Errorf("a store of it was cut short: %w", ErrLost)
	case word>>32 != storedMark:
		return true, 0, fmt.Errorf("the word of its state is damaged: %#x: %w", word, ErrLost)
	}
	return true, uint32(word), nil
}

// tagOf is the second word of a row: a hash of the name of the variable that has the entry, and its complement. 0, and
// all else that is no tag, is that of an entry that no variable has.
func tagOf(name string) uint64 {
	if name == "" {
		return 0
	}
	h := crc32.ChecksumIEEE([]byte(name))
	return uint64(h)<<32 | uint64(^h)
}

func isTag(word uint64) bool { return uint32(word>>32) == ^uint32(word) }

// pitch is how far apart the bytes of entries lie.
func pitch(bytes int) int64 { return (int64(bytes) + 7) &^ 7 }

func groupBytes(bytes int) int64 { return tableBytes + groupEntries*pitch(bytes) }

// fileBytes is the size of a file.
func fileBytes(bytes, entries int) (int64, error) {
	groups := int64(entries / groupEntries)
	if int64(bytes) > math.MaxInt64/groupEntries/2 || groups > (math.MaxInt64-headBytes)/groupBytes(bytes)-1 {
		return 0, fmt.Errorf("%d entries of %d bytes are more than a file can hold", entries, bytes)
	}
	size := headBytes + groups*groupBytes(bytes)
	if rest := int64(entries % groupEntries); rest > 0 {
		size += tableBytes + rest*pitch(bytes)
	}
	return size, nil
}

// rowAt is where the row of an entry is.
func rowAt(bytes, entry int) int64 {
	return headBytes + int64(entry/groupEntries)*groupBytes(bytes) + int64(entry%groupEntries)*rowBytes
}

// entryAt is where the bytes of an entry are.
func entryAt(bytes, entry int) int64 {
	return headBytes + int64(entry/groupEntries)*groupBytes(bytes) + tableBytes + int64(entry%groupEntries)*pitch(bytes)
}

// writeRows writes the rows of new entries, and waits for nothing.
func (k *file) writeRows(from, to int, names []string) error {
	var page [tableBytes]byte
	for from < to {
		end := min(to, (from/groupEntries+1)*groupEntries)
		rows := page[:(end-from)*rowBytes]
		for i := range end - from {
			var tag uint64
			if from+i < len(names) {
				tag = tagOf(names[from+i])
			}
			binary.NativeEndian.PutUint64(rows[i*rowBytes:], k.neverWord(from+i))
			binary.NativeEndian.PutUint64(rows[i*rowBytes+wordBytes:], tag)
		}
		if err := k.medium.write(rowAt(k.head.bytes, from), rows); err != nil {
			return err
		}
		from = end
	}
	return nil
}

// row is what a table says of an entry.
type row struct{ state, tag uint64 }

// rows reads all rows, group by group. Those that cannot be read are zeros, whose entries are lost.
func (k *file) rows() iter.Seq2[int, row] {
	return func(yield func(int, row) bool) {
		var page [tableBytes]byte
		for entry := 0; entry < k.head.spec.Entries; {
			rest := page[:min(groupEntries, k.head.spec.Entries-entry)*rowBytes]
			if err := k.medium.read(rowAt(k.head.bytes, entry), rest); err != nil {
				clear(rest)
			}
			for ; len(rest) > 0; rest = rest[rowBytes:] {
				if !yield(entry, row{binary.NativeEndian.Uint64(rest), binary.NativeEndian.Uint64(rest[wordBytes:])}) {
					return
				}
				entry++
			}
		}
	}
}

// readRows remembers the entries that are lost by their states, and compares the tags with the names of those who want
// the entries.
func (k *file) readRows(names []string) error {
	for entry, row := range k.rows() {
		if _, _, err := k.stateOf(entry, row.state); err != nil {
			k.missing[entry] = struct{}{}
		}
		if entry < len(names) && names[entry] != "" && isTag(row.tag) && row.tag != tagOf(names[entry]) &&
			row.state != k.neverWord(entry) {
			return fmt.Errorf("entry %d is of a variable with another name than %q: "+
				"give every variable the entry that it had; %s", entry, names[entry], anew)
		}
	}
	return nil
}

// setTags gives entries the tags of those who want them, where they have others.
func (k *file) setTags(names []string) error {
	for entry, name := range names {
		if name == "" {
			continue
		}
		off := rowAt(k.head.bytes, entry) + wordBytes
		tag, err := k.medium.word(off)
		if err == nil && tag != tagOf(name) {
			err = k.medium.setWord(off, tagOf(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
