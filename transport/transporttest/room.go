package transporttest

import (
	"os"
	"sync"
	"unsafe"

	"gogcl.dev/transport"
)

// roomBytes is the length of the pages of a room, unless a buffer is longer. No call of the suite has more in buffers.
const roomBytes = 256 << 10

// room is where the buffers lie that an endpoint lays open: pages that it has opened, used from the front. It belongs
// to the goroutine that makes the endpoint's calls.
type room struct {
	opener transport.Opener
	pages  [][]byte // each of one OpenPages
	block  int      // the pages in use: those before are full
	used   int      // bytes of them
}

// rooms are those of a case.
type rooms struct {
	mu  sync.Mutex // guards all
	all map[transport.Endpoint]*room
}

// of returns the room of an endpoint that is an Opener, and else nil.
func (r *rooms) of(e transport.Endpoint) *room {
	opener, ok := e.(transport.Opener)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[transport.Endpoint]*room{}
	}
	if r.all[e] == nil {
		r.all[e] = &room{opener: opener}
	}
	return r.all[e]
}

// shut shuts all pages. No call uses them any more.
func (r *rooms) shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, room := range r.all {
		for _, p := range room.pages {
			room.opener.ShutPages(p)
		}
	}
	r.all = nil
}

// buf returns n zeros in open pages.
func (r *room) buf(n int) []byte {
	for r.block < len(r.pages) && n > len(r.pages[r.block])-r.used {
		r.block, r.used = r.block+1, 0
	}
	if r.block == len(r.pages) {
		p := pagesOf(max(n, roomBytes))
		if err := r.opener.OpenPages(p); err != nil {
			panic(err) // as if there were no memory
		}
		r.pages = append(r.pages, p)
	}
	b := r.pages[r.block][r.used : r.used+n : r.used+n]
	r.used = min((r.used+n+15)&^15, len(r.pages[r.block])) // as aligned as the memory of make
	clear(b)
	return b
}

// pagesOf returns whole pages of at least n bytes that are one object of the heap, but for what lies around them.
func pagesOf(n int) []byte {
	page := os.Getpagesize()
	n = (n + page - 1) / page * page
	all := make([]byte, n+page)
	first := -int(uintptr(unsafe.Pointer(unsafe.SliceData(all)))) & (page - 1)
	return all[first : first+n : first+n]
}

// buf returns n zeros that the endpoint can lay open.
func (e near) buf(n int) []byte {
	if e.room == nil || n == 0 { // no bytes can always be laid open
		return make([]byte, n)
	}
	return e.room.buf(n)
}

// borrowing is for a call whose buffers are of no use after it: the function that it returns gives all back that buf
// has returned in between.
func (e near) borrowing() (end func()) {
	r := e.room
	if r == nil {
		return func() {}
	}
	block, used := r.block, r.used
	return func() { r.block, r.used = block, used }
}
