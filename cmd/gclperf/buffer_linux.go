package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// hugePage is what transparent huge pages are aligned to on x86-64 and on arm64 with pages of 4 KiB.
const hugePage = 2 << 20

// newBuffer makes the buffer of a replica: n elements that begin with a page, in huge pages from 2 MiB up where the system allows. free gives it back.
//
// It is the one place where buffers come from; gcl.Alloc is to take its place.
func newBuffer[T tensor.Element](_ *gcl.Comm, n int) (buffer []T, free func(), err error) {
	bytes := n * tensor.DTypeOf[T]().Size()
	memory, err := unix.Mmap(-1, 0, bytes+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, fmt.Errorf("%s for a buffer: %w", formatSize(bytes), err)
	}
	free = func() { _ = unix.Munmap(memory) } // it is the very slice that Mmap returned
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) % hugePage)
	if bytes >= hugePage {
		_ = unix.Madvise(memory[skip:skip+bytes], unix.MADV_HUGEPAGE) // a kernel without them does without
	}
	buffer, err = tensor.FromBytes[T](memory[skip : skip+bytes : skip+bytes])
	if err != nil {
		free()
		return nil, nil, err
	}
	return buffer, free, nil
}
