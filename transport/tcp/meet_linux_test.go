package tcp

import (
	"context"
	"os"
	"testing"
	"unsafe"

	"gogcl.dev/transport"
)

// panics is a Worker whose pieces panic.
type panics struct{}

func (panics) Piece([]transport.Memory, int, int) { panic("no") }

// TestShareForgets: an endpoint holds on to nobody's buffers after a Worker has panicked.
func TestShareForgets(t *testing.T) {
	e := open(t, 1, Config{Network: Shm})[0].(*nearby)
	defer e.Close()
	page := os.Getpagesize()
	object := make([]byte, 2*page)
	first := -int(uintptr(unsafe.Pointer(&object[0]))) & (page - 1)
	pages := object[first : first+page : first+page]
	if err := e.OpenPages(pages); err != nil {
		t.Fatal(err)
	}
	defer e.ShutPages(pages)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic has not come through")
			}
		}()
		call := transport.Call{Group: 7, Seq: 1}
		e.Share(context.Background(), call, []int{0}, transport.Memory{In: pages}, []int{1}, panics{})
	}()
	v := e.visits[7]
	if v.mine.In != nil {
		t.Error("the endpoint still has the buffer")
	}
	if e.now != nil || e.Err() == nil {
		t.Error("the call has not ended, or not in an abort")
	}
}

// TestGone: a peer whose connection has ended may be alive, and inside, unless its process is known to have ended.
func TestGone(t *testing.T) {
	own := newProcess(processName(), processName())
	if own == nil {
		t.Skip("the system does not tell of processes")
	}
	for _, p := range []*process{nil, own} {
		c := &control{process: p}
		c.ended.Store(true)
		if c.gone() {
			t.Errorf("a replica of process %v whose connection has ended counts as gone", p)
		}
	}
	ended := &control{process: &process{own.pid, "0"}} // the number is another process's by now
	if ended.gone() {
		t.Error("a replica whose connection has not ended counts as gone")
	}
	ended.ended.Store(true)
	if !ended.gone() {
		t.Error("a replica whose process and connection have ended does not count as gone")
	}
}
