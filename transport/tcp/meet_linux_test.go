package tcp

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
)

// nearMeshes connects n replicas that share memory, and closes them when the test ends.
func nearMeshes(t *testing.T, n int) ([]*nearby, []*mesh) {
	t.Helper()
	leaktest.Check(t)
	eps, all := meshes(t, n, Config{})
	near := make([]*nearby, n)
	for i, e := range eps {
		near[i] = e.(*nearby)
	}
	t.Cleanup(func() {
		for _, e := range eps {
			e.Close()
		}
	})
	return near, all
}

// visitOf makes a replica's visit of group 7.
func visitOf(t *testing.T, e *nearby, members ...int) *visit {
	t.Helper()
	v, err := e.find(7, members)
	if err != nil {
		t.Fatal(err)
	}
	call := transport.Call{Seq: 1, Group: 7}
	v.Begin(&call)
	return v
}

// TestFindVisit: a group has one visit, and always the same members, of which the replica is one.
func TestFindVisit(t *testing.T) {
	near, _ := nearMeshes(t, 3)
	v := visitOf(t, near[0], 0, 2)
	for _, members := range [][]int{v.given, {0, 2}} {
		if again, err := near[0].find(7, members); again != v || err != nil {
			t.Errorf("%v, %v", again, err)
		}
	}
	for _, members := range [][]int{{2, 0}, {0, 1}, {0, 1, 2}, {0}} {
		_, err := near[0].find(7, members)
		if err == nil || errors.As(err, new(*transport.ArgumentError)) {
			t.Errorf("group 7 has other members, %v: %v", members, err)
		}
	}
	for _, members := range [][]int{nil, {1, 2}, {0, 0}, {0, 3}, {-1, 0}} {
		if _, err := near[0].find(8, members); !errors.As(err, new(*transport.ArgumentError)) {
			t.Errorf("members %v: %v", members, err)
		}
	}
	if _, err := near[0].newVisit(7, []int{0, 2}); err == nil {
		t.Error("a second seat of one group: no error")
	}
}

// TestShow: what a member lays open is what another one finds, the same bytes. What is not in open pages is hidden, and
// so is a list that is too long.
func TestShow(t *testing.T) {
	near, _ := nearMeshes(t, 2)
	mine, theirs := visitOf(t, near[0], 0, 1), visitOf(t, near[1], 0, 1)
	pages, heap := openedBytes(t, near[0], 2*os.Getpagesize()), make([]byte, 10)
	if theirs.seat(0, 0) == nil {
		t.Fatal("the seat is not found")
	}
	shut := pages[:len(pages):len(pages)]
	for name, c := range map[string]struct {
		mine transport.Memory
		open bool
	}{
		"nothing":    {transport.Memory{}, true},
		"buffers":    {transport.Memory{In: pages[5:100], Out: pages[200:300], Scratch: shut}, true},
		"lists":      {transport.Memory{Ins: [][]byte{pages[:10], nil}, Outs: [][]byte{pages[9:10], {}, pages[1:2]}}, true},
		"long lists": {transport.Memory{Ins: slices.Repeat([][]byte{pages[:1]}, 2), Outs: make([][]byte, openLists-2)}, true},
		"too many":   {transport.Memory{Ins: slices.Repeat([][]byte{pages[:1]}, 2), Outs: make([][]byte, openLists-1)}, false},
		"In":         {transport.Memory{In: heap, Out: pages[:1]}, false},
		"Out":        {transport.Memory{Out: heap}, false},
		"Scratch":    {transport.Memory{Scratch: heap}, false},
		"one of Ins": {transport.Memory{Ins: [][]byte{heap, pages}}, false},
		"of Outs":    {transport.Memory{In: pages, Outs: [][]byte{pages, heap, pages}}, false},
	} {
		if open := mine.Show(c.mine); open != c.open {
			t.Errorf("%s: open %v, want %v", name, open, c.open)
		}
		if !c.open {
			continue
		}
		views := make([]transport.Memory, 2)
		if err := theirs.Views(views); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := append(append([][]byte{views[0].In, views[0].Out, views[0].Scratch}, views[0].Ins...), views[0].Outs...)
		want := append(append([][]byte{c.mine.In, c.mine.Out, c.mine.Scratch}, c.mine.Ins...), c.mine.Outs...)
		if ins := len(views[0].Ins); ins != len(c.mine.Ins) || len(got) != len(want) {
			t.Errorf("%s: %d Ins of %d buffers, want %d of %d", name, ins, len(got), len(c.mine.Ins), len(want))
			continue
		}
		for i := range want {
			for k := range want[i] {
				want[i][k]++
			}
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("%s: buffer %d differs", name, i)
			}
		}
	}
}

// TestViewsOfGarbage: numbers that lead out of a member's pages or of its seat are an error, and nothing else.
func TestViewsOfGarbage(t *testing.T) {
	near, all := nearMeshes(t, 2)
	mine, theirs := visitOf(t, near[0], 0, 1), visitOf(t, near[1], 0, 1)
	pages := openedBytes(t, near[0], os.Getpagesize())
	if theirs.seat(0, 0) == nil {
		t.Fatal("the seat is not found")
	}
	length := uint64(smallForm.Bytes)
	for _, garbage := range [][]uint64{
		{openLists + 1, 0}, {0, openLists + 1}, {1, openLists}, {1 << 63, 1 << 63}, {0, 1 << 63}, {1<<64 - 1, 2},
		{0, 0, 4096, 100}, {0, 0, length - 99, 100}, {0, 0, length, 1}, {0, 0, length - 4096, 1 << 63}, {0, 0, 1<<64 - 1, 2},
		{0, 0, 0, 0, 4096, 100}, {0, 0, 0, 0, 0, 0, 4096, 100}, {2, 0, 0, 0, 0, 0, 0, 0, 4096, 100},
	} {
		if !mine.Show(transport.Memory{Ins: [][]byte{pages, pages}, Outs: [][]byte{pages}}) {
			t.Fatal("the pages are not open")
		}
		for i, number := range garbage {
			binary.NativeEndian.PutUint64(mine.seats[0][8*i:], number)
		}
		views := make([]transport.Memory, 2)
		if err := theirs.Views(views); err == nil || !strings.Contains(err.Error(), "replica 0 lays open what is not") {
			t.Errorf("%d: %v", garbage, err)
		}
	}
	// One end of the lists is right, the other is not.
	own, ok := all[0].shm.own.Offset(pages)
	if !ok {
		t.Fatal("the pages are not open")
	}
	last := mine.seats[0][openHead+5*openEach:]
	mine.Show(transport.Memory{Ins: [][]byte{pages, pages}, Outs: [][]byte{pages}})
	for _, offset := range []uint64{own, 4096} {
		binary.NativeEndian.PutUint64(last, offset)
		if err := theirs.Views(make([]transport.Memory, 2)); err == nil != (offset == own) {
			t.Errorf("the last of the buffers at %d, which lies at %d: %v", offset, own, err)
		}
	}
}

// TestSeatWakes: who makes a seat wakes the members that sleep, and so does Ring, also where it has not found their
// lanes before. Nobody else is rung.
func TestSeatWakes(t *testing.T) {
	near, all := nearMeshes(t, 3)
	asleep := func(r int) bool {
		return all[(r+1)%3].at(r).neighbour().segment.Lane(near[r].Number()).Load() != 0
	}
	for _, wakes := range []func() *visit{
		func() *visit { return visitOf(t, near[0], 0, 2) },
		func() *visit { v := visitOf(t, near[0], 0, 2); v.Ring(); return v },
		func() *visit { v := visitOf(t, near[0], 0, 2); v.asleep[1] = nil; v.Proclaim(); return v },
	} {
		for r := range near {
			all[(r+1)%3].at(r).neighbour().segment.Lane(near[r].Number()).Store(1)
		}
		wakes()
		if asleep(2) || !asleep(1) || !asleep(0) {
			t.Errorf("asleep: %v, want replica 2 alone to be woken", []bool{asleep(0), asleep(1), asleep(2)})
		}
	}
}

// TestStuck: a member that is inside after an abort is waited for some time. Then the memory is no longer that which it
// reaches. One whose process has ended is not waited for.
func TestStuck(t *testing.T) {
	near, all := nearMeshes(t, 3)
	v := visitOf(t, near[0], 0, 1, 2)
	pages := openedBytes(t, near[0], os.Getpagesize())
	open := func() bool { _, ok := all[0].shm.own.Offset(pages); return ok }
	v.until = time.Now().Add(time.Hour)
	if v.Stuck(1) || !open() {
		t.Error("a member that may go on is not waited for")
	}
	ended := &all[0].at(2).ended
	ended.Store(true)
	lives := all[0].at(2).process
	all[0].at(2).process = &process{os.Getpid(), "0"} // the number is another process's by now
	if !v.Stuck(2) || v.Stuck(1) || !open() {
		t.Error("a member whose process has ended is waited for, or the others are not")
	}
	all[0].at(2).process = lives
	ended.Store(false)
	v.until = time.Now().Add(-time.Nanosecond)
	if !v.Stuck(1) || open() {
		t.Errorf("the memory is still shared (%v), or its member is waited for", open())
	}
}

// workFunc is a Worker.
type workFunc func(i int)

func (f workFunc) Piece(_ []transport.Memory, _, i int) { f(i) }

// TestVacates: a call that fails while another member does not come out of a piece returns when that one cannot touch
// its memory any more: the memory is no longer shared. It fails in a piece of its own, or as it waits.
func TestVacates(t *testing.T) {
	for _, pieces := range []int{2, 1} {
		near, all := nearMeshes(t, 2)
		cause := errors.New("gives up")
		pages := [][]byte{openedBytes(t, near[0], os.Getpagesize()), openedBytes(t, near[1], os.Getpagesize())}
		var begun, stays sync.WaitGroup // pieces; the members that stay in theirs
		begun.Add(pieces)
		stays.Add(1)
		var first atomic.Int32 // the replica that stays, and 1
		errs := make([]error, 2)
		var members sync.WaitGroup
		for r, e := range near {
			members.Go(func() {
				call := transport.Call{Seq: 1, Group: 7}
				errs[r] = e.Share(t.Context(), call, []int{0, 1}, transport.Memory{In: pages[r]}, []int{pieces},
					workFunc(func(int) {
						begun.Done()
						begun.Wait()
						switch {
						case first.CompareAndSwap(0, int32(r+1)):
							if pieces == 1 { // the other finds none left, and waits
								near[1-r].Abort(cause)
							}
							stays.Wait()
						default:
							e.Abort(cause)
						}
					}))
				if first.Load() == int32(r+1) {
					return
				}
				if _, open := all[r].shm.own.Offset(pages[r]); open {
					t.Errorf("%d pieces: a call has returned, and another member reaches its memory", pieces)
				}
				stays.Done()
			})
		}
		members.Wait()
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), cause.Error()) {
				t.Errorf("%d pieces, replica %d: %v, want %v", pieces, r, err, cause)
			}
		}
	}
}

// TestAbortedWords: an abort sets the words of all segments, and a member looks at that of its own, and hears who has
// aborted where that one does not say why.
func TestAbortedWords(t *testing.T) {
	leaktest.Check(t)
	const silence = 100 * time.Millisecond
	eps, all := meshes(t, 3, Config{})
	defer func() {
		for _, e := range eps {
			e.Close()
		}
	}()
	e := eps[2].(*nearby)
	v := visitOf(t, e, 0, 1, 2)
	if err := v.Interruption(); err != nil {
		t.Fatal(err)
	}
	all[1].now.Load().Aborting()
	all[0].now.Load().Aborting() // which has heard it from replica 1
	for r, m := range all {
		if m.shm.own.Aborted().Load() != 1+1 {
			t.Errorf("the word of replica %d is %d, want that of replica 1", r, m.shm.own.Aborted().Load())
		}
	}
	err := v.reason(all[2].shm.own.Aborted().Load(), silence)
	if lost, ok := errors.AsType[*transport.LostError](err); !ok || lost.Replica != 1 || lost.Process == "" ||
		!strings.Contains(err.Error(), "not said why for 100ms") {
		t.Errorf("replica 1 does not say why: %v", err)
	}
	if again := v.Interruption(); again != err {
		t.Errorf("%v, want %v", again, err)
	}
	for _, word := range []uint64{2 + 1, 3 + 1, 1 << 63} { // of this replica, and of none
		err := v.reason(word, silence)
		if err == nil || !strings.Contains(err.Error(), "a process has overwritten it") {
			t.Errorf("word %#x: %v", word, err)
		}
	}
	v.silent = nil
	cause := errors.New("here is why")
	time.AfterFunc(silence, func() { e.Abort(cause) }) // while it looks, or before
	if err := v.Interruption(); !errors.Is(err, cause) {
		t.Errorf("%v, want %v", err, cause)
	}
}

// TestCheckOfVisit: a visit finds garbage in the segment of its process and in what members share.
func TestCheckOfVisit(t *testing.T) {
	near, all := nearMeshes(t, 2)
	v := visitOf(t, near[0], 0, 1)
	near[0].now = v
	if err := near[0].Check(); err != nil {
		t.Fatal(err)
	}
	header := all[0].shm.own.Memory()
	header[0]++
	if err := near[0].Check(); err == nil {
		t.Error("the header of the segment is garbage: no error")
	}
	header[0]--
	v.Arrive()
	if err := near[0].Check(); err != nil {
		t.Fatal(err)
	}
	v.Arrive()
	clear(v.seats[0][openBytes:])
	if err := near[0].Check(); err == nil {
		t.Error("the member's own seat is garbage: no error")
	}
}

// TestForgetLane: when all have left a lane its seats are given back.
func TestForgetLane(t *testing.T) {
	near, all := nearMeshes(t, 2)
	visitOf(t, near[0], 0, 1)
	found := func() bool {
		return all[1].at(0).neighbour().segment.Seat(near[0].Number(), 7, seatBytes) != nil
	}
	if !found() {
		t.Error("the seat is not found")
	}
	all[0].now.Load().Forget(near[0].Number())
	if found() {
		t.Error("the seat is not given back")
	}
}

// TestShareForgets: an endpoint holds on to nobody's buffers after a Worker has panicked.
func TestShareForgets(t *testing.T) {
	near, _ := nearMeshes(t, 1)
	e := near[0]
	pages := openedBytes(t, e, 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic has not come through")
			}
		}()
		call := transport.Call{Group: 7, Seq: 1}
		e.Share(t.Context(), call, []int{0}, transport.Memory{In: pages}, []int{1}, workFunc(func(int) { panic("no") }))
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

// TestElsewhere: a replica that makes a call by messages sees a broadcast of another one in its place, whether it has
// been at the table of the group or not, and none in the place of another call.
func TestElsewhere(t *testing.T) {
	near, _ := nearMeshes(t, 3)
	members := []int{0, 1, 2}
	visitOf(t, near[1], members...)
	sent := transport.Call{Group: 7, Seq: 2, Count: 8}
	if err := near[0].Broadcast(t.Context(), sent, members, 0, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	for _, e := range near[1:] {
		for _, call := range []transport.Call{{Group: 7, Seq: 2, Count: 9}, {Group: 7, Seq: 3}, {Group: 8, Seq: 2}} {
			mismatch := e.Elsewhere(&call)
			if want := call.Count == 9; (mismatch != nil) != want {
				t.Errorf("replica %d in %v: %v", e.Rank(), call, mismatch)
			} else if want && (mismatch.Replica != e.Rank() || mismatch.Peer != 0 || mismatch.Mine != call) {
				t.Errorf("replica %d in %v: %+v", e.Rank(), call, mismatch)
			}
		}
	}
	near[0].Abort(errors.New("the end of the test"))
}

// TestInstead: a replica that has left after another call in place of a broadcast is a mismatch, and one that has left
// after none is not.
func TestInstead(t *testing.T) {
	near, _ := nearMeshes(t, 3)
	members := []int{0, 1, 2}
	sent := transport.Call{Group: 7, Seq: 1, Count: 8}
	if err := near[0].Broadcast(t.Context(), sent, members, 0, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	theirs := transport.Call{Group: 7, Seq: 1, Count: 9}
	if err := near[1].Exchange(t.Context(), theirs, nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range []int{1, 2} {
		near[r].Close()
		for ok := false; !ok; {
			_, ok = near[0].Lane.Left(r)
			runtime.Gosched()
		}
	}
	if mismatch := near[0].Instead(1); mismatch == nil || mismatch.Peer != 1 || mismatch.Theirs != theirs {
		t.Errorf("%v of replica 1, want that with %v", mismatch, theirs)
	}
	if mismatch := near[0].Instead(2); mismatch != nil {
		t.Errorf("%v of replica 2", mismatch)
	}
}
