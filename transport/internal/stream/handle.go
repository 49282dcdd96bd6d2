package stream

import (
	"encoding/binary"
	"fmt"

	"gogcl.dev/transport"
)

// MaxMessage bounds a control message.
const MaxMessage = 8 << 10

// The kinds of control message. The numbers are part of the protocol.
const (
	aborted byte = iota + 1 // the replica where it began, the error
	left                    // a lane, how it is left, messages sent and read, the last calls
	waits                   // a lane, the call that the replica has long been waiting in
	credit                  // a lane, messages read
	ask                     // a lane: answer with credit, now and after each message, since the replica is closing
	dial                    // a lane: make a link
	report                  // what the replica was doing when it heard of an abort
	chase                   // a lane, a probe
	blind                   // a lane: give credit by control messages from now on, since a message hides it in the link
	inquiry                 // a lane, a number: answer with it
	answer                  // a lane, the number of an inquiry, how many bytes this replica's link has taken
	settle                  // a lane, a call: tell what has been made of it
	settled                 // a lane, the call that the replica has made in the place of that
)

// How a lane is left.
const (
	leftWhole byte = 1 << iota // with all others
	leftTorn                   // in the middle of a call
)

func appendAbort(b []byte, e *transport.AbortError) []byte {
	b = binary.LittleEndian.AppendUint32(append(b, aborted), uint32(e.Replica))
	return transport.AppendError(b, e.Cause)
}

func appendLane(b []byte, kind byte, lane uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(b, kind), lane)
}

// nonsense is the error of a control message that cannot be.
func nonsense(message []byte) error {
	return fmt.Errorf("it has sent a control message of %d bytes that makes no sense: %.20x", len(message), message)
}

// Handle takes a control message of a replica. The error says that it makes no sense: then the connection is no good.
// Messages of one replica are handled one after the other.
func (n *Node) Handle(peer int, message []byte) error {
	if len(message) == 0 {
		return nonsense(message)
	}
	kind, rest := message[0], message[1:]
	if kind == aborted {
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
	if kind == report && len(rest) <= transport.MaxReport {
		n.reported(peer, rest)
		return nil
	}
	if len(rest) < 8 {
		return nonsense(message)
	}
	number := binary.LittleEndian.Uint64(rest)
	rest = rest[8:]
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.lanes[number]
	switch kind {
	case left:
		return n.leaves(peer, number, rest)
	case waits:
		if len(rest) != transport.CallBytes {
			return nonsense(message)
		}
		call := transport.ParseCall(rest)
		if l == nil {
			if n.closed {
				return nil
			}
			e, err := n.before(peer, number)
			if err == nil {
				e.waits = new(call)
			}
			return err
		}
		l.peers[peer].waits.set(call)
		l.wake()
	case settle, settled:
		if len(rest) != transport.CallBytes {
			return nonsense(message)
		}
		if l == nil {
			return nil
		}
		if call := transport.ParseCall(rest); kind == settle {
			l.asked(peer, call)
		} else {
			l.peers[peer].answer.Store(&call)
			l.wake()
		}
	case credit:
		if len(rest) != 8 {
			return nonsense(message)
		}
		if l != nil {
			if !l.peers[peer].heard(binary.LittleEndian.Uint64(rest)) {
				return nonsense(message)
			}
			l.wake()
		}
	case ask:
		if l != nil {
			l.peers[peer].closing.Store(true)
			l.tellRead(peer, nil)
		}
	case blind:
		if l != nil {
			l.peers[peer].blind.Store(true)
			l.tellRead(peer, nil)
		}
	case inquiry:
		if len(rest) != 4 {
			return nonsense(message)
		}
		n.replies(peer, l, number, rest)
	case answer:
		if len(rest) != 4+8 {
			return nonsense(message)
		}
		if l != nil {
			l.peers[peer].theirs.Store(binary.LittleEndian.Uint64(rest[4:]))
			l.peers[peer].answered.Store(binary.LittleEndian.Uint32(rest))
			l.wake()
		}
	case chase:
		var room []stationCall
		if l != nil {
			room = l.chase.room()
		}
		q, ok := n.parseProbe(peer, rest, room)
		if !ok {
			return nonsense(message)
		}
		if l != nil && !l.closed.Load() && len(l.chase.come) < maxProbes {
			l.chase.come = append(l.chase.come, q)
			l.chase.any.Store(true)
			l.wake()
		}
	case dial:
		if n.Rank > peer {
			return nonsense(message)
		}
		if !n.closed {
			return n.connect(peer, number)
		}
	default:
		return nonsense(message)
	}
	return nil
}

// leaves takes the message that a replica leaves a lane, or all. The caller holds n.mu.
func (n *Node) leaves(peer int, number uint64, rest []byte) error {
	if len(rest) < 17 || (len(rest)-17)%transport.CallBytes != 0 || len(rest) > 17+partingLength*transport.CallBytes {
		return fmt.Errorf("a message of %d bytes that a lane is left", len(rest))
	}
	whole := rest[0]&leftWhole != 0
	p := &parting{torn: rest[0]&leftTorn != 0, sent: binary.LittleEndian.Uint64(rest[1:]),
		read: binary.LittleEndian.Uint64(rest[9:])}
	for rest = rest[17:]; len(rest) > 0; rest = rest[transport.CallBytes:] {
		p.calls = append(p.calls, transport.ParseCall(rest))
	}
	if l := n.lanes[number]; l != nil {
		if !l.leftBy(peer, p) {
			return fmt.Errorf("a message that it has read %d messages, which is more than were sent", p.read)
		}
		n.forget(l)
	} else if !n.closed {
		e, err := n.before(peer, number)
		if err != nil {
			return err
		}
		e.left = p
	}
	if !whole {
		return nil
	}
	n.gone[peer] = true
	for _, l := range n.lanes {
		l.leftBy(peer, &parting{})
		n.forget(l)
	}
	return nil
}

// appendLeft makes the message that this replica leaves a lane.
func (l *Lane) appendLeft(b []byte, peer int, whole bool) []byte {
	b = appendLane(b, left, l.number)
	how := byte(0)
	if whole {
		how |= leftWhole
	}
	if l.torn {
		how |= leftTorn
	}
	b = append(b, how)
	p := &l.peers[peer]
	b = binary.LittleEndian.AppendUint64(b, p.sent.Load()-uint64(p.unsent())) // the peer cannot use the others
	b = binary.LittleEndian.AppendUint64(b, p.read.Load())
	for _, c := range l.history.Last(partingLength) {
		b = transport.AppendCall(b, c)
	}
	return b
}

// tellRead tells a replica how many of its messages have been read. The message is made in room, if that is long
// enough.
func (l *Lane) tellRead(peer int, room []byte) {
	p := &l.peers[peer]
	read := p.read.Load()
	p.told.Store(read)
	b := appendLane(room[:0], credit, l.number)
	l.node.Host.Tell(peer, binary.LittleEndian.AppendUint64(b, read))
}
