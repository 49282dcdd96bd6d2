package meeting

import (
	"fmt"

	"gogcl.dev/transport"
)

// CheckBroadcast says what is wrong with the arguments of Broadcast.
func CheckBroadcast(members []int, root int, buf []byte) error {
	switch {
	case len(buf) > SmallLimit:
		return &transport.ArgumentError{Reason: fmt.Sprintf("Broadcast of %d bytes, at most %d", len(buf), SmallLimit)}
	case root < 0 || root >= len(members):
		return &transport.ArgumentError{Reason: fmt.Sprintf("Broadcast from root %d of %d members", root, len(members))}
	}
	return nil
}

// fnvPrime is that of the 64-bit FNV-1a hash.
const fnvPrime = 0x100000001b3

// Broadcast is that of transport.Boards, after Begin and Mix. Members that take a message compare its call, its root
// and its length with their own. That leaves those that take none, two that both believe to be the root. They compare
// their calls every queueLength/2 broadcasts; and their roots differ, so the history of roots that goes into every
// later comparison does.
func (v *Visit) Broadcast(root int, buf []byte) error {
	v.broadcasts++
	number := v.broadcasts
	v.history = (v.history ^ uint64(root+1)) * fnvPrime
	if number%(queueLength/2) == 0 && number > queueLength/2 {
		v.stage, v.awaited = catching, number-queueLength/2
		if err := v.host.Wait(); err != nil {
			return err
		}
		if err := v.compareQueues(v.awaited); err != nil {
			return err
		}
	}
	notice := v.own.at(number)
	if root == v.Place {
		v.stage = taking // as those do who compare calls with this one
		if err := v.host.Deserted(); err != nil {
			return err
		}
		if own := &v.spools[root]; len(buf) > inlineLimit && own.boards == nil {
			own.boards = make([]byte, queueLength*SmallLimit)
		}
		copy(v.board(root, number, len(buf)), buf)
	} else {
		v.stage, v.awaited, v.from = taking, number, root
		if err := v.host.Wait(); err != nil {
			return err
		}
		if sent := v.seats[root].at(number).call; sent != *v.call { // it has its seat: it has been waited for
			return v.disagree(root, sent)
		}
		copy(buf, v.board(root, number, len(buf)))
	}
	notice.call = *v.call
	v.told = number
	notice.number.Store(number)
	v.host.Proclaim()
	return nil
}

// compareQueues checks that all were in the same call at a broadcast which all have come to. Who would write over it
// must first see this member at a later one.
func (v *Visit) compareQueues(number uint64) error {
	mine := v.own.at(number).call
	for i, s := range v.seats {
		if theirs := s.at(number).call; theirs != mine {
			*v.call = mine
			return v.disagree(i, theirs)
		}
	}
	return nil
}
