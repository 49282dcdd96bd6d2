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
	query                   // a number: answer with it, and with what this replica is doing
	reply                   // the number of a query, what the replica is doing
)

// leftWhole says how a lane is left: with all others.
const leftWhole byte = 1

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
