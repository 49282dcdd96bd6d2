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
	if err := mapOver(addressOf(pages), len(pages), unix.MAP_SHARED, fd, at); err != nil {
		return err
	}
	if !collapse(at, pages) {
		if err := reserve(fd, at, len(pages)); err != nil && unsharePages(pages) == nil {
			return fmt.Errorf("%d bytes of shared memory: %w", len(pages), os.NewSyscallError("fallocate", err))
		}
	}
	unix.Madvise(pages, unix.MADV_POPULATE_WRITE) // or they are mapped one by one as they are touched
	return nil
}

// collapse has the system put pages at an offset of a segment into huge pages, if both begin with one. It reports
// whether all are. The system (Linux 6.1) takes those of which a page is there, and no empty ones. To have all pages
// there before takes 150 ms for 64 MiB, so 14 to 35 (two cores with a load of 15, 2026-11-27).
func collapse(at int, pages []byte) bool {
	if at%hugeBytes != 0 || addressOf(pages)%hugeBytes != 0 || len(pages) < hugeBytes {
		return false
	}
	for k := 0; k+hugeBytes <= len(pages); k += hugeBytes {
		if unix.Madvise(pages[k:k+os.Getpagesize()], unix.MADV_POPULATE_WRITE) != nil {
			return false
		}
	}
	return unix.Madvise(pages, unix.MADV_COLLAPSE) == nil && len(pages)%hugeBytes == 0
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
// goroutines write at the same time: until a page is copied it is the segment's. mapped is whether an earlier try has
// mapped them: to do it again would undo what has been written since.
func retirePages(fd, at int, address uintptr, bytes int, mapped *bool) error {
	if !*mapped {
		if err := mapOver(address, bytes, unix.MAP_PRIVATE, fd, at); err != nil {
			return err
		}
		*mapped = true
	}
	// By number: the pages may be unreachable for the program, and wait for their finalizer.
	switch _, _, err := unix.Syscall(unix.SYS_MADVISE, address, uintptr(bytes), unix.MADV_POPULATE_WRITE); err {
	case 0:
		return nil
	case unix.EINVAL: // before Linux 5.14
		for k := 0; k < bytes; {
			n, _, err := unix.Syscall6(unix.SYS_PREAD64, uintptr(fd), address+uintptr(k), uintptr(bytes-k),
				uintptr(at+k), 0, 0)
			if err != 0 || n == 0 {
				return fmt.Errorf("pread of %d bytes of shared memory: %d, %w", bytes-k, n, err)
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
