package gcl

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages for memory that begins and ends with one. It is only advice, and so is its failure: a
// kernel without huge pages, or one that has none to give.
//
// Go's heap hands out memory that has been used before, cleared and in small pages; a huge page comes of itself only
// where nothing has been touched yet. The second call, of Linux 6.1, puts pages that are there already together
// (measured in docs/design/alloc.md).
func adviseHuge(b []byte) {
	if unix.Madvise(b, unix.MADV_HUGEPAGE) == nil {
		_ = unix.Madvise(b, unix.MADV_COLLAPSE)
	}
}
