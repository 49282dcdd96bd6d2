package segment

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// pages are the pages of this process that lie in its segment.
type pages struct {
	mu      sync.Mutex // guards what follows, up to the empty line, and that the descriptor of the segment is open
	free    extents
	used    map[uintptr]extent // by address; also those that Retire has made private
	retired bool
	failed  []unretired
	closed  bool

	open atomic.Pointer[[]opened] // in the order of addresses; for Offset, which takes no lock; a list is not changed
}

// maxOpen bounds the blocks of pages that this process has open in all of its segments. Each OpenPages makes two more
// mappings, of which Linux lets a process have 65,530, and Go's runtime ends the program when it gets no more.
const maxOpen = 16_000

// openBlocks counts the blocks that are open in all segments, and those that Retire has made private, until ShutPages.
var openBlocks atomic.Int64

// opened is where memory lies.
type opened struct {
	from, to uintptr // addresses
	at       uint64  // the offset of from in the segment
}

// unretired is what Retire could not make private.
type unretired struct {
	opened
	mapped bool // it is mapped as private memory, and not all of it is a copy
}

func newPages(form Form) *pages {
	p := &pages{used: map[uintptr]extent{}}
	if form.Pages > 0 {
		p.free.put(extent{int(form.blockBytes()), int(form.Pages)})
	}
	return p
}

// OpenPages has pages of this process lie in its segment from now on. They are whole pages of one heap object, lie
// where they lay, and hold zeros. From 2 MiB on they are in huge pages if the system has them, and if they begin with
// one. A finalizer of the object gives them back by ShutPages.
//
// Errors: these are not whole pages, or are open already; the pages of the segment are in use; the system has no memory
// for them, or no more mappings (vm.max_map_count); the segment is closed, or Retire was called. The pages are
// ordinary memory then, and hold zeros if they have before.
func (s *Segment) OpenPages(pages []byte) error {
	p, page := s.pages, os.Getpagesize()
	at := addressOf(pages)
	if len(pages) == 0 || len(pages)%page != 0 || at%uintptr(page) != 0 {
		return fmt.Errorf("%d bytes at %#x, want whole pages of %d", len(pages), at, page)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return errors.New("the shared memory is closed")
	case p.retired:
		return errors.New("the pages of the shared memory are private: a call was given up that another process is in")
	case p.overlaps(at, len(pages)):
		return fmt.Errorf("of the %d bytes at %#x some are in shared memory already", len(pages), at)
	}
	counted := false
	defer func() {
		if !counted {
			openBlocks.Add(-1)
		}
	}()
	if openBlocks.Add(1) > maxOpen {
		return fmt.Errorf("%d blocks of memory of this process are in shared memory, and no more may be", maxOpen)
	}
	align := page
	if len(pages) >= hugeBytes {
		align = max(page, hugeBytes)
	}
	x, ok := p.free.take(len(pages), align)
	if !ok {
		return fmt.Errorf("the shared memory of this process has no room for %d bytes of pages: %d of %d are in use",
			len(pages), int(s.form.Pages)-p.free.bytes(), s.form.Pages)
	}
	if err := sharePages(s.fd, x.at, pages); err != nil {
		if s.punch(x.at, x.bytes) == nil {
			p.free.put(x)
		}
		return err
	}
	p.used[at], counted = x, true
	p.list(func(list []opened) []opened {
		return slices.Insert(list, after(list, at), opened{at, at + uintptr(len(pages)), uint64(x.at)})
	})
	return nil
}

// ShutPages undoes OpenPages: the pages are this process's alone, and hold zeros. No call uses them. It does nothing
// with others, and works after Close too.
func (s *Segment) ShutPages(pages []byte) {
	p, at := s.pages, addressOf(pages)
	p.mu.Lock()
	defer p.mu.Unlock()
	x, ok := p.used[at]
	if !ok || x.bytes != len(pages) {
		return
	}
	delete(p.used, at)
	p.list(func(list []opened) []opened {
		return slices.DeleteFunc(list, func(o opened) bool { return o.from == at })
	})
	if p.closed { // the number of the descriptor may be another one's
		removePages(pages)
	}
	if unsharePages(pages) != nil {
		return // the heap uses them as they are, in memory of the segment that nobody else gets
	}
	openBlocks.Add(-1)
	if !p.closed && s.punch(x.at, x.bytes) == nil {
		p.free.put(x)
	}
}

// Offset is where memory of this process lies in its segment. ok is false if it does not; an empty slice lies at 0. It
// takes no lock and allocates nothing.
func (s *Segment) Offset(b []byte) (offset uint64, ok bool) {
	if len(b) == 0 {
		return 0, true
	}
	list := s.pages.open.Load()
	if list == nil {
		return 0, false
	}
	at := addressOf(b)
	i := after(*list, at)
	if i == len(*list) {
		return 0, false
	}
	if o := &(*list)[i]; at >= o.from && uintptr(len(b)) <= o.to-at {
		return o.at + uint64(at-o.from), true
	}
	return 0, false
}

// Retire makes all pages that are open private copies with what they held. A process that was stopped in the middle of
// a call then writes where nobody looks. Other goroutines may use the pages meanwhile. Nothing is open afterwards, and
// OpenPages is an error. If Retire fails some pages may be as they were; another Retire tries these again.
func (s *Segment) Retire() error {
	p := s.pages
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.New("the shared memory is closed")
	}
	p.retired = true
	again := p.failed
	if list := p.open.Swap(nil); list != nil {
		for _, o := range *list {
			again = append(again, unretired{opened: o})
		}
	}
	p.failed = nil
	var errs []error
	for _, o := range again {
		x, ok := p.used[o.from]
		if !ok { // ShutPages has come since
			continue
		}
		if err := retirePages(s.fd, x.at, o.from, x.bytes, &o.mapped); err != nil {
			errs, p.failed = append(errs, err), append(p.failed, o)
			continue
		}
		s.punch(x.at, x.bytes)
	}
	return errors.Join(errs...)
}

// closePages is Close for pages.
func (s *Segment) closePages() {
	s.pages.mu.Lock()
	defer s.pages.mu.Unlock()
	s.pages.closed = true
	s.pages.open.Store(nil)
}

// Bytes are the n bytes at an offset of the segment of another process, as its Offset has said; ok is false unless
// there are that many pages. 0 bytes are nil.
func (p *Peer) Bytes(offset, n uint64) (b []byte, ok bool) {
	if n == 0 {
		return nil, true
	}
	from, length := uint64(len(p.memory)), uint64(len(p.pages))
	if offset < from || offset-from > length || n > length-(offset-from) {
		return nil, false
	}
	at := offset - from
	return p.pages[at : at+n : at+n], true
}

// list replaces the list of what is open by a changed copy. The caller holds p.mu.
func (p *pages) list(change func([]opened) []opened) {
	var list []opened
	if old := p.open.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = change(list)
	p.open.Store(&list)
}

// overlaps reports whether some of the bytes at an address are in use. The caller holds p.mu.
func (p *pages) overlaps(at uintptr, bytes int) bool {
	list := p.open.Load()
	if list == nil {
		return false
	}
	i := after(*list, at)
	return i < len(*list) && (*list)[i].from < at+uintptr(bytes)
}

// after is the first of a list that ends behind an address. The loop is written out: Offset takes twice as long with
// slices.BinarySearchFunc.
func after(list []opened, at uintptr) int {
	lo, hi := 0, len(list)
	for lo < hi {
		if m := int(uint(lo+hi) / 2); list[m].to > at {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// extents are parts of a segment, in their order. No two touch.
type extents []extent

// take takes the first of so many bytes that begins at a multiple of align.
func (e *extents) take(bytes, align int) (x extent, ok bool) {
	for i, free := range *e {
		at := (free.at + align - 1) / align * align
		end := free.at + free.bytes
		if at > end || end-at < bytes {
			continue
		}
		var rest []extent
		if at > free.at {
			rest = append(rest, extent{free.at, at - free.at})
		}
		if at+bytes < end {
			rest = append(rest, extent{at + bytes, end - at - bytes})
		}
		*e = slices.Replace(*e, i, i+1, rest...)
		return extent{at, bytes}, true
	}
	return extent{}, false
}

// put adds one that touches none, or is joined to those that it touches.
func (e *extents) put(x extent) {
	i, _ := slices.BinarySearchFunc(*e, x.at, func(x extent, at int) int { return cmp.Compare(x.at, at) })
	j := i
	if i > 0 && (*e)[i-1].at+(*e)[i-1].bytes == x.at {
		i--
		x = extent{(*e)[i].at, (*e)[i].bytes + x.bytes}
	}
	if j < len(*e) && x.at+x.bytes == (*e)[j].at {
		x.bytes += (*e)[j].bytes
		j++
	}
	*e = slices.Replace(*e, i, j, x)
}

// bytes are those of all.
func (e extents) bytes() (sum int) {
	for _, x := range e {
		sum += x.bytes
	}
	return sum
}
