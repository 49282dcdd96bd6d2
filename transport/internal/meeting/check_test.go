package meeting

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"gogcl.dev/transport"
)

// TestCheck: what members may have written where a member waits is no error, and anything else that shows is one.
func TestCheck(t *testing.T) {
	const number, operations, broadcasts, pieces, counted = 9, 3, 100, 6, 4
	base := baseOf(operations)
	const turn = operations % 2
	call := transport.Call{Seq: 7, Group: 3}
	notice := func(s *Seat, number uint64) { s.notices[turn].number.Store(stamp(number, true, true)) }
	for _, c := range []struct {
		name   string
		stage  stage
		spread bool
		set    func(own, other *Seat, h *Hall)
		wrong  bool
	}{
		{"nothing", assembling, false, func(own, other *Seat, h *Hall) {}, false},
		{"anything in a seat", assembling, false, func(own, other *Seat, h *Hall) { notice(other, 1<<40) }, false},

		{"as it begins", announcing, false, func(own, other *Seat, h *Hall) {}, false},
		{"the other at the barrier", announcing, true, func(own, other *Seat, h *Hall) { notice(other, number) }, false},
		{"the other at the next", announcing, true, func(own, other *Seat, h *Hall) { other.synced.Store(number + 1) }, false},
		{"both in the hall", announcing, false, func(own, other *Seat, h *Hall) { h.count.Store(2 * counted) }, false},
		{"the barrier done", announcing, false, func(own, other *Seat, h *Hall) { h.done.Store(number) }, false},
		{"a hall that is not used", announcing, true, func(own, other *Seat, h *Hall) { h.count.Store(1 << 40) }, false},
		{"own number gone", announcing, false, func(own, other *Seat, h *Hall) { notice(own, 0) }, true},
		{"own number greater", announcing, true, func(own, other *Seat, h *Hall) { notice(own, number+1) }, true},
		{"own call", announcing, true, func(own, other *Seat, h *Hall) { own.notices[turn].call.Seq++ }, true},
		{"the other too far", announcing, true, func(own, other *Seat, h *Hall) { notice(other, number+2) }, true},
		{"the other synced too far", announcing, false, func(own, other *Seat, h *Hall) { other.synced.Store(number + 2) }, true},
		{"own synced too far", announcing, false, func(own, other *Seat, h *Hall) { own.synced.Store(1 << 63) }, true},
		{"done gone", announcing, false, func(own, other *Seat, h *Hall) { h.done.Store(0) }, true},
		{"own notice of the operation before", syncing, false, func(own, other *Seat, h *Hall) {
			own.notices[1-turn].number.Store(5)
		}, true},
		{"done too far", announcing, false, func(own, other *Seat, h *Hall) { h.done.Store(number + 1) }, true},
		{"done too far, spread", announcing, true, func(own, other *Seat, h *Hall) { h.done.Store(1 << 63) }, true},
		{"more than all", announcing, false, func(own, other *Seat, h *Hall) { h.count.Store(2*counted + 1) }, true},
		{"fewer than none", announcing, false, func(own, other *Seat, h *Hall) { h.count.Store(2*counted - 2) }, true},

		{"as it begins", syncing, false, func(own, other *Seat, h *Hall) {}, false},
		{"the other at the barrier", syncing, true, func(own, other *Seat, h *Hall) { other.synced.Store(number) }, false},
		{"the other at the next", syncing, true, func(own, other *Seat, h *Hall) { other.synced.Store(number + 1) }, false},
		{"the other in the next operation", syncing, true, func(own, other *Seat, h *Hall) {
			other.notices[1-turn].number.Store(stamp(number+1, false, false))
		}, false},
		{"own number gone", syncing, true, func(own, other *Seat, h *Hall) { own.synced.Store(0) }, true},
		{"own number greater", syncing, true, func(own, other *Seat, h *Hall) { own.synced.Store(number + 1) }, true},
		{"the other too far", syncing, true, func(own, other *Seat, h *Hall) { other.synced.Store(number + 2) }, true},
		{"the other's notice too far", syncing, false, func(own, other *Seat, h *Hall) { notice(other, number+2) }, true},
		{"done too far", syncing, false, func(own, other *Seat, h *Hall) { h.done.Store(number + 1) }, true},
		{"more than all", syncing, false, func(own, other *Seat, h *Hall) { h.count.Store(2*counted + 1) }, true},
		{"fewer than none", syncing, false, func(own, other *Seat, h *Hall) { h.count.Store(0) }, true},

		{"pieces to be done", sharing, false, func(own, other *Seat, h *Hall) { h.left.Store(base + pieces) }, false},
		{"all pieces done", sharing, false, func(own, other *Seat, h *Hall) { h.next.Store(base + pieces + 2) }, false},
		{"more pieces than there are", sharing, false, func(own, other *Seat, h *Hall) { h.left.Store(base + pieces + 1) }, true},
		{"fewer pieces than none", sharing, false, func(own, other *Seat, h *Hall) { h.left.Store(base - 1) }, true},
		{"pieces not taken", sharing, false, func(own, other *Seat, h *Hall) { h.next.Store(base + pieces - 1) }, true},
		{"pieces taken too often", sharing, false, func(own, other *Seat, h *Hall) { h.next.Store(base + pieces + 3) }, true},
		{"the other too far", sharing, false, func(own, other *Seat, h *Hall) { notice(other, number+2) }, true},
		{"done too far", sharing, false, func(own, other *Seat, h *Hall) { h.done.Store(number + 1) }, true},

		{"the message", taking, false, func(own, other *Seat, h *Hall) { other.at(broadcasts).number.Store(broadcasts) }, false},
		{"an older message", taking, false, func(own, other *Seat, h *Hall) {
			other.at(broadcasts).number.Store(broadcasts - queueLength)
		}, false},
		{"messages ahead", taking, false, func(own, other *Seat, h *Hall) {
			other.at(broadcasts + 62).number.Store(broadcasts + 62)
		}, false},
		{"a message of the next round", taking, false, func(own, other *Seat, h *Hall) {
			other.at(broadcasts).number.Store(broadcasts + queueLength)
		}, true},
		{"a number of another message", taking, false, func(own, other *Seat, h *Hall) {
			other.at(broadcasts).number.Store(broadcasts - 1)
		}, true},
		{"come near", catching, false, func(own, other *Seat, h *Hall) { other.at(broadcasts).number.Store(broadcasts) }, false},
		{"of the next round", catching, false, func(own, other *Seat, h *Hall) {
			other.at(broadcasts).number.Store(broadcasts + queueLength)
		}, true},
		{"of another message", catching, false, func(own, other *Seat, h *Hall) { other.at(broadcasts).number.Store(1) }, true},
	} {
		places := []*Place{new(Place), new(Place)}
		var v Visit
		v.Init(NewTableApart([]int{4, 5}, func(i int) *Place { return places[i] }), 0, nil)
		mine := call
		v.call, v.stage, v.spread = &mine, c.stage, c.spread
		v.number, v.operations, v.pieces = number, operations, pieces
		v.broadcasts, v.awaited, v.from = broadcasts, broadcasts, 1
		v.complete = c.stage != assembling
		v.base, v.counted, v.seen = base, counted, number-1
		own, other, h := &places[0].seat, &places[1].seat, &places[0].hall
		switch c.stage {
		case announcing:
			notice(own, number)
			v.stamps[turn] = own.notices[turn].number.Load()
			own.notices[turn].call = call
		case syncing:
			own.synced.Store(number)
			v.arrived = number
		case sharing:
			h.left.Store(base)
			h.next.Store(base + pieces + 1)
		}
		h.count.Store(2*counted - 1)
		h.done.Store(number - 1)
		if err := v.Check(true); err != nil {
			t.Fatalf("stage %d: %v", c.stage, err)
		}
		c.set(own, other, h)
		want := error(nil)
		if c.wrong {
			want = errOverwritten
		}
		if err := v.Check(true); err != want {
			t.Errorf("stage %d, %s: %v, want %v", c.stage, c.name, err, want)
		}
	}
}

// TestHallOverwritten: a count, a decision, or a number of pieces taken or left that no member can have written is an
// error, where a member comes to it without having waited long.
func TestHallOverwritten(t *testing.T) {
	for _, c := range []struct {
		name    string
		members int
		set     func(h *Hall, base int64)
		do      func(v *Visit) error
	}{
		{"more have arrived than there are", 1, func(h *Hall, _ int64) { h.count.Store(1) }, counting},
		{"fewer than none had arrived", 1, func(h *Hall, _ int64) { h.count.Store(math.MaxUint64) }, counting},
		{"no decision", 2, func(h *Hall, _ int64) { h.done.Store(1) }, announces},
		{"the decision of a later barrier", 2, func(h *Hall, _ int64) {
			h.done.Store(1)
			h.decided[1].Store(decision(3, false, false, false))
		}, announces},
		{"fewer pieces taken than none", 1, func(h *Hall, base int64) { h.next.Store(base - 3) }, working},
		{"more pieces left than there are", 1, func(h *Hall, base int64) { h.left.Store(base + 3) }, working},
		{"fewer pieces left than none", 1, func(h *Hall, base int64) { h.left.Store(base - 3) }, working},
	} {
		h := &host{m: newMeeting(c.members)}
		v := h.visit()
		h.m.shown[0] = transport.Memory{In: make([]byte, 8), Out: make([]byte, 8)}
		h.m.failed.Store(true) // a wait that does not end
		v.Begin(&transport.Call{Seq: 1, Group: 1})
		v.operations, v.pieces, v.base = 1, 2, baseOf(1)
		v.hall.next.Store(v.base)
		c.set(v.hall, v.base)
		if err := c.do(v); !errors.Is(err, errOverwritten) {
			t.Errorf("%s: %v, want %v", c.name, err, errOverwritten)
		}
	}
}

func counting(v *Visit) error {
	_, err := v.count()
	return err
}

func announces(v *Visit) error { return v.announce(nil, true) }
func working(v *Visit) error   { return v.workTogether(adder{1}) }

// TestHallOverwrittenInMeetings: numbers in the hall that make no sense end the operation of all members.
func TestHallOverwrittenInMeetings(t *testing.T) {
	for _, c := range []struct {
		name      string
		rounds    []int // of several, who has done its piece of one is counted
		overwrite func(h *Hall)
	}{
		{"count 0", []int{3, 3}, func(h *Hall) { h.count.Store(0) }},
		{"count -1", []int{3, 3}, func(h *Hall) { h.count.Store(math.MaxUint64) }},
		{"count + 3", []int{3, 3}, func(h *Hall) { h.count.Add(3) }},
		{"next 0", []int{20}, func(h *Hall) { h.next.Store(0) }},
		{"next -1", []int{20}, func(h *Hall) { h.next.Store(-1) }},
		{"left 0", []int{20}, func(h *Hall) { h.left.Store(0) }},
		{"left -1", []int{20}, func(h *Hall) { h.left.Store(-1) }},
	} {
		m := newMeeting(3)
		w := overwriter{new(sync.Once), func() { c.overwrite(&m.places[0].Load().hall) }}
		_, errs := m.all(true, func(h *host) error {
			h.v.Begin(new(transport.Call))
			return h.v.Share(transport.Memory{}, c.rounds, w)
		})
		found := func(err error) bool { return errors.Is(err, errOverwritten) }
		if !slices.ContainsFunc(errs, found) || slices.Contains(errs, nil) {
			t.Errorf("%s: %v", c.name, errs)
		}
	}
}

// overwriter is a Worker that overwrites something in its first piece.
type overwriter struct {
	once      *sync.Once
	overwrite func()
}

func (w overwriter) Piece([]transport.Memory, int, int) { w.once.Do(w.overwrite) }

// TestCheckOwn: a member finds that a number has been overwritten that it has written, wherever it waits.
func TestCheckOwn(t *testing.T) {
	m := newMeeting(3)
	hosts, errs := m.all(true, func(h *host) error { return h.meet(true) })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	v, p := &hosts[0].v, m.places[0].Load()
	type number struct {
		name string
		at   *atomic.Uint64
		with uint64
	}
	numbers := []number{
		{"notice 0", &p.seat.notices[0].number, 0}, {"notice 1", &p.seat.notices[1].number, 1 << 40},
		{"synced", &p.seat.synced, 0}, {"done", &p.hall.done, 0}, {"done too", &p.hall.done, v.number + 1},
	}
	for k := range p.seat.queue { // which is full
		numbers = append(numbers, number{fmt.Sprint("number ", k, " of the queue"), &p.seat.queue[k].number, 0})
	}
	for _, n := range numbers {
		before := n.at.Swap(n.with)
		if v.Check(false) != errOverwritten {
			t.Errorf("%s: not found", n.name)
		}
		n.at.Store(before)
	}
	if err := v.Check(false); err != nil {
		t.Error(err)
	}
}

// TestTooManyPieces: the number of a piece fits beside that of the operation.
func TestTooManyPieces(t *testing.T) {
	if err := CheckRounds([]int{0}, []int{maxPieces}, adder{}); err != nil {
		t.Error(err)
	}
	more := maxPieces
	if more++; more < 0 {
		t.Skip("there are no such numbers of 32 bits")
	}
	if _, ok := errors.AsType[*transport.ArgumentError](CheckRounds([]int{0}, []int{more}, adder{})); !ok {
		t.Errorf("%d pieces are taken", more)
	}
}

// gathering is a meeting of goroutines, each of which makes its Place.
type gathering struct {
	places []atomic.Pointer[Place]
	shown  []transport.Memory
	failed atomic.Bool
}

func newMeeting(n int) *gathering {
	return &gathering{places: make([]atomic.Pointer[Place], n), shown: make([]transport.Memory, n)}
}

// all has all members do something, each on a goroutine with its view. The first that fails ends the others' waits.
func (m *gathering) all(crowded bool, do func(h *host) error) ([]*host, []error) {
	hosts, errs := make([]*host, len(m.places)), make([]error, len(m.places))
	var members sync.WaitGroup
	for i := range hosts {
		hosts[i] = &host{m: m, place: i, crowded: crowded}
		members.Go(func() {
			hosts[i].visit()
			if errs[i] = do(hosts[i]); errs[i] != nil {
				m.failed.Store(true)
			}
		})
	}
	members.Wait()
	return hosts, errs
}

// host is the Host of a member that looks whether Check says anything at each look of each wait.
type host struct {
	m       *gathering
	v       Visit
	place   int
	crowded bool
	hides   bool
}

// visit makes the member's Place and its view.
func (h *host) visit() *Visit {
	h.m.places[h.place].Store(new(Place))
	members := make([]int, len(h.m.places))
	for i := range members {
		members[i] = i
	}
	h.v.Init(NewTableApart(members, func(i int) *Place { return h.m.places[i].Load() }), h.place, h)
	return &h.v
}

func (h *host) Wait() error {
	for !h.v.Met() {
		if err := h.v.Check(true); err != nil {
			return h.Fail(fmt.Errorf("member %d in stage %d: %w", h.place, h.v.stage, err))
		}
		if h.m.failed.Load() {
			return errors.New("another member has failed")
		}
		runtime.Gosched()
	}
	return nil
}

func (h *host) Fail(err error) error {
	h.m.failed.Store(true)
	return err
}

func (h *host) Show(mine transport.Memory) bool {
	h.m.shown[h.place] = mine
	return !h.hides
}

func (h *host) Views(views []transport.Memory) error {
	copy(views, h.m.shown)
	return nil
}

func (h *host) Ring()               {}
func (h *host) Proclaim()           {}
func (h *host) Interruption() error { return nil }
func (h *host) Deserted() error     { return nil }
func (h *host) Left(int) Parting    { return nil }
func (h *host) Crowded() bool       { return h.crowded }
func (h *host) Stuck(int) bool      { return false }

// adder is a Worker and a Combiner for n members. Piece p of a round adds up the members' bytes p.
type adder struct{ n int }

func (a adder) Piece(m []transport.Memory, round, p int) {
	for i := range m {
		runtime.Gosched()
		m[p%a.n].Out[p] += m[i].In[p]
	}
}

func (a adder) Combine(dst []byte, all [][]byte) {
	clear(dst)
	for _, b := range all {
		for k := range b {
			dst[k] += b[k]
		}
	}
}

// TestCheckMeetings: Check never finds anything wrong in meetings of members that only do what they may.
func TestCheckMeetings(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for _, busy := range []bool{false, true} { // members find the processors crowded now and then, or always
			_, errs := newMeeting(n).all(busy, func(h *host) error { return h.meet(busy) })
			if err := errors.Join(errs...); err != nil {
				t.Errorf("%d members, busy %v: %v", n, busy, err)
			}
		}
	}
}

// meet carries out operations, the same as all members.
func (h *host) meet(busy bool) error {
	v, n := &h.v, len(h.m.places)
	all := rand.New(rand.NewPCG(1, uint64(n)))              // what all do
	mine := rand.New(rand.NewPCG(2, uint64(h.place)))       // what the member does
	message := func(i, k int) byte { return byte(7*i + k) } // of a member in an operation
	for k := range 200 {
		if !busy {
			h.crowded = mine.IntN(8) == 0
		}
		call := transport.Call{Seq: uint64(k + 1), Group: 1}
		v.Begin(&call)
		switch kind := all.IntN(10); {
		case kind < 3:
			size := []int{1, inlineLimit + 1}[all.IntN(2)]
			b := slices.Repeat([]byte{message(h.place, k)}, size)
			var combiner transport.Combiner
			if kind > 0 {
				combiner = adder{n}
			}
			got, sum, err := v.Gather(b, size, combiner)
			if err != nil {
				return err
			}
			if sum != nil {
				want := byte(0)
				for i := range n {
					want += message(i, k)
				}
				if sum[size-1] != want {
					return fmt.Errorf("combined %d, want %d", sum[size-1], want)
				}
			}
			for i := range got {
				if got[i][size-1] != message(i, k) {
					return fmt.Errorf("gathered %d of member %d, want %d", got[i][size-1], i, message(i, k))
				}
			}
		case kind < 6:
			rounds := [][]int{{5}, {0}, {1, n}, {n, 0, n}}[all.IntN(4)]
			hidden := -1 // the place of who hides its memory
			if all.IntN(8) == 0 {
				hidden = all.IntN(n)
			}
			h.hides = hidden == h.place
			in := slices.Repeat([]byte{message(h.place, k)}, 8)
			err := v.Share(transport.Memory{In: in, Out: make([]byte, 8)}, rounds, adder{n})
			v.Forget()
			if hidden >= 0 && err != transport.ErrNotShared || hidden < 0 && err != nil {
				return fmt.Errorf("a Share in which member %d hides its memory (-1: none) ends with %v", hidden, err)
			}
		default:
			root := all.IntN(n)
			for range all.IntN(3 * queueLength) {
				if kind > 7 {
					root = all.IntN(n)
				}
				call.Seq++
				again := call
				v.Begin(&again)
				v.Mix(root, 1)
				b := []byte{message(root, k)}
				if h.place != root {
					b[0] = 0
				}
				if err := v.Broadcast(root, b); err != nil {
					return err
				}
				if b[0] != message(root, k) {
					return fmt.Errorf("broadcast %d, want %d", b[0], message(root, k))
				}
			}
		}
	}
	return nil
}
