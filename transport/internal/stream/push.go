package stream

import (
	"encoding/binary"
	"hash/crc32"

	"gogcl.dev/transport"
)

// maxWrite is how much of a payload Send is given at once, so that a replica that sends much also reads.
const maxWrite = 512 << 10

// stageSize is how many bytes of frames that follow each other go to the link as one: to copy as much takes a fraction
// of what a call of the system does.
const stageSize = 4 << 10

// push sends what the peer's credits and the link have room for.
func (l *Lane) push(r int, link Link) (moved bool, err error) {
	p := &l.peers[r]
	for p.turn < len(p.sends) {
		if !p.begun && !l.beginFrames(r) {
			if err := l.lookForCredit(r, link); err != nil || !l.beginFrames(r) {
				return moved, err
			}
		}
		t := &l.batch[p.sends[p.turn]]
		for p.out < p.length {
			n, asked, err := p.send(link, t.Buf)
			p.out += n
			p.put.Add(uint64(n))
			moved = moved || n > 0
			if err != nil {
				return moved, l.ends(r, t, &p.mute, err)
			}
			if p.out < p.length && (n < asked || n >= maxWrite) { // come back after a look at the others
				return moved, nil
			}
		}
		p.turn += p.frames
		l.pending -= p.frames
		p.begun, p.out, p.frames, p.stage = false, 0, 0, p.stage[:0]
	}
	return moved, nil
}

// lookForCredit takes in what the peer says in the link of what it has read. Where a message lies before that, which
// the batch does not read, it asks for credit by control messages.
func (l *Lane) lookForCredit(r int, link Link) error {
	p := &l.peers[r]
	if p.at >= 0 || p.deaf.err != nil {
		return nil
	}
	if _, err := p.look(link); err != nil {
		return l.ends(r, &l.batch[p.sends[p.turn]], &p.deaf, err)
	}
	if p.seen && p.recvs == 0 && !p.hidden {
		p.hidden = true
		l.node.Host.Tell(r, appendLane(l.draft[:0], blind, l.number))
	}
	return nil
}

// beginFrames makes what the link is given next: a frame that stays where it is, but for its header and its tail, or
// frames on the stage. It reports whether the peer has credit.
func (l *Lane) beginFrames(r int) bool {
	p := &l.peers[r]
	for _, i := range p.sends[p.turn:] {
		t := &l.batch[i]
		trailer := 0
		if l.sums(r) {
			trailer = frameAlign
		}
		tailed := pad(len(t.Buf)) + trailer
		length := frameAlign + len(t.Buf) + tailed
		short := len(t.Buf) <= stageSize && len(p.stage)+length <= stageSize
		if p.sent.Load()-p.acked.Load() >= transport.MaxUnread || p.begun && !short {
			break
		}
		l.beginFrame(r, t, tailed)
		if !short {
			p.length, p.frames = length, 1
			break
		}
		p.stage = append(append(p.stage, p.header[:]...), t.Buf...)
		if trailer > 0 {
			binary.LittleEndian.PutUint32(p.tail[tailed-trailer:], crc32.Checksum(t.Buf, castagnoli))
		}
		p.stage = append(p.stage, p.tail[:tailed]...)
		p.length, p.frames = len(p.stage), p.frames+1
	}
	return p.begun
}

// giveCredit tells a replica how many of its messages have been read, by the link: a control message wakes a goroutine
// there. Where the link has no room, or the replica does not see it there, it is one nevertheless. A replica that has
// left is told nothing: its socket would answer with a reset, and what it has sent and is still on its way be lost.
func (l *Lane) giveCredit(r int, link Link) {
	p := &l.peers[r]
	if p.left.Load() != nil {
		return
	}
	if p.begun || p.mute.err != nil || p.blind.Load() {
		l.tellRead(r, l.draft[:])
		return
	}
	read := p.read.Load()
	p.told.Store(read)
	f := frame{flags: credits, read: uint16(read)}
	f.put(p.header[:])
	p.stage = append(p.stage, p.header[:]...)
	n, err := link.Send(p.stage, nil, nil)
	p.put.Add(uint64(n))
	if err != nil {
		p.mute.err = err
	}
	if n == len(p.stage) {
		p.stage = p.stage[:0]
		return
	}
	p.begun, p.length, p.out = true, len(p.stage), n // the rest goes before the next message
	l.tellRead(r, l.draft[:])
}

// beginFrame makes the header of the next frame, and its tail, as long as given.
func (l *Lane) beginFrame(r int, t *transport.Transfer, tailed int) {
	p := &l.peers[r]
	read := p.read.Load()
	if !p.blind.Load() {
		p.told.Store(read)
	}
	f := frame{tag: uint16(t.Tag), read: uint16(read), length: uint64(len(t.Buf)), call: l.call}
	p.tailed, p.sum = tailed, 0
	clear(p.tail[:])
	if l.sums(r) {
		f.flags |= summed
	}
	f.put(p.header[:])
	p.begun, p.last, p.lastGroup, p.lastSeq = true, len(t.Buf), l.call.Group, l.call.Seq
	p.sent.Add(1)
}

// sums reports whether payloads to a replica carry a checksum.
func (l *Lane) sums(r int) bool { return l.node.Checksum != nil && l.node.Checksum(r) }

// send gives the link the rest of what has begun, or a part of it, and returns how much it has taken, and of how much.
func (p *peer) send(link Link, body []byte) (n, asked int, err error) {
	if len(p.stage) > 0 {
		n, err = link.Send(p.stage[p.out:], nil, nil)
		return n, len(p.stage) - p.out, err
	}
	head, tail := p.header[min(p.out, frameAlign):], p.tail[:p.tailed]
	at := max(p.out-frameAlign, 0)
	rest := body[min(at, len(body)):]
	if len(rest) > maxWrite && !posts(link) {
		rest, tail = rest[:maxWrite], nil
	}
	summing := p.header[3]&summed != 0
	switch {
	case summing && len(rest) > 0:
		tail = nil // it holds the sum of all that goes before
	case at > len(body):
		tail = tail[at-len(body):]
	}
	n, err = link.Send(head, rest, tail)
	if took := min(n-len(head), len(rest)); summing && took > 0 {
		p.sum = crc32.Update(p.sum, castagnoli, rest[:took])
		binary.LittleEndian.PutUint32(p.tail[p.tailed-frameAlign:], p.sum)
	}
	return n, len(head) + len(rest) + len(tail), err
}
