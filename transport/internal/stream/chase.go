package stream

import (
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
)

// Replicas that wait for each other in a circle, in calls of different groups, show to none of them alone:
//
//	replica 0 in a call of {0, 1, 2, 3}  ─── waits for ──▶  replica 3 in that call
//	               ▲                                               │
//	               └────── replica 2 in a call of {0, 2}  ◀────────┘
//
// So a lane that has long been parked sends a probe to those for whom it waits, and they pass it on to those for whom
// they wait (Chandy, Misra and Haas, Distributed Deadlock Detection, 1983). A lane to which its own probe comes back,
// and in which nothing has moved meanwhile, is in a circle, and no replica of it will ever go on.
//
// A replica takes a probe only while it is blocked itself, and if what the sender waits for is not on its way: the
// probe says how many messages have come. Of the replicas of a circle the one with the greatest number finds it: others
// with a greater number do not pass on its probe.

const (
	// maxProbes bounds how many probes a lane keeps until it parks. More are dropped: they will be sent again.
	maxProbes = 256

	// firstProbe is the time until a lane that has told in which call it waits sends a probe. Until the next one it is
	// four times as long, and so on up to maxProbeAgain. On a busy machine many waits are as long as noticeAfter.
	firstProbe    = 50 * time.Millisecond
	maxProbeAgain = time.Second

	// fullAfter is for how long a link must have taken nothing to count as full: what is in the sockets of both sides
	// may still be on its way.
	fullAfter = time.Second
)

// sendProbe sends a probe along each wait of the call in progress. l.chase.path is its path.
func (l *Lane) sendProbe(number uint32) {
	for _, r := range l.active {
		p := &l.peers[r]
		if p.left.Load() != nil {
			continue
		}
		if l.engaged {
			wait := forCall
			if l.goal != nil {
				wait = forMeeting
			}
			if l.waitsFor(r) {
				l.sendWait(r, number, wait, 0)
			}
			continue
		}
		if p.recvs > 0 && p.at < 0 && !p.seen {
			l.sendWait(r, number, forMessage, p.read.Load())
		}
		if p.turn < len(p.sends) {
			switch acked := p.acked.Load(); {
			case !p.begun && p.sent.Load()-acked >= transport.MaxUnread:
				l.sendWait(r, number, forCredit, acked)
			case p.begun && time.Since(l.pause.began) >= fullAfter:
				l.sendWait(r, number, forLink, acked)
			}
		}
	}
}

// waitsFor reports whether the call in progress waits for a replica.
func (l *Lane) waitsFor(r int) bool {
	switch p := &l.peers[r]; {
	case l.goal != nil:
		return l.goal.Awaits(r)
	case l.engaged:
		return true
	default:
		return p.recvs > 0 || p.turn < len(p.sends)
	}
}

// sendWait sends a probe along one wait.
func (l *Lane) sendWait(to int, number uint32, wait waitKind, count uint64) {
	c := &l.chase
	c.message = append(appendProbe(c.message[:0], l.number, number, wait, count), c.path...)
	l.node.Host.Tell(to, c.message)
}

// beginChase sends the lane's own probe.
func (l *Lane) beginChase() {
	c := &l.chase
	c.number++
	c.still = true
	c.path = appendStation(c.path[:0], stationCall{l.node.Rank, l.call})
	l.sendProbe(c.number)
}

// blocks reports whether the sender of a probe waits for this replica, which is blocked itself, in vain.
func (l *Lane) blocks(q *probe) bool {
	p := &l.peers[q.from]
	switch q.wait {
	case forMessage:
		return p.turn == len(p.sends) && p.frames == 0 && p.sent.Load() == q.count
	case forCredit:
		if p.read.Load() > q.count {
			l.tellRead(q.from, nil)
			return false
		}
	case forCall, forMeeting:
		call := &q.path[len(q.path)-1].call
		_, how := l.history.Find(call)
		if q.wait == forMeeting && !l.engaged && how == calls.Current {
			return true // this replica makes the call by messages
		}
		return call.Seq != 0 && (how == calls.Unknown || how == calls.Ahead || how == calls.Skipped)
	}
	return p.recvs == 0
}

// follow looks at the probes that have come, in an Exchange in which nothing moves. The error says that the replica is
// in a circle.
func (l *Lane) follow() error {
	if !l.chase.any.Load() {
		return nil
	}
	l.node.mu.Lock()
	probes := l.chase.come
	l.chase.come, l.chase.spare = l.chase.spare[:0], probes
	l.chase.any.Store(false)
	l.node.mu.Unlock()
	me := l.node.Rank
	for i := range probes {
		q := &probes[i]
		first := q.path[0].replica
		switch {
		case !l.blocks(q) || first < me: // blocks tells of credit, whoever was first
		case first == me:
			if q.number == l.chase.number && l.chase.still {
				return q.deadlock()
			}
		case l.chase.passed[first] != q.number && len(q.path) < maxPath:
			if l.chase.passed == nil {
				l.chase.passed = map[int]uint32{}
			}
			l.chase.passed[first] = q.number
			path := l.chase.path[:0]
			for _, s := range q.path {
				path = appendStation(path, s)
			}
			l.chase.path = appendStation(path, stationCall{me, l.call})
			l.sendProbe(q.number)
		}
	}
	return nil
}

// deadlock is the error of a probe that has come back.
func (q *probe) deadlock() *transport.DeadlockError {
	e := &transport.DeadlockError{}
	for _, s := range q.path {
		e.Replicas, e.Calls = append(e.Replicas, s.replica), append(e.Calls, s.call)
	}
	return e
}
