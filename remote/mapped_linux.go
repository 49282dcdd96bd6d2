package remote

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

var native = platform{open: openMapped, create: createWhole, room: roomOnDisk, reserve: allocate}

// mapped is a medium that maps the file into memory. The kernel keeps what is in the mapping when the process ends,
// in the order in which its instructions wrote it; the compiler keeps the order because words are written atomically.
type mapped struct {
	f    *os.File
	data []byte
}

func openMapped(f *os.File, size int64) (medium, error) {
	m := &mapped{f: f}
	return m, m.resize(size)
}

// resize maps anew, so that after an error the mapping is what it was.
func (m *mapped) resize(size int64) error {
	if size > math.MaxInt {
		return fmt.Errorf("%d bytes are too many to map", size)
	}
	data, err := unix.Mmap(int(m.f.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mapping %d bytes: %w", size, err)
	}
	old := m.data
	m.data = data
	if old != nil {
		return unmap(old)
	}
	return nil
}

func unmap(data []byte) error {
	if err := unix.Munmap(data); err != nil {
		return fmt.Errorf("unmapping: %w", err)
	}
	return nil
}

var errReach = errors.New("its bytes cannot be reached in memory: has it been truncated, or does the disk fail?")

// caught makes an error of a fault: a page that cannot be read from the disk, or that is no longer in the file
// because something has truncated it. It is deferred, with what debug.SetPanicOnFault(true) has returned.
func caught(before bool, err *error) {
	debug.SetPanicOnFault(before)
	switch r := recover().(type) {
	case nil:
	case interface{ Addr() uintptr }:
		*err = errReach
	default:
		panic(r)
	}
}

func (m *mapped) at(off int64) *uint64 { return (*uint64)(unsafe.Pointer(&m.data[off])) }

func (m *mapped) word(off int64) (w uint64, err error) {
	defer caught(debug.SetPanicOnFault(true), &err)
	return atomic.LoadUint64(m.at(off)), nil
}

func (m *mapped) setWord(off int64, w uint64) (err error) {
	defer caught(debug.SetPanicOnFault(true), &err)
	atomic.StoreUint64(m.at(off), w)
	return nil
}

func (m *mapped) read(off int64, dst []byte) (err error) {
	defer caught(debug.SetPanicOnFault(true), &err)
	copy(dst, m.data[off:off+int64(len(dst))])
	return nil
}

func (m *mapped) write(off int64, src []byte) (err error) {
	defer caught(debug.SetPanicOnFault(true), &err)
	copy(m.data[off:off+int64(len(src))], src)
	return nil
}

// sync widens the range to pages of the machine, which may be larger than those of the header.
func (m *mapped) sync(off, n int64) error {
	page := int64(os.Getpagesize())
	from := off / page * page
	if err := unix.Msync(m.data[from:off+n], unix.MS_SYNC); err != nil {
		return fmt.Errorf("writing the mapping to the disk: %w", err)
	}
	return nil
}

func (m *mapped) close() error { return unmap(m.data) }

// pieceBytes is what is asked of the kernel at once: a call that a signal interrupts begins again, and should get
// somewhere.
const pieceBytes = 1 << 30

// allocate has the file system reserve the blocks: to write to a mapping for which there are none left ends the
// process. A file system that cannot do it gets zeros written.
func allocate(f *os.File, from, to int64) error {
	for from < to {
		n := min(to-from, pieceBytes)
		switch err := unix.Fallocate(int(f.Fd()), 0, from, n); err {
		case nil:
			from += n
		case unix.EINTR:
		case unix.EOPNOTSUPP, unix.ENOSYS:
			return writeZeros(f, from, to)
		default:
			return fmt.Errorf("reserving %d bytes after the first %d: %w", n, from, err)
		}
	}
	return nil
}
