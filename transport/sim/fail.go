package sim

import (
	"errors"
	"slices"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
)

// ErrDead is why a replica has aborted that one of the Deaths has ended. Others see a *transport.LostError.
var ErrDead = errors.New("dead by the simulation's faults")

var errSilent = errors.New("nothing has come from it")

// fail ends the Exchange in progress with an error at t, or at no transfer in particular when t is nil. It aborts all
// that the replica reaches. The caller holds n.mu here and below.
func (e *endpoint) fail(t *transport.Transfer, err error) {
	where := &transport.RoundError{Replica: e.rank, Round: e.call.Round, Peer: -1, Err: err}
	if t != nil {
		where.Kind, where.Peer = t.Kind, t.Peer
	}
	aborted := e.replica.aborted.Load()
	switch {
	case aborted == nil:
	case err == error(aborted):
		where.Peer = -1
	default: // somebody else was first
		where.Err = &transport.LateError{Err: err, Aborted: aborted}
	}
	e.stop(where)
	e.n.abort(e.replica, where)
}

// stop has the Exchange in progress end with an error, and takes back what it has posted.
func (e *endpoint) stop(err error) {
	e.err = err
	e.replica.told.Store(true)
	for i := range e.states {
		s := &e.states[i]
		peer := s.peer
		switch s.phase {
		case waiting:
			key := letterOf(e.rank, &e.batch[i])
			if w, ok := e.lane.waiting[key]; ok && w == (half{e, i}) {
				delete(e.lane.waiting, key)
			}
			continue
		case underway, arrived:
			if s.flow != nil {
				e.n.simulator.drop(s.flow)
				e.n.simulator.recycle(s.flow)
			}
			peer.e.states[peer.index] = state{}
			*s = state{}
		}
	}
	for _, i := range e.inbox {
		e.states[i].peer.e.unpin()
	}
	e.inbox = e.inbox[:0]
	e.rouse()
}

// unfinished is the first transfer that is not done, or nil.
func (e *endpoint) unfinished() *transport.Transfer {
	for i := range e.states {
		if e.states[i].phase < done {
			return &e.batch[i]
		}
	}
	return nil
}

// abort makes all calls fail of a replica and of those that it reaches, unless they do already.
func (n *Net) abort(r *replica, cause error) {
	if r.aborted.Load() != nil {
		return
	}
	if cause == nil {
		cause = errors.New("no cause given")
	}
	a := &transport.AbortError{Replica: r.rank, Cause: cause}
	r.abort(a)
	told := []*replica{r}
	for i := 0; i < len(told); i++ {
		for _, o := range n.replicas {
			if o.aborted.Load() == nil && !n.isCut(told[i].rank, o.rank) {
				o.abort(a)
				told = append(told, o)
			}
		}
		if len(n.cuts) == 0 { // all have been told
			break
		}
	}
}

// abort makes the calls of a replica fail.
func (r *replica) abort(a *transport.AbortError) {
	r.aborted.Store(a)
	close(r.done)
	for _, e := range r.lanes {
		if e.live() {
			e.stop(&transport.RoundError{Replica: e.rank, Round: e.call.Round, Peer: -1, Err: a})
		}
	}
}

// gone reports whether a replica has closed its end of the lane, and is out of its last call.
func (l *lane) gone(rank int) bool {
	for ; l != nil; l = l.parent {
		if e := l.eps[rank]; e != nil {
			return e.left && !e.replica.dead
		}
	}
	return false
}

// desert tells those that wait for an endpoint that it has closed.
func (e *endpoint) desert() {
	if e.lane.active == 0 || e.replica.dead {
		return
	}
	for _, o := range e.lane.eps {
		if o == nil || !o.live() {
			continue
		}
		for i := range o.batch {
			t := &o.batch[i]
			if t.Peer == e.rank && o.states[i].phase == waiting {
				o.fail(t, o.desertion(t))
				break
			}
		}
	}
}

// desertion is the error of a transfer with a replica that has left: the mismatch that is behind it, if its calls show
// one.
func (e *endpoint) desertion(t *transport.Transfer) error {
	left := e.lane.eps[t.Peer]
	if left == nil {
		return &transport.ClosedError{Replica: t.Peer}
	}
	c := &e.call
	if left.called && c.Group == left.call.Group && c.Seq == left.call.Seq && !c.Same(left.call) {
		return &transport.MismatchError{Replica: e.rank, Peer: t.Peer, Mine: *c, Theirs: left.call}
	}
	if theirs, how := left.history.Find(c); how == calls.Other {
		return &transport.MismatchError{Replica: e.rank, Peer: t.Peer, Mine: *c, Theirs: theirs}
	}
	if left.called && !left.torn && c.Seq != 0 && left.call == *c {
		if mismatch := calls.Unpaired(e.rank, t, *c); mismatch != nil {
			return mismatch
		}
	}
	return &transport.ClosedError{Replica: t.Peer}
}

// plan has the faults happen that happen at an instant.
func (n *Net) plan() {
	f := &n.config.Faults
	for _, s := range f.Slow {
		n.slow[s.Replica] = max(n.slow[s.Replica], s.By)
	}
	for _, d := range f.Deaths {
		r := n.replicas[d.Replica]
		if d.Call > 0 {
			if r.dies == 0 || d.Call < r.dies {
				r.dies = d.Call
			}
			continue
		}
		n.simulator.fault(d.At.Seconds(), func() { n.die(r) })
	}
	for _, p := range f.Partitions {
		n.simulator.fault(p.At.Seconds(), func() { n.part(p.From, p.To) })
		if p.Both {
			n.simulator.fault(p.At.Seconds(), func() { n.part(p.To, p.From) })
		}
	}
}

// die ends a replica. The others lose it after the silence.
func (n *Net) die(r *replica) {
	if r.dead || r.closed {
		return
	}
	r.dead = true
	if r.aborted.Load() == nil {
		r.abort(&transport.AbortError{Replica: r.rank, Cause: ErrDead})
	}
	n.account(r)
	n.silence(func() {
		for _, o := range n.replicas {
			n.lose(o, r)
		}
	})
}

// silence has something happen when nothing has come for the silence.
func (n *Net) silence(over func()) {
	n.silences++
	n.simulator.fault(n.simulator.now+n.config.Faults.Silence.Seconds(), func() {
		n.silences--
		over()
	})
}

// lose has a replica lose another.
func (n *Net) lose(by, r *replica) {
	if !by.dead && !by.closed && by.aborted.Load() == nil {
		n.abort(by, &transport.LostError{Replica: r.rank, Err: errSilent})
	}
}

// cut is a set of pairs of replicas between which no bytes arrive.
type cut struct{ from, to map[int]bool }

// isCut reports whether nothing arrives from one replica at another.
func (n *Net) isCut(from, to int) bool {
	return slices.ContainsFunc(n.cuts, func(c cut) bool { return c.from[from] && c.to[to] })
}

// part cuts replicas off from others, which lose them after the silence.
func (n *Net) part(from, to []int) {
	c := cut{map[int]bool{}, map[int]bool{}}
	for _, r := range from {
		c.from[r] = true
	}
	for _, r := range to {
		c.to[r] = true
	}
	n.cuts = append(n.cuts, c)
	for _, r := range n.replicas {
		for _, e := range r.lanes {
			for i := range e.states {
				s := &e.states[i]
				if s.flow == nil || e.batch[i].Kind != transport.Send || !n.isCut(e.rank, e.batch[i].Peer) {
					continue
				}
				n.simulator.drop(s.flow)
				n.simulator.recycle(s.flow)
				s.peer.e.states[s.peer.index].flow = nil
				s.flow = nil
			}
		}
	}
	lost := n.replicas[slices.Min(from)]
	n.silence(func() {
		for _, r := range slices.Sorted(slices.Values(to)) {
			n.lose(n.replicas[r], lost)
		}
	})
}
