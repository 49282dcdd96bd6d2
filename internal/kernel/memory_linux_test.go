package kernel

import (
	"bytes"
	"os"
	"testing"
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

// fenced is a page between two that nobody may touch: what reads or writes beyond it dies of it.
func fenced(t *testing.T) []byte {
	page := os.Getpagesize()
	b, err := unix.Mmap(-1, 0, 3*page, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil {
		err = unix.Mprotect(b[page:2*page], unix.PROT_READ|unix.PROT_WRITE)
	}
	if err != nil {
		t.Skip("no pages to be had: ", err)
	}
	t.Cleanup(func() { unix.Munmap(b) })
	return b[page : 2*page]
}

// TestFencesOfProducts multiplies matrices that end, or begin, where memory does.
func TestFencesOfProducts(t *testing.T) {
	pages := [3][]byte{fenced(t), fenced(t), fenced(t)}
	for _, v := range versions {
		if v.matMul == nil {
			continue
		}
		for _, s := range matMulShapes() {
			for _, transposed := range []bool{false, true} {
				for _, end := range []bool{false, true} {
					p := Product{M: s[0], N: s[1], K: s[2], CRow: s[1], ARow: s[2], AColumn: 1, BRow: s[1]}
					if transposed {
						p.ARow, p.AColumn = 1, s[0]
					}
					var of [3][]float32
					fits := true
					for i, n := range []int{p.M * p.N, p.M * p.K, p.K * p.N} {
						if fits = fits && 4*n <= len(pages[i]); !fits || n == 0 {
							continue
						}
						from := pages[i]
						if end {
							from = from[len(from)-4*n:]
						}
						of[i] = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(from))), n)
					}
					if fits {
						chosenOnly(v, func() { MatMul(of[0], of[1], of[2], p) })
					}
				}
			}
		}
	}
}

// TestFences runs loops on operands that end, or begin, where memory does.
func TestFences(t *testing.T) {
	var pages [5][]byte
	for i := range pages {
		pages[i] = fenced(t)
	}
	const longest = 130
	at := func(page, n int, end bool) []byte {
		if end {
			return pages[page][len(pages[page])-n:]
		}
		return pages[page][:n]
	}
	eachLoop(t, all, func(t *testing.T, l loop) {
		for n := range longest {
			for _, end := range []bool{false, true} {
				l.run(at(0, n*l.dst.Size(), end), at(1, n*l.src.Size(), end), at(2, n*l.src.Size(), end))
			}
		}
	})
	eachFold(t, anyFold, func(t *testing.T, f Fold, loop func(dsts, srcs [][]byte, by int, stream bool)) {
		for n := range longest {
			for _, end := range []bool{false, true} {
				var o [5][]byte
				for i := range o {
					o[i] = at(i, n*f.Type.Size(), end)
				}
				loop(o[:2], o[2:], 1+n%3, n%2 == 0)
				loop(o[:1], o[1:2], 1, n%2 == 0)
			}
		}
	})
	for n := range 600 {
		for _, end := range []bool{false, true} {
			a, b := at(0, n, end), at(1, n, end)
			if Copy(a, b, true); !bytes.Equal(a, b) {
				t.Fatalf("a copy of %d bytes is not right", n)
			}
		}
	}
}
