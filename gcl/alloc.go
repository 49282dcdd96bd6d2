package gcl

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// hugePageBytes is the size of a huge page on x86-64, and on arm64 with pages of 4 KiB.
const hugePageBytes = 2 << 20

// allocations holds what Alloc has given out, for as long as the connection lasts or until Free.
type allocations struct {
	mu     sync.Mutex                // guards what follows
	blocks map[unsafe.Pointer][]byte // by where the caller's slice begins
	closed bool
}

// Alloc returns n zeros in memory that begins with a page. From 2 MiB on it begins with a huge page and asks the system
// for huge pages, in which messages of many megabytes are faster; docs/design/alloc.md has what was measured. It is for
// buffers that are used again and again: getting it may take 0.3 ms for each MiB.
//
// Over a transport that shares memory between processes, which is a transport.Opener, the other replicas of the host
// read and write it without a copy. The memory is as any other if Options.PrivateAlloc says so, or where the system has
// no room for more shared memory: then what is in it is copied. Shared memory stays shared in a child that C code forks
// and that goes on without exec; os/exec has no such children.
//
// The memory is the caller's, and a part of Go's heap like any other: it may be used after Free and Close, and is
// collected when nobody refers to it any more. Until Free or Close the connection does, which counts as one with its
// Dups. It is rounded up to whole pages, and from 2 MiB on takes up to 4 MiB more address space, of which what lies
// outside the slice is never touched.
//
// Errors: n is negative, n elements are more than 16 TiB (2 GiB where ints are of 32 bits), the connection is
// closed. Memory that the machine does not have is the end of the program, as it is with make.
func Alloc[T tensor.Element](c *Comm, n int) ([]T, error) {
	if c.check() != nil {
		return nil, newError("alloc: nil Comm")
	}
	root := c.conn.root()
	o, _ := root.Endpoint.(transport.Opener)
	if c.options.PrivateAlloc {
		o = nil
	}
	p, err := root.allocs.alloc(n, tensor.DTypeOf[T]().Size(), o)
	if err != nil {
		return nil, errorf("alloc: %w", err)
	}
	return unsafe.Slice((*T)(p), n), nil
}

// Free makes the connection forget memory that it got from Alloc, so that it is collected with the caller's last
// reference to it. s begins where the slice that Alloc returned does. The caller must not free what a collective in
// progress uses. Errors: s is not from Alloc on this connection or one of its Dups, or freed already; the connection is
// closed, which has freed everything.
func Free[T tensor.Element](c *Comm, s []T) error {
	if c.check() != nil {
		return newError("free: nil Comm")
	}
	if err := c.conn.root().allocs.free(unsafe.Pointer(unsafe.SliceData(s))); err != nil {
		return errorf("free: %w", err)
	}
	return nil
}

// alloc returns where n elements of a size begin. Peers reach them if there is an Opener that can have it so.
func (m *allocations) alloc(n, size int, o transport.Opener) (unsafe.Pointer, error) {
	page := os.Getpagesize()
	huge := n >= hugePageBytes/size
	if huge {
		page = max(page, hugePageBytes)
	}
	switch {
	case n < 0:
		return nil, fmt.Errorf("%d elements", n)
	case n > (maxBytes-2*page)/size:
		return nil, fmt.Errorf("%d elements of %d bytes, want %d at most: %d bytes with room to begin with a page",
			n, size, (maxBytes-2*page)/size, int64(maxBytes))
	}
	length := max((n*size+page-1)/page*page, page)
	all := make([]byte, length+page-1)
	// The alignment of a heap object does not change: objects do not move.
	first := -int(uintptr(unsafe.Pointer(unsafe.SliceData(all)))) & (page - 1)
	block := all[first : first+length : first+length]
	if !opened(o, all, first, length) && huge {
		adviseHuge(block)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	if m.blocks == nil {
		m.blocks = map[unsafe.Pointer][]byte{}
	}
	p := unsafe.Pointer(unsafe.SliceData(block))
	m.blocks[p] = block
	return p, nil
}

// opened has peers reach length bytes of a heap object, from first on, until it is collected. It reports whether they
// do. A nil Opener opens nothing.
func opened(o transport.Opener, object []byte, first, length int) bool {
	if o == nil || o.OpenPages(object[first:first+length]) != nil {
		return false
	}
	// A finalizer, and no cleanup: the object's memory is not used again before its finalizer has run. The function
	// must not refer to the object. It may run at any time, after Close too.
	whole := len(object)
	runtime.SetFinalizer(unsafe.SliceData(object), func(p *byte) {
		o.ShutPages(unsafe.Slice(p, whole)[first : first+length : first+length])
	})
	return true
}

func (m *allocations) free(p unsafe.Pointer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	if _, ok := m.blocks[p]; !ok {
		return errors.New("the slice is not from Alloc on this connection, or freed already")
	}
	delete(m.blocks, p)
	return nil
}

// close forgets everything.
func (m *allocations) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed, m.blocks = true, nil
}
