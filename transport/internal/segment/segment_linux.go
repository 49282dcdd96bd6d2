package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// seals are those of a segment: no process can change its length any more, nor take that back.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// CheckRoom says why a process cannot map so many segments of a form: what it knows of before it tries.
func CheckRoom(form Form, segments int) error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) == nil && uint64(limit.Cur)/uint64(form.Bytes) < uint64(segments) {
		return fmt.Errorf("%d segments of %d bytes of addresses are more than the limit of %d (ulimit -v)", segments,
			form.Bytes, uint64(limit.Cur))
	}
	return nil
}

// Make makes the segment of this process, which has the rank given.
func Make(rank int, form Form) (*Segment, error) {
	return makeSegment(rank, form, strict(overcommitFile))
}

// makeSegment is Make where the system is strict, or is not.
func makeSegment(rank int, form Form, strict bool) (s *Segment, err error) {
	if err := form.check(); err != nil {
		return nil, err
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && uint64(limit.Cur) < uint64(form.Bytes) {
		// To go beyond it is a signal that ends the process.
		return nil, fmt.Errorf("a segment of shared memory has %d bytes, and the limit of files is %d (RLIMIT_FSIZE): "+
			"raise it by ulimit -f", form.Bytes, uint64(limit.Cur))
	}
	fd, err := unix.MemfdCreate("gogcl", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // Linux before 6.3
		fd, err = unix.MemfdCreate("gogcl", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if err := unix.Ftruncate(fd, form.Bytes); err != nil {
		return nil, os.NewSyscallError("ftruncate", err)
	}
	var hold func(at, n int) error
	if strict {
		hold = func(at, n int) error { return os.NewSyscallError("fallocate", reserve(fd, at, n)) }
		if err := hold(0, directoryAt+directoryBytes); err != nil {
			return nil, fmt.Errorf("the directory of the shared memory of this process: %w", err)
		}
	}
	m, err := mapAll(fd, form)
	if err != nil {
		return nil, err
	}
	s = newSegment(m, rank, form)
	s.hold = hold
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		m.unmap()
		return nil, os.NewSyscallError("fcntl(F_ADD_SEALS)", err)
	}
	s.fd = fd
	s.punch = func(at, n int) error {
		return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(at), int64(n))
	}
	s.unmap = func() error { return errors.Join(m.unmap(), unix.Close(fd)) }
	return s, nil
}

// reserve has the system give a segment the memory for n bytes. What it does not have is an error here, and would end
// the program where it is touched.
func reserve(fd, at, n int) error {
	for n > 0 {
		k := min(n, hugeBytes) // a signal interrupts the call, which then has done nothing: hence by parts
		switch err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, int64(at), int64(k)); err {
		case nil:
			at, n = at+k, n-k
		case unix.EINTR:
		default:
			return err
		}
	}
	return nil
}

// overcommitFile says how the system gives memory.
const overcommitFile = "/proc/sys/vm/overcommit_memory"

// strict reports whether the system gives no memory that it may not have (mode 2). Elsewhere it ends processes where it
// has none, and there a touch of a block or of the directory may be a signal that ends this one: so their memory is
// asked for before. That of a block of which a part is used would be wasted elsewhere.
func strict(file string) bool {
	mode, err := os.ReadFile(file)
	return err == nil && strings.TrimSpace(string(mode)) == "2"
}

// Open maps the segment of another process, which has the rank given, by a descriptor that it has sent. The descriptor
// is the caller's still. The errors, before anything is mapped, say what is wrong with the descriptor.
func Open(fd, rank int, form Form) (*Peer, error) {
	if err := form.check(); err != nil {
		return nil, err
	}
	got, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is no memory that can be sealed (memfd): %w", fd, err)
	}
	if got&seals != seals {
		return nil, fmt.Errorf("descriptor %d has seals %#x, want %#x: it could be made shorter", fd, got, seals)
	}
	var system unix.Statfs_t
	if err := unix.Fstatfs(fd, &system); err != nil {
		return nil, os.NewSyscallError("fstatfs", err)
	}
	if system.Type != unix.TMPFS_MAGIC { // one of huge pages faults when there are no more of them
		return nil, fmt.Errorf("descriptor %d is of a file system of type %#x, want memory of ordinary pages, %#x",
			fd, system.Type, unix.TMPFS_MAGIC)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	if stat.Size != form.Bytes {
		return nil, fmt.Errorf("descriptor %d has %d bytes, want %d", fd, stat.Size, form.Bytes)
	}
	var header [headerUsed]byte
	n, err := unix.Pread(fd, header[:], 0)
	if err != nil {
		return nil, os.NewSyscallError("pread", err)
	}
	if err := checkHeader(header[:n], rank, form); err != nil {
		return nil, fmt.Errorf("descriptor %d is no segment: %w", fd, err)
	}
	m, err := mapAll(fd, form)
	if err != nil {
		return nil, err
	}
	return newPeer(m, form, m.unmap), nil
}

// mapAll maps a segment at the border of a huge page: the system maps a huge page of a file where it begins with one of
// addresses too.
func mapAll(fd int, form Form) (memory, error) {
	room := uintptr(form.Bytes) + hugeBytes
	p, err := unix.MmapPtr(-1, 0, nil, room, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err == nil {
		before := -uintptr(p) & (hugeBytes - 1)
		at, after := unsafe.Add(p, before), hugeBytes-before
		if _, err = unix.MmapPtr(fd, 0, at, uintptr(form.Bytes), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_FIXED|unix.MAP_SHARED|unix.MAP_NORESERVE); err != nil {
			unix.MunmapPtr(p, room)
		} else {
			// What is left over goes, or it would count as a mapping.
			if before > 0 {
				unix.MunmapPtr(p, before)
			}
			unix.MunmapPtr(unsafe.Add(at, form.Bytes), after)
			m := memory(unsafe.Slice((*byte)(at), int(form.Bytes)))
			unix.Madvise(m, unix.MADV_DONTDUMP) // or a core file has holes of that length
			return m, nil
		}
	}
	if err == unix.ENOMEM {
		return nil, fmt.Errorf("a segment of shared memory takes %d bytes of addresses: want no limit of them "+
			"(ulimit -v), and fewer mappings (vm.max_map_count): %w", form.Bytes, err)
	}
	return nil, os.NewSyscallError("mmap", err)
}

// unmap undoes mapAll.
func (m memory) unmap() error { return unix.MunmapPtr(unsafe.Pointer(&m[0]), uintptr(len(m))) }

// bellLink is what /proc calls an eventfd.
const bellLink = "anon_inode:[eventfd]"

// MakeBell makes a descriptor by which others wake this process: RingBell is an event of it.
func MakeBell() (fd int, err error) {
	fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return fd, os.NewSyscallError("eventfd", err)
}

// CheckBell says why a descriptor that another process has sent is none by MakeBell.
func CheckBell(fd int) error {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return fmt.Errorf("descriptor %d, want one of an eventfd: %w", fd, err)
	}
	if name != bellLink {
		return fmt.Errorf("descriptor %d is one of %q, want one of %q", fd, name, bellLink)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return os.NewSyscallError("fcntl(F_GETFL)", err)
	}
	if flags&unix.O_NONBLOCK == 0 {
		return fmt.Errorf("descriptor %d is an eventfd that blocks, want one that does not", fd)
	}
	return nil
}

// one is what a ring adds to an eventfd. Nobody reads that, and it holds 2^64 - 2.
var one = binary.NativeEndian.AppendUint64(nil, 1)

// RingBell wakes the process that has made the bell.
func RingBell(fd int) { unix.Write(fd, one) }
