package remote

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gogcl.dev/internal/osfile"
)

// After the header pages of a file come the entries, each in a slot: a word that says what is in it, the entry's bytes,
// and bytes to the next multiple of 8. The word is in the order of the host, its upper half the state, its lower half,
// when there is an entry, the crc32c of its bytes.
const (
	wordBytes = 8

	never   uint64 = 0 // stored; the bytes mean nothing
	storing uint64 = 1 << 32
	stored  uint64 = 2 << 32
)

// chunkBytes is copied and summed at a time, so that the second finds in the cache what the first has touched. Of 16
// KiB to 1 MiB, 64 to 256 KiB were fast both to load and to store, mapped and not (BenchmarkEntries, 1 MiB of cache
// per core).
const chunkBytes = 128 << 10

// slotBytes is how far apart entries lie.
func slotBytes(bytes int) int64 { return wordBytes + (int64(bytes)+7)&^7 }

// fileBytes is the size of a file.
func fileBytes(bytes, entries int) (int64, error) {
	if int64(bytes) > math.MaxInt64-2*wordBytes || int64(entries) > (math.MaxInt64-headBytes)/slotBytes(bytes) {
		return 0, fmt.Errorf("%d entries of %d bytes are more than a file can hold", entries, bytes)
	}
	return headBytes + int64(entries)*slotBytes(bytes), nil
}

// file keeps entries in a file.
type file struct {
	platform platform
	f        *os.File // closed last, which gives up the lock
	medium   medium
	head     header           // the newest one in the file
	mu       sync.Mutex       // guards missing
	missing  map[int]struct{} // the entries known to be lost
}

// openFile opens a file that is locked already, or makes it out of an empty one. It is the owner of f, unless it
// returns an error.
func openFile(f *os.File, p platform, spec Spec, bytes int) (*file, error) {
	_, err := fileBytes(bytes, spec.Entries)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	head := make([]byte, min(info.Size(), headBytes))
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, err
	}
	k := &file{platform: p, f: f, missing: map[int]struct{}{}}
	if len(head) > 0 {
		if k.head, err = parseHead(head, info.Size()); err != nil {
			return nil, err
		}
	}
	if k.head.spec.Entries == 0 {
		if err := k.make(spec, bytes); err != nil {
			return nil, err
		}
		return k, nil
	}
	if err := differs(k.head.spec, spec); err != nil {
		return nil, err
	}
	if k.medium, err = p.open(f, k.size()); err != nil {
		return nil, err
	}
	if k.head.open {
		k.scan()
	}
	err = k.setHead(k.head.spec.Entries, true)
	if err == nil && k.head.spec.Entries < spec.Entries {
		err = k.grow(spec.Entries)
	}
	if err != nil {
		return nil, errors.Join(err, k.medium.close())
	}
	return k, nil
}

// make writes a file whose header says that nothing is in it, then grows it. Cut short anywhere, it leaves an empty
// file or one with such a header, from which the next begins again.
func (k *file) make(spec Spec, bytes int) error {
	entries := spec.Entries
	spec.Entries = 0
	k.head = header{spec: spec, bytes: bytes, seq: 2, open: true}
	page, err := k.head.page()
	if err != nil {
		return err
	}
	if _, err := k.f.WriteAt(append(page, make([]byte, headBytes-len(page))...), 0); err != nil {
		return err
	}
	if err := osfile.SyncDir(filepath.Dir(k.f.Name())); err != nil {
		return err
	}
	if k.medium, err = k.platform.open(k.f, headBytes); err != nil {
		return err
	}
	if err := k.extend(entries); err != nil {
		return errors.Join(err, k.medium.close())
	}
	return nil
}

// setHead writes the next header over the one before the newest, and waits until it is on the disk, so that a damaged
// header cannot hide that anything was stored under it.
func (k *file) setHead(entries int, open bool) error {
	next := k.head
	next.seq++
	next.spec.Entries, next.open = entries, open
	page, err := next.page()
	if err != nil {
		return err
	}
	if err := k.medium.write(int64(next.seq%2)*pageBytes, page); err != nil {
		return err
	}
	if err := k.medium.sync(0, headBytes); err != nil {
		return err
	}
	k.head = next
	return nil
}

// size of the file by its header. That it is a number was seen when the header was made.
func (k *file) size() int64 {
	return headBytes + int64(k.head.spec.Entries)*slotBytes(k.head.bytes)
}

// grow reserves first and writes the header last. Cut short before that, the file is only longer than it says, and the
// next grow begins by cutting it.
func (k *file) grow(entries int) error { return inFile(k.f.Name(), k.extend(entries)) }

func (k *file) extend(entries int) error {
	want, err := fileBytes(k.head.bytes, entries)
	if err != nil {
		return err
	}
	from := k.size()
	if err := k.f.Truncate(from); err != nil {
		return err
	}
	if want > from { // it may be less, after a grow whose second header failed
		err = k.platform.reserve(k.f, from, want)
	}
	if err == nil {
		err = k.f.Sync()
	}
	if err == nil {
		err = k.medium.resize(want)
	}
	if err != nil {
		return errors.Join(err, k.f.Truncate(from))
	}
	// Twice, for both pages: if one is damaged later, the other knows all entries too.
	if err := k.setHead(entries, true); err != nil {
		return err
	}
	return k.setHead(entries, true)
}

// inFile names the file, unless err does.
func inFile(path string, err error) error {
	if err == nil {
		return nil
	}
	var named *fs.PathError
	if errors.As(err, &named) {
		return err
	}
	return fmt.Errorf("file %s: %w", path, err)
}

// scan looks at every entry of a file that was not closed and remembers the lost ones, the unreadable too.
func (k *file) scan() {
	buf := make([]byte, min(k.head.bytes, chunkBytes))
	for entry := range k.head.spec.Entries {
		if k.pass(entry, buf) != nil {
			k.missing[entry] = struct{}{}
		}
	}
}

// slot is where an entry's word is.
func (k *file) slot(entry int) int64 { return headBytes + int64(entry)*slotBytes(k.head.bytes) }

// pass reads an entry and compares its checksum. buf is as long as an entry, or as a chunk: then all chunks go
// through it. An entry that was never stored leaves zeros.
func (k *file) pass(entry int, buf []byte) error {
	off, bytes := k.slot(entry), k.head.bytes
	word, err := k.medium.word(off)
	if err != nil {
		return err
	}
	if word == never {
		clear(buf)
		return nil
	}
	if state := word >> 32 << 32; state == storing {
		return fmt.Errorf("a store of it was cut short: %w", ErrLost)
	} else if state != stored {
		return fmt.Errorf("the word before it is damaged: %#x: %w", word, ErrLost)
	}
	var sum uint32
	for at := 0; at < bytes; at += chunkBytes {
		part := buf[:min(chunkBytes, bytes-at)]
		if len(buf) == bytes {
			part = buf[at : at+len(part)]
		}
		if err := k.medium.read(off+wordBytes+int64(at), part); err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli, part)
	}
	if sum != uint32(word) {
		return fmt.Errorf("it is damaged: checksum %08x, want %08x: %w", sum, uint32(word), ErrLost)
	}
	return nil
}

func (k *file) load(entry int, dst []byte) error {
	err := k.pass(entry, dst)
	if errors.Is(err, ErrLost) {
		k.lose(entry)
	}
	return inFile(k.f.Name(), err)
}

// store makes the word say that the entry is being stored, before its bytes change, and that it is, with the checksum
// of src, when they have. A process that is killed in between leaves the first.
func (k *file) store(entry int, src []byte) error {
	off := k.slot(entry)
	if err := k.medium.setWord(off, storing); err != nil {
		return inFile(k.f.Name(), err)
	}
	if err := k.fill(off, src); err != nil {
		k.lose(entry)
		return inFile(k.f.Name(), err)
	}
	k.mu.Lock()
	delete(k.missing, entry)
	k.mu.Unlock()
	return nil
}

func (k *file) fill(off int64, src []byte) error {
	var sum uint32
	for at := 0; at < len(src); at += chunkBytes {
		part := src[at:min(at+chunkBytes, len(src))]
		sum = crc32.Update(sum, castagnoli, part)
		if err := k.medium.write(off+wordBytes+int64(at), part); err != nil {
			return err
		}
	}
	return k.medium.setWord(off, stored|uint64(sum))
}

func (k *file) stored(entry int) bool {
	word, err := k.medium.word(k.slot(entry))
	return err != nil || word != never
}

func (k *file) lose(entry int) {
	k.mu.Lock()
	k.missing[entry] = struct{}{}
	k.mu.Unlock()
}

func (k *file) lost() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.missing))
}

func (k *file) sync() error { return inFile(k.f.Name(), k.medium.sync(0, k.size())) }

// close says in the header that all is well, if it is: the next opening believes it and scans nothing.
func (k *file) close() error {
	err := k.medium.sync(0, k.size())
	if err == nil && len(k.missing) == 0 {
		err = k.setHead(k.head.spec.Entries, false)
	}
	return inFile(k.f.Name(), errors.Join(err, k.medium.close(), k.f.Close()))
}
