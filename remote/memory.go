package remote

import (
	"fmt"
	"math/bits"
)

// Memory is the Storage that keeps entries on Go's heap, until they are closed: what is opened after that reads as
// zeros. It knows nothing lost, and Sync does nothing.
//
// Open and Grow take all the memory at once, as much as the entries have bytes and 24 more for each.
type Memory struct{}

// Open is Storage's. More bytes than a program can have are an error; more than the machine has are, as with every
// allocation in Go, the end of the process.
func (Memory) Open(spec Spec) (Entries, error) {
	bytes, err := spec.entryBytes()
	m := &memory{bytes: bytes}
	if err == nil {
		err = m.grow(spec.Entries)
	}
	if err != nil {
		return nil, fmt.Errorf("remote: open %v in memory: %w", spec, err)
	}
	return newGuarded(spec, bytes, m), nil
}

// memory keeps each entry as a slice of a block that it shares with the others of the same Open or Grow, so that to
// grow copies nothing.
type memory struct {
	bytes   int
	entries [][]byte
	written []bool // each under the lock of its entry
}

// sliceBytes is the size of a slice's header on 64 bits.
const sliceBytes = 24

// mostBytes is what entries may take, all in all: half of the addresses a process has on amd64 and arm64 (47 bits), or
// on 32 bits, below which Go takes a length.
const mostBytes = 1 << min(46, bits.UintSize-2)

func (m *memory) grow(entries int) error {
	if entries > mostBytes/(m.bytes+sliceBytes) {
		return fmt.Errorf("%d entries of %d bytes take more memory than there can be", entries, m.bytes)
	}
	more := entries - len(m.entries)
	block := make([]byte, more*m.bytes)
	grown := make([][]byte, len(m.entries), entries)
	copy(grown, m.entries)
	for i := range more {
		grown = append(grown, block[i*m.bytes:(i+1)*m.bytes:(i+1)*m.bytes])
	}
	m.entries = grown
	m.written = append(m.written, make([]bool, more)...)
	return nil
}

func (m *memory) load(entry int, dst []byte) error {
	copy(dst, m.entries[entry])
	return nil
}

func (m *memory) store(entry int, src []byte) error {
	m.written[entry] = true
	copy(m.entries[entry], src)
	return nil
}

func (m *memory) stored(entry int) bool { return m.written[entry] }

func (m *memory) lost() []int  { return nil }
func (m *memory) sync() error  { return nil }
func (m *memory) close() error { return nil }
