package stream

import (
	"encoding/binary"
	"sync/atomic"

	"gogcl.dev/transport"
)

// probe is a probe that has come.
type probe struct {
	from   int           // who has sent or passed it on
	number uint32        // of those that the first replica of the path has sent on this lane
	wait   waitKind      // how from waits for this replica
	count  uint64        // of messages: see waitKind
	path   []stationCall // from the first replica to from
}

// stationCall is a replica on a probe's path, and the call in which it waits.
type stationCall struct {
	replica int
	call    transport.Call
}

// waitKind is how one replica waits for another.
type waitKind uint8

const (
	forMessage waitKind = iota // it has read count messages, and waits for the next
	forCredit                  // it knows that count of its messages have been read, and may send no more
	forLink                    // the link takes no more of a message that it has begun
	forCall                    // it is in an Engage, which ends when this replica has made the call
	forMeeting                 // it is in an Await, for this replica to come
)

// maxPath bounds the path of a probe, so that its message is no longer than MaxMessage.
const maxPath = 128

const stationBytes = 4 + transport.CallBytes

// appendProbe makes the message of a probe, but for its last bytes: the path.
func appendProbe(b []byte, lane uint64, number uint32, wait waitKind, count uint64) []byte {
	b = binary.LittleEndian.AppendUint32(appendLane(b, chase, lane), number)
	return binary.LittleEndian.AppendUint64(append(b, byte(wait)), count)
}

func appendStation(b []byte, s stationCall) []byte {
	return transport.AppendCall(binary.LittleEndian.AppendUint32(b, uint32(s.replica)), s.call)
}

// parseProbe reads what follows the lane in the message of a probe, with its path in memory that path has.
func (n *Node) parseProbe(from int, b []byte, path []stationCall) (q probe, ok bool) {
	const head = 4 + 1 + 8
	if len(b) < head || (len(b)-head)%stationBytes != 0 {
		return q, false
	}
	q = probe{from: from, number: binary.LittleEndian.Uint32(b), wait: waitKind(b[4]),
		count: binary.LittleEndian.Uint64(b[5:]), path: path}
	stations := (len(b) - head) / stationBytes
	if stations < 1 || stations > maxPath || q.wait > forMeeting {
		return q, false
	}
	for b = b[head:]; len(b) > 0; b = b[stationBytes:] {
		s := stationCall{int(binary.LittleEndian.Uint32(b)), transport.ParseCall(b[4:])}
		if s.replica < 0 || s.replica >= n.Size { // less where an int has 32 bits
			return q, false
		}
		q.path = append(q.path, s)
	}
	return q, q.path[stations-1].replica == from
}

// chased is what a lane knows of probes.
type chased struct {
	number uint32         // of its own last one
	still  bool           // nothing has moved since
	passed map[int]uint32 // by replica: the last of its probes that this one has passed on

	any   atomic.Bool // come is not empty
	come  []probe     // under node.mu
	spare []probe     // those before them, whose memory serves again

	path, message []byte // memory for probes that are sent
}

// pathMemory is memory for the path of the next probe that comes. The caller holds node.mu.
func (c *chased) pathMemory() []stationCall {
	if n := len(c.come); n < cap(c.come) {
		return c.come[:n+1][n].path[:0]
	}
	return nil
}
