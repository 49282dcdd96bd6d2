package tcp

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/hosts"
	"gogcl.dev/transport/internal/meeting"
	"gogcl.dev/transport/internal/segment"
	"gogcl.dev/transport/internal/stream"
)

// nearby is an endpoint that shares memory with others: beside messages it offers transport.Boards and
// transport.PeerMemory among them.
type nearby struct {
	endpoint
	near []*neighbour // by replica; nil for this one, and for those that share no memory with it

	// Guarded by the lane's turn.
	visits  map[uint64]*visit // by group
	last    *visit            // the one before
	now     *visit            // in the operation in progress
	call    transport.Call    // of that operation
	settled bool              // it leaves in the ordinary way
}

// visit is a member's view of a meeting, and its host there.
type visit struct {
	meeting.Visit
	e      *nearby
	group  uint64
	given  []int // the members as the caller gave them
	until  time.Time
	silent error // a replica has aborted, and not said why for Silence

	asleep []*atomic.Uint64 // by place: the words of the others' lanes; nil: not found yet
	seats  [][]byte         // by place: seat blocks; nil: not found yet
	mine   transport.Memory
	lists  [][][]byte // by place: memory for Ins and Outs
}

// newEndpoint is the endpoint of a lane.
func (g *generation) newEndpoint(l *stream.Lane, t *hosts.Table) transport.Endpoint {
	e := endpoint{l, t, g}
	if g.shm == nil {
		return &e
	}
	n := &nearby{endpoint: e, near: make([]*neighbour, len(g.members)), visits: map[uint64]*visit{}}
	for r, place := range g.members {
		if c := g.at(place); c != nil {
			n.near[r] = c.neighbour()
		}
	}
	l.SetBoards(n)
	return n
}

// Reaches implements transport.PeerMemory and transport.Boards. Where one replica of a host shares no memory, no
// members of that host reach each other: all replicas of the job know the host by one link, and choose by that.
func (e *nearby) Reaches(members []int) bool {
	return !slices.ContainsFunc(members, func(r int) bool {
		return r != e.Rank() && (e.near[r] == nil || e.Link(e.Rank(), r).Transport != string(Shm))
	})
}

// SmallLimit implements transport.Boards.
func (e *nearby) SmallLimit() int { return meeting.SmallLimit }

// OpenPages implements transport.Opener.
func (e *nearby) OpenPages(pages []byte) error { return e.generation.shm.own.OpenPages(pages) }

// ShutPages implements transport.Opener.
func (e *nearby) ShutPages(pages []byte) { e.generation.shm.own.ShutPages(pages) }

// find returns the visit of a group, which it makes where there is none. An ArgumentError is that of the members; any
// other error fails the call.
func (e *nearby) find(group uint64, members []int) (*visit, error) {
	if v := e.last; v != nil && v.group == group && meeting.SameSlice(v.given, members) {
		return v, nil
	}
	v := e.visits[group]
	if v == nil || !slices.Equal(v.Members, members) {
		if err := meeting.CheckMembers(members, e.Rank(), e.Size()); err != nil {
			return nil, err
		}
		if !e.Reaches(members) {
			return nil, &transport.ArgumentError{Reason: fmt.Sprintf("replica %d does not share memory with all of "+
				"replicas %v: want members that it Reaches", e.Rank(), members)}
		}
		if v != nil {
			return nil, fmt.Errorf("group %#x has other members than %v", group, members)
		}
		var err error
		if v, err = e.newVisit(group, members); err != nil {
			return nil, err
		}
		e.visits[group] = v
	}
	v.given, e.last = members, v
	return v, nil
}

// enter begins an operation at a meeting. broadcast says that it is a Broadcast, with its root and its length.
func (e *nearby) enter(ctx context.Context, c transport.Call, members []int, broadcast bool, root, size int) (*visit,
	error) {
	if err := e.Take(c); err != nil {
		return nil, err
	}
	e.call = c
	call := &e.call
	v, wrong := e.find(call.Group, members)
	if _, ok := errors.AsType[*transport.ArgumentError](wrong); ok {
		e.Release()
		return nil, wrong
	}
	if wrong == nil {
		v.Begin(call)
		if broadcast {
			v.Mix(root, size)
		}
	}
	told := &c // as the caller knows it: package gcl asks peers about a call that has a root, in its words
	if broadcast {
		told = call // or two that take from each other would not find out
	}
	if err := e.Enter(ctx, told, members); err != nil {
		return nil, err
	}
	if wrong != nil {
		err := e.Fail(*call, -1, wrong)
		e.Exit()
		return nil, err
	}
	e.now, e.settled = v, true
	if err := v.Interruption(); err != nil {
		err = v.Fail(err)
		e.exit(false)
		return nil, err
	}
	return v, nil
}

// exit ends an operation. shared says that it is a Share.
func (e *nearby) exit(shared bool) {
	if !e.settled { // a Combiner or a Worker panicked or ended its goroutine
		e.now.Fail(meeting.ErrCrash)
	}
	if shared {
		e.now.Forget()
	}
	e.now = nil
	e.Exit()
}

// Gather implements transport.Boards.
func (e *nearby) Gather(ctx context.Context, call transport.Call, members []int, mine []byte, size int,
	c transport.Combiner) (all [][]byte, combined []byte, err error) {
	if err := meeting.CheckGather(mine, size); err != nil {
		return nil, nil, err
	}
	v, err := e.enter(ctx, call, members, false, 0, 0)
	if err != nil {
		return nil, nil, err
	}
	defer e.exit(false)
	e.settled = false
	all, combined, err = v.Visit.Gather(mine, size, c)
	e.settled = true
	return all, combined, err
}

// Broadcast implements transport.Boards.
func (e *nearby) Broadcast(ctx context.Context, call transport.Call, members []int, root int, buf []byte) error {
	if err := meeting.CheckBroadcast(members, root, buf); err != nil {
		return err
	}
	v, err := e.enter(ctx, call, members, true, root, len(buf))
	if err != nil {
		return err
	}
	defer e.exit(false)
	return v.Visit.Broadcast(root, buf)
}

// Share implements transport.PeerMemory. What goes by messages after ErrNotShared is another call of the same number.
func (e *nearby) Share(ctx context.Context, call transport.Call, members []int, mine transport.Memory, rounds []int,
	w transport.Worker) error {
	if err := meeting.CheckRounds(members, rounds, w); err != nil {
		return err
	}
	v, err := e.enter(ctx, call, members, false, 0, 0)
	if err != nil {
		return err
	}
	defer e.exit(true)
	e.settled = false
	err = v.Visit.Share(mine, rounds, w)
	e.settled = true
	if err == transport.ErrNotShared {
		e.Drop()
	}
	return err
}

// Elsewhere implements stream.Boards.
func (e *nearby) Elsewhere(messages *transport.Call) *transport.MismatchError {
	switch {
	case e.now != nil:
		return e.now.Ahead()
	case messages == nil:
		return nil
	}
	if v := e.visits[messages.Group]; v != nil {
		return v.Elsewhere(&v.Visit, e.Rank(), messages)
	}
	for r, near := range e.near {
		if near == nil {
			continue
		}
		if b := near.segment.Seat(e.Number(), messages.Group, seatBytes); b != nil {
			if mismatch := meeting.PlaceIn(b[openBytes:]).Elsewhere(e.Rank(), r, messages); mismatch != nil {
				return mismatch
			}
		}
	}
	return nil
}

// Instead implements stream.Boards.
func (e *nearby) Instead(replica int) *transport.MismatchError {
	for _, v := range e.visits {
		if place := slices.Index(v.Members, replica); place >= 0 {
			if mismatch := v.Discord(place); mismatch != nil {
				return mismatch
			}
		}
	}
	return nil
}

// Heard implements stream.Boards.
func (e *nearby) Heard() bool {
	for _, v := range e.visits {
		if !v.Heard() {
			return false
		}
	}
	return true
}

// Unheard implements stream.Boards.
func (e *nearby) Unheard() error {
	for _, v := range e.visits {
		if err := v.Unmatched(v.Discord); err != nil {
			return err
		}
	}
	return nil
}

// Check implements stream.Boards: this replica's memory, its seats, and what the others have written for the meeting
// that it waits at. What is wrong with a seat only its member can tell: the others wait for it.
func (e *nearby) Check() error {
	if err := e.generation.shm.own.Check(); err != nil {
		return err
	}
	for _, v := range e.visits {
		if err := v.Visit.Check(v == e.now); err != nil {
			return err
		}
	}
	return nil
}

// A seat block begins with what the member has laid open: the lengths of the lists, then offset and length of each
// buffer. The Place follows.
const (
	openBytes = 4096
	openHead  = 16
	openEach  = 16
	openLists = (openBytes-openHead)/openEach - 3 // buffers that the lists have room for
	seatBytes = openBytes + (meeting.PlaceBytes+4095)&^4095
)

// newVisit makes the member's seat, and its view of the table.
func (e *nearby) newVisit(group uint64, members []int) (*visit, error) {
	n := len(members)
	own, err := e.generation.shm.own.Seat(e.Number(), group, seatBytes)
	if err != nil {
		return nil, fmt.Errorf("group %#x cannot meet in shared memory: %w", group, err)
	}
	v := &visit{e: e, group: group, asleep: make([]*atomic.Uint64, n),
		seats: make([][]byte, n), lists: make([][][]byte, n)}
	place := slices.Index(members, e.Rank())
	v.seats[place] = own
	v.Init(meeting.NewTableApart(members, func(i int) *meeting.Place {
		b := v.seat(members[i], i)
		if b == nil {
			return nil
		}
		return meeting.PlaceIn(b[openBytes:])
	}), place, v)
	v.Ring()
	return v, nil
}

// seat looks for the block of a member, which is a replica and has a place.
func (v *visit) seat(replica, place int) []byte {
	if v.seats[place] == nil {
		v.seats[place] = v.e.near[replica].segment.Seat(v.e.Number(), v.group, seatBytes)
	}
	return v.seats[place]
}

// Ring implements meeting.Host.
func (v *visit) Ring() {
	for i, r := range v.Members {
		if i == v.Place {
			continue
		}
		if v.asleep[i] == nil {
			if v.asleep[i] = v.e.near[r].segment.Lane(v.e.Number()); v.asleep[i] == nil {
				continue // who opens a lane looks before it sleeps
			}
		}
		if word := v.asleep[i]; word.Load() != 0 && word.Swap(0) != 0 {
			segment.RingBell(v.e.near[r].bell)
		}
	}
}

// Proclaim implements meeting.Host: a lane that sleeps is woken whatever for.
func (v *visit) Proclaim() { v.Ring() }

// Wait implements meeting.Host.
func (v *visit) Wait() error {
	err := v.e.Await(v, !v.Spread())
	if err != nil {
		v.vacate()
	}
	return err
}

// Awaits implements stream.Awaited.
func (v *visit) Awaits(replica int) bool {
	place := slices.Index(v.Members, replica)
	return place >= 0 && !v.Present(place)
}

// abortLooks is how often a replica looks for the word why in a time of Silence.
const abortLooks = 64

// Interruption implements meeting.Host. A replica says in shared memory that it aborts before the word why has come
// over its control connection: it may be short of processors, or be stopped. A replica that ends instead is lost.
func (v *visit) Interruption() error {
	if err := v.e.Interruption(); err != nil {
		return err
	}
	word := v.e.generation.shm.own.Aborted().Load()
	if word == 0 || word>>32 != uint64(v.e.generation.number) || v.silent != nil {
		return v.silent
	}
	return v.reason(word, cmp.Or(v.e.generation.config.silence(), DefaultSilence))
}

// reason waits as long as given for why another replica has aborted, as the word in memory says.
func (v *visit) reason(word uint64, silence time.Duration) error {
	for range abortLooks { // and not until a time: this process may be stopped itself
		select {
		case <-v.e.Done():
		case <-time.After(silence / abortLooks):
		}
		if err := v.e.Interruption(); err != nil {
			return err
		}
	}
	v.silent = v.e.generation.silentAbort(word, silence)
	return v.silent
}

// silentAbort is the error of an abort of which no control connection has said why. word is in the segment of this
// replica: see abortWord.
func (g *generation) silentAbort(word uint64, silence time.Duration) error {
	if place := int(uint32(word)) - 1; place != g.config.Rank && g.has(place) {
		return &transport.LostError{Replica: g.numbers[place], Process: g.at(place).address.Where,
			Err: fmt.Errorf("it has aborted, and not said why for %v", silence)}
	}
	return errors.New("the shared memory of this process says that a replica has aborted, and not which: a process " +
		"has overwritten it")
}

// Fail implements meeting.Host.
func (v *visit) Fail(err error) error {
	err = v.e.Fail(*v.Call(), -1, err)
	v.vacate()
	return err
}

// patience is how long a member that has failed waits for one that is inside and does not go on.
const patience = time.Second

// vacate returns when no member can touch the memory of the call any more. All have been told that there is an abort:
// see generation.Aborting.
func (v *visit) vacate() {
	v.until = time.Now().Add(patience)
	v.Vacate()
}

// Stuck implements meeting.Host: the member's process has ended, or does not go on. Then this one's memory is no longer
// that which the member reaches.
func (v *visit) Stuck(place int) bool {
	switch {
	case v.e.generation.at(v.e.generation.members[v.Members[place]]).gone():
		return true
	case time.Now().Before(v.until):
		return false
	}
	if err := v.e.generation.shm.own.Retire(); err != nil {
		return false
	}
	return true
}

// Deserted implements meeting.Host.
func (v *visit) Deserted() error { return v.e.Deserted() }

// Left implements meeting.Host.
func (v *visit) Left(place int) meeting.Parting {
	if place == v.Place {
		return nil
	}
	if left, ok := v.e.Lane.Left(v.Members[place]); ok {
		return left
	}
	return nil
}

// Crowded implements meeting.Host.
func (v *visit) Crowded() bool {
	return v.e.generation.shm.crowd.Crowded() || v.e.Outnumbered()
}

// Show implements meeting.Host.
func (v *visit) Show(mine transport.Memory) (open bool) {
	v.mine = mine
	room := v.seats[v.Place][:openBytes]
	if len(mine.Ins)+len(mine.Outs) > openLists {
		return false
	}
	binary.NativeEndian.PutUint64(room, uint64(len(mine.Ins)))
	binary.NativeEndian.PutUint64(room[8:], uint64(len(mine.Outs)))
	room = room[openHead:]
	open = true
	put := func(b []byte) {
		offset, ok := v.e.generation.shm.own.Offset(b)
		open = open && ok
		binary.NativeEndian.PutUint64(room, offset)
		binary.NativeEndian.PutUint64(room[8:], uint64(len(b)))
		room = room[openEach:]
	}
	put(mine.In)
	put(mine.Out)
	put(mine.Scratch)
	for _, b := range mine.Ins {
		put(b)
	}
	for _, b := range mine.Outs {
		put(b)
	}
	return open
}

// Views implements meeting.Host.
func (v *visit) Views(views []transport.Memory) error {
	for i, r := range v.Members {
		if i == v.Place {
			views[i] = v.mine
		} else if !v.view(i, r, &views[i]) {
			return fmt.Errorf("replica %d lays open what is not in its memory: a process has overwritten it", r)
		}
	}
	return nil
}

// view finds what a member has laid open. Each number is read once: it may change at any time.
func (v *visit) view(place, replica int, m *transport.Memory) (ok bool) {
	room := v.seats[place][:openBytes]
	ins, outs := binary.NativeEndian.Uint64(room), binary.NativeEndian.Uint64(room[8:])
	if ins > openLists || outs > openLists-ins {
		return false
	}
	room = room[openHead:]
	ok = true
	near := v.e.near[replica].segment
	get := func() []byte {
		b, found := near.Bytes(binary.NativeEndian.Uint64(room), binary.NativeEndian.Uint64(room[8:]))
		room = room[openEach:]
		ok = ok && found
		return b
	}
	m.In, m.Out, m.Scratch = get(), get(), get()
	m.Ins, m.Outs = nil, nil
	if ins+outs > 0 {
		list := v.lists[place][:0]
		for range ins + outs {
			list = append(list, get())
		}
		v.lists[place] = list
		m.Ins, m.Outs = list[:ins:ins], list[ins:]
	}
	return ok
}
