package inproc

import (
	"context"
	"fmt"

	"gogcl.dev/transport"
)

// queueLength is how many broadcasts a root can be ahead of the last of the others, at most. gclperf -n 8 -collective
// broadcast -place ip -sizes 8 on two cores, medians of five: 2.7 us with 8, 1.2 with 32, 0.90 with 64, 0.75 with 128.
// The memory for it grows as well: see queue.boards.
const queueLength = 64

// queue holds a member's last broadcasts, by their numbers in turn: what it sent as a root; else it only says that the
// member has taken what the root sent, and in which call it believes to be. Only the member writes.
//
// Nobody is further than queueLength ahead of anybody: at each multiple of half of it a member waits until all others
// have come as far as the multiple before. So nobody writes over what another may still read.
type queue struct {
	notices [queueLength]notice
	boards  []byte // of the messages that do not fit into a notice; made with the first
}

// at is the notice of a broadcast.
func (q *queue) at(number uint64) *notice { return &q.notices[number%queueLength] }

// board is where the message of a broadcast lies.
func (q *queue) board(number uint64, size int) []byte {
	if size <= inlineLimit {
		return q.at(number).inline[:size]
	}
	at := int(number%queueLength) * smallLimit
	return q.boards[at : at+size]
}

// Broadcast implements transport.Boards. Members that take a message compare its call, its root and its length with
// their own. That leaves those that take none, two that both believe to be the root. They compare their calls every
// queueLength/2 broadcasts; and their roots differ, so the history of roots that goes into every later comparison does.
func (e *endpoint) Broadcast(ctx context.Context, call transport.Call, members []int, root int, buf []byte) error {
	switch {
	case len(buf) > smallLimit:
		return &transport.ArgumentError{Reason: fmt.Sprintf("Broadcast of %d bytes, at most %d", len(buf), smallLimit)}
	case root < 0 || root >= len(members):
		return &transport.ArgumentError{Reason: fmt.Sprintf("Broadcast from root %d of %d members", root, len(members))}
	}
	v, err := e.visiting(ctx, &call, members)
	if err != nil {
		return err
	}
	defer e.dismiss()
	e.call.Digest = (e.call.Digest ^ uint64(root+1)<<32 ^ uint64(len(buf))) * fnvPrime
	return e.broadcast(v, root, buf)
}

// fnvPrime is that of the 64-bit FNV-1a hash.
const fnvPrime = 0x100000001b3

func (e *endpoint) broadcast(v *visit, root int, buf []byte) error {
	v.broadcasts++
	number := v.broadcasts
	v.history = (v.history ^ uint64(root+1)) * fnvPrime
	e.overdue = false
	if number%(queueLength/2) == 0 && number > queueLength/2 {
		v.stage, v.awaited = catching, number-queueLength/2
		if err := e.wait(v); err != nil {
			return err
		}
		if err := e.compareQueues(v, v.awaited); err != nil {
			return err
		}
	}
	own := v.seats[v.place].queue
	notice := own.at(number)
	if root == v.place {
		if left := e.leaver(v); left >= 0 {
			v.stage = taking // as those do who compare calls with this one
			return e.fail(&transport.Transfer{Peer: left, Kind: transport.Send}, e.desertion(left))
		}
		if len(buf) > inlineLimit && own.boards == nil {
			own.boards = make([]byte, queueLength*smallLimit)
		}
		copy(own.board(number, len(buf)), buf)
	} else {
		v.stage, v.awaited, v.from = taking, number, root
		if err := e.wait(v); err != nil {
			return err
		}
		theirs := v.seats[root].queue
		if sent := theirs.at(number).call; sent != e.call {
			return e.disagree(v, root, sent)
		}
		copy(buf, theirs.board(number, len(buf)))
	}
	notice.call = e.call
	notice.number.Store(number)
	e.proclaim(v)
	return nil
}

// proclaim wakes the members that are parked at a meeting, to take the broadcast, and those that have long been parked
// in other calls, to whom it may show that they are in the wrong one. Nobody else would wake these.
func (e *endpoint) proclaim(v *visit) {
	for _, r := range v.members {
		if other := e.lane.eps[r]; r != e.rank && other.waiting.Load() != nil {
			if !other.rouseFrom(&assembly, byEvent) && other.park.Load() == 0 {
				other.rouse(byEvent)
			}
		}
	}
}

// compareQueues checks that all were in the same call at a broadcast which all have come to. Who would write over it
// must first see this member at a later one.
func (e *endpoint) compareQueues(v *visit, number uint64) error {
	mine := v.seats[v.place].queue.at(number).call
	for i, s := range v.seats {
		if theirs := s.queue.at(number).call; theirs != mine {
			e.call = mine
			return e.disagree(v, i, theirs)
		}
	}
	return nil
}

// leaver is a member that is closed, or -1.
func (e *endpoint) leaver(v *visit) int {
	if e.lane.closed.Load() > 0 {
		for _, r := range v.members {
			if e.lane.eps[r].closed.Load() {
				return r
			}
		}
	}
	return -1
}
