//go:build amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64

package segment

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sharePages maps pages over by those at an offset of a segment, which hold zeros.
func sharePages(fd, at int, pages []byte) error {
	// Memory that the system does not have is an error here, and would end the program where it is touched. A signal
	// interrupts the call, which then has done nothing: hence by parts.
	for k := 0; k < len(pages); {
		n := min(len(pages)-k, hugeBytes)
		switch err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, int64(at+k), int64(n)); err {
		case nil:
			k += n
		case unix.EINTR:
		default:
			return fmt.Errorf("%d bytes of shared memory: %w", len(pages), os.NewSyscallError("fallocate", err))
		}
	}
	if err := mapOver(addressOf(pages), len(pages), unix.MAP_SHARED, fd, at); err != nil {
		return err
	}
	// The rest is for speed. Without it the pages come one by one as they are touched.
	if unix.Madvise(pages, unix.MADV_POPULATE_WRITE) == nil &&
		len(pages) >= hugeBytes && addressOf(pages)%hugeBytes == 0 && at%hugeBytes == 0 {
		unix.Madvise(pages, unix.MADV_COLLAPSE)
	}
	return nil
}

// heapName is how Go's runtime calls the mappings of its heap. The system joins neighbours of one name only; if they
// were not joined, Alloc and Free again and again would use up the mappings that a process may have.
var heapName = []byte(" Go: heap\x00")

// unsharePages maps ordinary memory over pages, which holds zeros.
func unsharePages(pages []byte) error {
	if err := mapOver(addressOf(pages), len(pages), unix.MAP_PRIVATE|unix.MAP_ANON, -1, 0); err != nil {
		return err
	}
	unix.Prctl(unix.PR_SET_VMA, unix.PR_SET_VMA_ANON_NAME, addressOf(pages), uintptr(len(pages)),
		uintptr(unsafe.Pointer(&heapName[0])))
	return nil
}

// retirePages makes the pages at an address, which lie at an offset of a segment, private copies. It keeps what other
// goroutines write at the same time: until a page is copied it is the segment's.
func retirePages(fd, at int, address uintptr, bytes int) error {
	if err := mapOver(address, bytes, unix.MAP_PRIVATE, fd, at); err != nil {
		return err
	}
	// By number: the pages may be unreachable for the program, and wait for their finalizer.
	switch _, _, err := unix.Syscall(unix.SYS_MADVISE, address, uintptr(bytes), unix.MADV_POPULATE_WRITE); err {
	case 0:
		return nil
	case unix.EINVAL: // before Linux 5.14
		for k := 0; k < bytes; {
			n, _, err := unix.Syscall6(unix.SYS_PREAD64, uintptr(fd), address+uintptr(k), uintptr(bytes-k), uintptr(at+k), 0, 0)
			if err != 0 || n == 0 {
				return os.NewSyscallError("pread", err)
			}
			k += int(n)
		}
		return nil
	default:
		return os.NewSyscallError("madvise(MADV_POPULATE_WRITE)", err)
	}
}

// removePages gives the memory of pages that are mapped back to the system, without the descriptor.
func removePages(pages []byte) { unix.Madvise(pages, unix.MADV_REMOVE) }

// mapOver maps n bytes at an address anew. It makes the call by its number: unix.MmapPtr returns the address as a
// pointer, for which the race detector ends the program if it is one into the heap.
func mapOver(address uintptr, n, flags, fd, at int) error {
	_, _, err := unix.Syscall6(unix.SYS_MMAP, address, uintptr(n), unix.PROT_READ|unix.PROT_WRITE,
		uintptr(unix.MAP_FIXED|flags), uintptr(fd), uintptr(at))
	switch err {
	case 0:
		return nil
	case unix.ENOMEM:
		return fmt.Errorf("%d bytes of shared memory: %w: want fewer mappings (vm.max_map_count)", n,
			os.NewSyscallError("mmap", err))
	}
	return fmt.Errorf("%d bytes of shared memory: %w", n, os.NewSyscallError("mmap", err))
}
