package meeting

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"gogcl.dev/transport"
)

// plainHost is the Host of members that are goroutines, which look until there is nothing to wait for.
type plainHost struct {
	*Visit
	aborted *atomic.Bool // of all
}

var errPlainAbort = errors.New("another member has failed")

func (h *plainHost) Wait() error {
	for !h.Met() {
		if h.aborted.Load() {
			return errPlainAbort
		}
		if err := h.Check(true); err != nil {
			return h.Fail(err)
		}
		runtime.Gosched()
	}
	return nil
}

func (h *plainHost) Interruption() error {
	if h.aborted.Load() {
		return errPlainAbort
	}
	return nil
}

func (h *plainHost) Fail(err error) error {
	h.aborted.Store(true)
	return err
}

func (h *plainHost) Ring()                                {}
func (h *plainHost) Proclaim()                            {}
func (h *plainHost) Deserted() error                      { return nil }
func (h *plainHost) Left(int) Parting                     { return nil }
func (h *plainHost) Crowded() bool                        { return true }
func (h *plainHost) Show(transport.Memory) bool           { return true }
func (h *plainHost) Views(views []transport.Memory) error { return nil }
func (h *plainHost) Stuck(int) bool                       { return true }

// idle is a Worker that does nothing.
type idle struct{}

func (idle) Piece([]transport.Memory, int, int) {}

// apart makes the views of three members that have met: each has its Place. They count at barriers.
func apart(t *testing.T) (visits []*Visit, places []*Place, aborted *atomic.Bool) {
	t.Helper()
	aborted = new(atomic.Bool)
	for range 3 {
		places = append(places, new(Place))
	}
	for i := range 3 {
		v := new(Visit)
		table := NewTableApart([]int{0, 1, 2}, func(place int) *Place { return places[place] })
		v.Init(table, i, &plainHost{v, aborted})
		visits = append(visits, v)
	}
	for _, err := range meet(visits) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return visits, places, aborted
}

// meet has all members gather, broadcast and share, each until a call fails.
func meet(visits []*Visit) []error {
	errs := make([]error, len(visits))
	var all sync.WaitGroup
	for i, v := range visits {
		all.Go(func() {
			steps := []func() error{
				func() error { _, _, err := v.Gather([]byte{1}, 1, nil); return err },
				func() error { return v.Broadcast(1, []byte{1}) },
				func() error { return v.Share(transport.Memory{}, []int{5}, idle{}) },
				func() error { return v.Share(transport.Memory{}, []int{3, 3}, idle{}) },
			}
			for _, step := range steps {
				v.Begin(new(transport.Call))
				if errs[i] = step(); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errs
}

// TestCheckOwn: a member finds that a number has been overwritten that it has written, wherever it waits.
func TestCheckOwn(t *testing.T) {
	for name, overwrite := range map[string]func(p *Place){
		"notice 0": func(p *Place) { p.seat.notices[0].number.Store(0) },
		"notice 1": func(p *Place) { p.seat.notices[1].number.Store(1 << 40) },
		"synced":   func(p *Place) { p.seat.synced.Store(0) },
		"queue":    func(p *Place) { p.seat.queue[1].number.Store(0) },
		"done":     func(p *Place) { p.hall.done.Store(0) },
		"done too": func(p *Place) { p.hall.done.Add(1) },
	} {
		visits, places, _ := apart(t)
		if err := visits[0].Check(false); err != nil {
			t.Fatal(err)
		}
		if overwrite(places[0]); visits[0].Check(false) != errOverwritten {
			t.Errorf("%s: not found", name)
		}
	}
	visits, places, _ := apart(t)
	for range 70 / 3 * 4 { // the queue is full
		if err := errors.Join(meet(visits)...); err != nil {
			t.Fatal(err)
		}
	}
	for k := range places[0].seat.queue {
		number := &places[0].seat.queue[k].number
		before := number.Load()
		if number.Store(0); visits[0].Check(false) != errOverwritten {
			t.Errorf("number %d of the queue: not found", k)
		}
		number.Store(before)
	}
	if err := visits[0].Check(false); err != nil {
		t.Error(err)
	}
}

// TestHallOverwrittenInMeetings: numbers in the hall that make no sense end the next operation of all.
func TestHallOverwrittenInMeetings(t *testing.T) {
	for name, overwrite := range map[string]func(h *Hall){
		"count 0":   func(h *Hall) { h.count.Store(0) },
		"count -1":  func(h *Hall) { h.count.Store(1<<64 - 1) },
		"count + 3": func(h *Hall) { h.count.Add(3) },
	} {
		visits, places, _ := apart(t)
		overwrite(&places[0].hall)
		errs := meet(visits)
		if !slices.Contains(errs, errOverwritten) || slices.Contains(errs, nil) {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

// overwriter is a Worker that overwrites the hall in its first piece.
type overwriter struct {
	once      *sync.Once
	overwrite func()
}

func (w overwriter) Piece([]transport.Memory, int, int) { w.once.Do(w.overwrite) }

// TestPiecesOverwritten: numbers of pieces that make no sense fail the Share at all members.
func TestPiecesOverwritten(t *testing.T) {
	for name, overwrite := range map[string]func(h *Hall){
		"next 0":  func(h *Hall) { h.next.Store(0) },
		"next -1": func(h *Hall) { h.next.Store(-1) },
		"left 0":  func(h *Hall) { h.left.Store(0) },
		"left -1": func(h *Hall) { h.left.Store(-1) },
	} {
		visits, places, _ := apart(t)
		w := overwriter{new(sync.Once), func() { overwrite(&places[0].hall) }}
		errs := make([]error, len(visits))
		var all sync.WaitGroup
		for i, v := range visits {
			all.Go(func() {
				v.Begin(new(transport.Call))
				errs[i] = v.Share(transport.Memory{}, []int{20}, w)
			})
		}
		all.Wait()
		if !slices.Contains(errs, errOverwritten) || slices.Contains(errs, nil) {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

// combineFunc is a Combiner.
type combineFunc func()

func (f combineFunc) Combine([]byte, [][]byte) { f() }

// TestDecisionOverwritten: what the last to arrive has decided for all is found to be overwritten by each other member.
func TestDecisionOverwritten(t *testing.T) {
	for _, with := range []uint64{0, 1<<64 - 1} {
		visits, places, aborted := apart(t)
		v, turn := visits[0], (visits[0].operations+1)%2
		v.Begin(new(transport.Call))
		v.host = &hastyHost{plainHost{v, aborted}, func() {
			h := &places[0].hall
			h.decided[turn].Store(with)
			h.done.Store(v.number)
		}}
		if _, _, err := v.Gather([]byte{1}, 1, combineFunc(func() {})); err != errOverwritten {
			t.Errorf("%#x: %v", with, err)
		}
	}
}

// hastyHost is a Host of a member that waits for what wait does.
type hastyHost struct {
	plainHost
	wait func()
}

func (h *hastyHost) Wait() error {
	h.wait()
	return nil
}

// TestTooManyPieces: the number of a piece fits beside that of the operation.
func TestTooManyPieces(t *testing.T) {
	if err := CheckRounds([]int{0}, []int{maxPieces}, idle{}); err != nil {
		t.Error(err)
	}
	more := maxPieces
	if more++; more < 0 {
		t.Skip("there are no such numbers of 32 bits")
	}
	if _, ok := errors.AsType[*transport.ArgumentError](CheckRounds([]int{0}, []int{more}, idle{})); !ok {
		t.Errorf("%d pieces are taken", more)
	}
}
