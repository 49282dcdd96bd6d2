package stream

import (
	"encoding/binary"
	"fmt"
	"time"
)

// A link may bring nothing any more and not end: something on the way drops its packets, or holds them. So a lane that
// waits to read asks the replica by a control message how many bytes it has sent on the lane:
//
//	replica 0                                replica 1
//	waits: 64 bytes have come
//	── inquiry ────────────────────────────▶ whatever it does, between two messages of its own
//	◀──────────────────────── answer: 128 ──
//	nothing comes for Config.Silence: the link is lost
//
// Only the side that waits to read judges. A replica that computes and reads nothing is not lost, nor is a link over
// which a byte comes now and then.
//
// The same inquiry finds out about a link that has ended. A replica says that it leaves, or aborts, before it ends its
// links, so that word has come when the answer comes. If it has not, the link alone is lost.

// firstInquiry is after how long a wait that does not move the first inquiry is sent, if Config.Silence is not less
// than four times as long. The next ones follow every quarter of Config.Silence.
const firstInquiry = 50 * time.Millisecond

// inquire asks a replica how many bytes it has sent, and returns the number of the inquiry.
func (l *Lane) inquire(r int) uint32 {
	p := &l.peers[r]
	p.inquiries.sent++
	l.node.Host.Tell(r, binary.LittleEndian.AppendUint32(appendLane(l.draft[:0], inquiry, l.number), p.inquiries.sent))
	return p.inquiries.sent
}

// replies answers an inquiry. l is nil if the lane is not open here. Of a lane that is being closed the word that it is
// left says enough, and may be yet to come: a link that has come too late is ended before. The caller holds n.mu.
func (n *Node) replies(peer int, l *Lane, number uint64, inquiry []byte) {
	if n.closed || l != nil && l.closed.Load() {
		return
	}
	sent := uint64(0)
	if l != nil {
		sent = l.peers[peer].put.Load()
	}
	message := append(appendLane(n.draft[:0], answer, number), inquiry...)
	n.Host.Tell(peer, binary.LittleEndian.AppendUint64(message, sent))
}

// reads reports whether the lane waits for bytes of a replica: a message, or credit where that comes by the link.
func (p *peer) reads() bool {
	if p.deaf.err != nil {
		return false
	}
	return p.recvs > 0 || p.turn < len(p.sends) && !p.begun && !p.seen && p.at < 0
}

// listen looks at the replicas for whose bytes the lane waits, asks them what they have sent, and fails for one of whom
// bytes have been missing for Config.Silence. It returns when it is to be called again, less than 0 for no matter when.
func (l *Lane) listen(now time.Time) (again time.Duration, err error) {
	silence := l.node.Silence
	again = -1
	if silence <= 0 {
		return again, nil
	}
	for _, r := range l.active {
		p := &l.peers[r]
		q := &p.inquiries
		if l.pause.parks == 0 {
			q.moved = time.Time{}
		}
		if !p.reads() {
			continue
		}
		come, moved, ok := p.come()
		if !ok {
			continue
		}
		if q.moved.IsZero() || q.come != moved {
			q.come, q.moved, q.short, q.late = moved, now, time.Time{}, false
			q.next = now.Add(min(firstInquiry, silence/4))
		}
		left := p.left.Load()
		switch short := p.theirs.Load() > come || left != nil && p.read.Load() < left.sent; {
		case !short:
			q.short = time.Time{}
			if !now.Before(q.next) && left == nil {
				l.inquire(r)
				q.next = now.Add(silence / 4)
			}
		case q.short.IsZero():
			q.short, q.next = now, now.Add(silence)
		case now.Before(q.next):
		case !q.late: // this process may have been stopped itself: what has come meanwhile counts
			q.late, q.next = true, now.Add(silence/8)
		default:
			return again, l.fail(l.wanted(r), l.node.lost(r, fmt.Errorf("nothing has come over its data connection%s "+
				"for %v, although it has sent more and its control connection is alive", p.ends(),
				now.Sub(q.moved).Round(time.Millisecond))))
		}
		if until := max(q.next.Sub(now), time.Millisecond); again < 0 || until < again {
			again = until
		}
	}
	return again, nil
}

// come is what has come over the link, as [Gauge] has it. A link that is not there yet has brought nothing.
func (p *peer) come() (bytes, moved uint64, ok bool) {
	box := p.link.Load()
	if box == nil {
		return 0, 0, true
	}
	g, ok := box.Link.(Gauge)
	if !ok {
		return 0, 0, false
	}
	bytes, moved = g.Come()
	return bytes, moved, true
}

// ends names the link for an error, in brackets, or is "".
func (p *peer) ends() string {
	if box := p.link.Load(); box != nil {
		if g, ok := box.Link.(Gauge); ok {
			return " (" + g.Ends() + ")"
		}
	}
	return ""
}
