package stream

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gogcl.dev/transport"
)

// Handle takes a control message of a replica. The error says that it makes no sense: then the connection is no good.
// Messages of one replica are handled one after the other.
func (n *Node) Handle(peer int, message []byte) error {
	if len(message) == 0 {
		return nonsense(message)
	}
	kind, rest := message[0], message[1:]
	switch {
	case kind == aborted:
		return n.hearsAbort(peer, message, rest)
	case kind == report && len(rest) <= transport.MaxReport:
		n.reported(peer, rest)
		return nil
	case kind == query && len(rest) == queryBytes:
		n.queried(peer, binary.LittleEndian.Uint32(rest))
		return nil
	case kind == reply && len(rest) >= queryBytes && len(rest) <= queryBytes+transport.MaxReply:
		n.replied(peer, binary.LittleEndian.Uint32(rest), rest[queryBytes:])
		return nil
	case len(rest) < 8 || int(kind) >= len(handlers) || handlers[kind].take == nil:
		return nonsense(message)
	}
	h := &handlers[kind]
	at := place{Node: n, peer: peer, number: binary.LittleEndian.Uint64(rest)}
	rest = rest[8:]
	if h.bytes != anyBytes && len(rest) != h.bytes {
		return nonsense(message)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if at.lane = n.lanes[at.number]; at.lane == nil && h.open {
		return nil
	}
	err := h.take(at, rest)
	if err == errNonsense {
		return nonsense(message)
	}
	return err
}

// hearsAbort takes the message that the job is aborted.
func (n *Node) hearsAbort(peer int, message, rest []byte) error {
	if len(rest) < 4 {
		return nonsense(message)
	}
	by := int(binary.LittleEndian.Uint32(rest))
	cause, err := transport.ParseError(rest[4:])
	if err != nil || cause == nil || by < 0 || by >= n.Size {
		return nonsense(message)
	}
	n.stop(&transport.AbortError{Replica: by, Cause: cause}, peer)
	return nil
}

// handler is how a control message about a lane is taken.
type handler struct {
	bytes int  // what follows the lane, or anyBytes
	open  bool // it is dropped where the lane is not open
	take  func(at place, rest []byte) error
}

const anyBytes = -1

// place is the lane that a message of a replica is about. The node's mu is held.
type place struct {
	*Node
	peer   int
	number uint64
	lane   *Lane // nil: not open here
}

// them is what the lane has for the replica.
func (at place) them() *peer { return &at.lane.peers[at.peer] }

// errNonsense has Handle say that the message makes no sense.
var errNonsense = errors.New("it makes no sense")

// handlers are those of the kinds that are about a lane.
var handlers = [...]handler{
	left:    {anyBytes, false, place.leaves},
	waits:   {transport.CallBytes, false, place.waits},
	credit:  {8, true, place.credit},
	ask:     {anyBytes, true, place.asks},
	dial:    {anyBytes, false, place.dial},
	chase:   {anyBytes, false, place.chases},
	blind:   {anyBytes, true, place.isBlind},
	inquiry: {4, false, place.inquires},
	answer:  {4 + 8, true, place.answers},
	settle:  {transport.CallBytes, true, place.settles},
	settled: {transport.CallBytes, true, place.settled},
}

// leaves takes the message that a replica leaves the lane, or all.
func (at place) leaves(rest []byte) error {
	n := at.Node
	if len(rest) < 17 || (len(rest)-17)%transport.CallBytes != 0 || len(rest) > 17+partingLength*transport.CallBytes {
		return fmt.Errorf("a message of %d bytes that a lane is left", len(rest))
	}
	whole := rest[0]&leftWhole != 0
	p := &parting{sent: binary.LittleEndian.Uint64(rest[1:]), read: binary.LittleEndian.Uint64(rest[9:])}
	for rest = rest[17:]; len(rest) > 0; rest = rest[transport.CallBytes:] {
		p.calls = append(p.calls, transport.ParseCall(rest))
	}
	if l := at.lane; l != nil {
		if !l.leftBy(at.peer, p) {
			return fmt.Errorf("a message that it has read %d messages, which is more than were sent", p.read)
		}
		n.forget(l)
	} else if !n.closed {
		e, err := n.before(at.peer, at.number)
		if err != nil {
			return err
		}
		e.left = p
	}
	if !whole {
		return nil
	}
	n.gone[at.peer] = true
	for _, l := range n.lanes {
		l.leftBy(at.peer, &parting{})
		n.forget(l)
	}
	return nil
}

func (at place) waits(rest []byte) error {
	switch {
	case at.lane != nil:
		at.them().waits.set(transport.ParseCall(rest))
		at.lane.wake()
	case !at.closed:
		e, err := at.before(at.peer, at.number)
		if err == nil {
			call := transport.ParseCall(rest)
			e.waits = &call
		}
		return err
	}
	return nil
}

func (at place) credit(rest []byte) error {
	if !at.them().heard(binary.LittleEndian.Uint64(rest)) {
		return errNonsense
	}
	at.lane.wake()
	return nil
}

func (at place) asks([]byte) error {
	at.them().closing.Store(true)
	at.lane.tellRead(at.peer, nil)
	return nil
}

func (at place) isBlind([]byte) error {
	at.them().blind.Store(true)
	at.lane.tellRead(at.peer, nil)
	return nil
}

func (at place) dial([]byte) error {
	switch {
	case at.Rank > at.peer:
		return errNonsense
	case at.closed:
		return nil
	}
	return at.connect(at.peer, at.number)
}

func (at place) chases(rest []byte) error {
	var path []stationCall
	if at.lane != nil {
		path = at.lane.chase.pathMemory()
	}
	q, ok := at.parseProbe(at.peer, rest, path)
	if !ok {
		return errNonsense
	}
	if l := at.lane; l != nil && !l.closed.Load() && len(l.chase.come) < maxProbes {
		l.chase.come = append(l.chase.come, q)
		l.chase.any.Store(true)
		l.wake()
	}
	return nil
}

func (at place) inquires(rest []byte) error {
	at.replies(at.peer, at.lane, at.number, rest)
	return nil
}

func (at place) answers(rest []byte) error {
	at.them().theirs.Store(binary.LittleEndian.Uint64(rest[4:]))
	at.them().answered.Store(binary.LittleEndian.Uint32(rest))
	at.lane.wake()
	return nil
}

func (at place) settles(rest []byte) error {
	at.lane.asked(at.peer, transport.ParseCall(rest))
	return nil
}

func (at place) settled(rest []byte) error {
	call := transport.ParseCall(rest)
	at.them().answer.Store(&call)
	at.lane.wake()
	return nil
}
