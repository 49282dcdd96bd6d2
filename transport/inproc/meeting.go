package inproc

import (
	"context"
	"fmt"
	"slices"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/meeting"
)

// table is where the members of a group meet on one lane.
type table struct {
	*meeting.Table
	shown []shown // by place
	limit int     // of a visit's spins
}

// shown is the memory that a member has laid open, on lines of its own. Only the member writes.
type shown struct {
	transport.Memory
	_ [128 - 120]byte
}

// visit is a member's own view of a meeting, and its host there.
type visit struct {
	meeting.Visit
	e      *endpoint
	table  *table
	group  uint64
	given  []int    // the members as the caller gave them
	spins  int      // how often to look before parking, and
	yields int      // how often to let others run
	_      [40]byte // five lines in all
}

// assembly stands in endpoint.waiting for a meeting.
var assembly slot

// join finds the meeting of a group, or makes it, and remembers it. It returns nil when the group has other members.
func (e *endpoint) join(group uint64, members []int) *visit {
	l := e.lane
	l.nw.mu.Lock()
	defer l.nw.mu.Unlock()
	t := l.tables[group]
	if t == nil {
		t = &table{
			Table: meeting.NewTable(members, l.nw.spacious), shown: make([]shown, len(members)), limit: l.nw.spins}
		if l.tables == nil {
			l.tables = map[uint64]*table{}
		}
		l.tables[group] = t
	}
	if !slices.Equal(t.Members, members) {
		return nil
	}
	v := &visit{e: e, table: t, group: group, given: members, spins: l.nw.spins}
	v.Init(t.Table, slices.Index(members, e.rank), v)
	if e.visits == nil {
		e.visits = map[uint64]*visit{}
	}
	e.visits[group] = v
	return v
}

// visiting makes ready for an operation at a meeting. On success busy is held. An endpoint that is aborted gets no
// further: it must not write what those who have not noticed yet may still read.
func (e *endpoint) visiting(ctx context.Context, call *transport.Call, members []int) (*visit, error) {
	if !e.busy.TryLock() {
		return nil, e.refuse(call)
	}
	if e.closed.Load() {
		e.busy.Unlock()
		return nil, e.refuse(call)
	}
	v := e.last
	if v == nil || v.group != call.Group || !meeting.SameSlice(v.given, members) {
		v = e.visits[call.Group]
		if v == nil || !slices.Equal(v.Members, members) {
			if err := meeting.CheckMembers(members, e.rank, len(e.lane.eps)); err != nil {
				e.busy.Unlock()
				return nil, err
			}
			v = e.join(call.Group, members)
		}
		e.last = v
	}
	e.ctx, e.done, e.call = ctx, ctx.Done(), *call
	e.called = true
	e.chains, e.offered, e.sent, e.settled = e.chains[:0], 0, 0, true
	err := e.interruption()
	if err == nil && v == nil {
		err = fmt.Errorf("group %#x has other members than %v", call.Group, members)
	}
	if err != nil {
		err = e.fail(nil, err)
		e.dismiss(false)
		return nil, err
	}
	v.Begin(&e.call)
	v.yields = meetYields
	e.visit = v
	return v, nil
}

// dismiss ends a visit. shared says that it is a Share.
func (e *endpoint) dismiss(shared bool) {
	if !e.settled { // a Combiner or a Worker panicked or ended its goroutine
		e.fail(nil, meeting.ErrCrash)
	}
	if shared {
		e.visit.Forget()
	}
	e.ctx, e.done, e.visit = nil, nil, nil
	e.busy.Unlock()
}

// SmallLimit implements transport.Boards.
func (e *endpoint) SmallLimit() int { return meeting.SmallLimit }

// Reaches implements transport.PeerMemory and transport.Boards.
func (e *endpoint) Reaches(members []int) bool { return true }

// Gather implements transport.Boards.
func (e *endpoint) Gather(ctx context.Context, call transport.Call, members []int, mine []byte, size int,
	c transport.Combiner) ([][]byte, []byte, error) {
	if err := meeting.CheckGather(mine, size); err != nil {
		return nil, nil, err
	}
	v, err := e.visiting(ctx, &call, members)
	if err != nil {
		return nil, nil, err
	}
	defer e.dismiss(false)
	v.yields = gatherYields
	e.settled = false
	all, combined, err := v.Visit.Gather(mine, size, c)
	e.settled = true
	return all, combined, err
}

// Broadcast implements transport.Boards.
func (e *endpoint) Broadcast(ctx context.Context, call transport.Call, members []int, root int, buf []byte) error {
	if err := meeting.CheckBroadcast(members, root, buf); err != nil {
		return err
	}
	v, err := e.visiting(ctx, &call, members)
	if err != nil {
		return err
	}
	defer e.dismiss(false)
	v.Mix(root, len(buf))
	return v.Visit.Broadcast(root, buf)
}

// Share implements transport.PeerMemory.
func (e *endpoint) Share(ctx context.Context, call transport.Call, members []int, mine transport.Memory, rounds []int,
	w transport.Worker) error {
	if err := meeting.CheckRounds(members, rounds, w); err != nil {
		return err
	}
	v, err := e.visiting(ctx, &call, members)
	if err != nil {
		return err
	}
	defer e.dismiss(true)
	e.settled = false
	err = v.Visit.Share(mine, rounds, w)
	e.settled = true
	return err
}

// Ring implements meeting.Host.
func (v *visit) Ring() {
	for i, r := range v.Members {
		if i != v.Place {
			v.e.lane.eps[r].rouseFrom(&assembly, byEvent)
		}
	}
}

// Proclaim implements meeting.Host. Nobody else would wake those in other calls.
func (v *visit) Proclaim() {
	for i, r := range v.Members {
		if other := v.e.lane.eps[r]; i != v.Place && other.waiting.Load() != nil {
			if !other.rouseFrom(&assembly, byEvent) && other.park.Load() == 0 {
				other.rouse(byEvent)
			}
		}
	}
}

// Interruption implements meeting.Host.
func (v *visit) Interruption() error { return v.e.interruption() }

// Fail implements meeting.Host.
func (v *visit) Fail(err error) error { return v.e.fail(nil, err) }

// Deserted implements meeting.Host.
func (v *visit) Deserted() error {
	if v.e.lane.closed.Load() == 0 {
		return nil
	}
	for _, r := range v.Members {
		if v.e.lane.eps[r].closed.Load() {
			return v.e.fail(&transport.Transfer{Peer: r, Kind: transport.Send}, v.e.desertion(r))
		}
	}
	return nil
}

// Left implements meeting.Host.
func (v *visit) Left(place int) meeting.Parting {
	if left := v.e.lane.eps[v.Members[place]].left.Load(); left != nil {
		return left
	}
	return nil
}

// Crowded implements meeting.Host.
func (v *visit) Crowded() bool { return v.e.lane.nw.crowd.Crowded() }

// Show implements meeting.Host. All memory can be laid open.
func (v *visit) Show(mine transport.Memory) (open bool) {
	v.table.shown[v.Place].Memory = mine
	return true
}

// Views implements meeting.Host.
func (v *visit) Views(views []transport.Memory) error {
	for i := range views {
		views[i] = v.table.shown[i].Memory
	}
	return nil
}

// Stuck implements meeting.Host: goroutines go on.
func (v *visit) Stuck(place int) bool { return false }
