package kernel

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePages is n zero bytes that start at a page, a huge one where the system gives them.
func hugePages(n int) []byte {
	const huge = 2 << 20
	b, err := unix.Mmap(-1, 0, n+2*huge, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return aligned(n)
	}
	b = b[-uintptr(unsafe.Pointer(unsafe.SliceData(b)))&(huge-1):]
	unix.Madvise(b[:(n+huge-1)&^(huge-1)], unix.MADV_HUGEPAGE)
	for i := 0; i < n; i += 4096 {
		b[i] = 0
	}
	return b[:n]
}

// freePages gives back the memory of hugePages, all but the addresses.
func freePages(b []byte) { unix.Madvise(b[:(len(b)+4095)&^4095:cap(b)], unix.MADV_DONTNEED) }
