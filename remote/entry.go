package remote

import (
	"errors"
	"fmt"
	"hash/crc32"
)

// chunkBytes is copied and summed at a time, so that the second finds in the cache what the first has touched. Of 16
// KiB to 1 MiB, 64 to 256 KiB were fast both to load and to store, mapped and not (BenchmarkEntries, 1 MiB of cache
// per core).
const chunkBytes = 128 << 10

// scan reads every entry of a file that was not closed and remembers the lost ones, the unreadable too.
func (k *file) scan() {
	buf := make([]byte, min(k.head.bytes, chunkBytes))
	for entry := range k.head.spec.Entries {
		if k.pass(entry, buf) != nil {
			k.missing[entry] = struct{}{}
		}
	}
}

// pass reads an entry and compares its checksum. buf is as long as an entry, or as a chunk: then all chunks go
// through it. An entry that was never stored leaves zeros.
func (k *file) pass(entry int, buf []byte) error {
	off, bytes := entryAt(k.head.bytes, entry), k.head.bytes
	word, err := k.medium.word(rowAt(bytes, entry))
	if err != nil {
		return err
	}
	isStored, want, err := k.stateOf(entry, word)
	if err != nil {
		return err
	}
	if !isStored {
		clear(buf)
		return nil
	}
	sum := k.sumOf(entry)
	for at := 0; at < bytes; at += chunkBytes {
		part := buf[:min(chunkBytes, bytes-at)]
		if len(buf) == bytes {
			part = buf[at : at+len(part)]
		}
		if err := k.medium.read(off+int64(at), part); err != nil {
			return err
		}
		sum = crc32.Update(sum, castagnoli, part)
	}
	if sum != want {
		return fmt.Errorf("it is damaged: checksum %08x, want %08x: %w", sum, want, ErrLost)
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

// store makes the state say that the entry is being stored, before its bytes change, and that it is, with the checksum
// of src, when they have. A process that is killed in between leaves the first.
func (k *file) store(entry int, src []byte) error {
	if err := k.medium.setWord(rowAt(k.head.bytes, entry), storing); err != nil {
		return inFile(k.f.Name(), err)
	}
	if err := k.fill(entry, src); err != nil {
		k.lose(entry)
		return inFile(k.f.Name(), err)
	}
	k.mu.Lock()
	delete(k.missing, entry)
	k.mu.Unlock()
	return nil
}

func (k *file) fill(entry int, src []byte) error {
	sum := k.sumOf(entry)
	off := entryAt(k.head.bytes, entry)
	for at := 0; at < len(src); at += chunkBytes {
		part := src[at:min(at+chunkBytes, len(src))]
		sum = crc32.Update(sum, castagnoli, part)
		if err := k.medium.write(off+int64(at), part); err != nil {
			return err
		}
	}
	return k.medium.setWord(rowAt(k.head.bytes, entry), storedWord(sum))
}

func (k *file) stored(entry int) bool {
	word, err := k.medium.word(rowAt(k.head.bytes, entry))
	return err != nil || word != k.neverWord(entry)
}

func (k *file) lose(entry int) {
	k.mu.Lock()
	k.missing[entry] = struct{}{}
	k.mu.Unlock()
}
