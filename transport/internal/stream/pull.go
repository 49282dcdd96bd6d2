package stream

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"gogcl.dev/transport"
)

// foldBlock is how much of what has arrived is folded at a time at most: what is folded into stays in the first-level
// cache.
const foldBlock = 16 << 10

// pull reads what has come from a replica, as far as the batch wants it.
func (l *Lane) pull(r int, link Link) (moved bool, err error) {
	p := &l.peers[r]
	for p.recvs > 0 {
		if p.at < 0 {
			acked := p.acked.Load()
			ok, err := p.look(link)
			if err != nil {
				return moved, l.ends(r, l.awaited(r), &p.deaf, err)
			}
			if !ok { // credit that has come may let a send go on
				return moved || p.acked.Load() != acked, nil
			}
			if err := l.accept(r); err != nil {
				return moved, err
			}
			link.Skip(frameAlign)
			moved = true
		}
		took, done, err := l.take(p, link)
		moved = moved || took
		if err != nil {
			return moved, l.ends(r, l.awaited(r), &p.deaf, err)
		}
		if !done {
			return moved, nil
		}
	}
	return moved, nil
}

// maxCredits is how many headers with credit alone a look takes in. Between two messages there are a few at most, but a
// broken peer could send them without end.
const maxCredits = 2 * transport.MaxUnread

// look has p.frame be the header of the next message, if one has come. It takes in what the peer says on the way of
// what it has read.
func (p *peer) look(link Link) (bool, error) {
	for n := 0; !p.seen; n++ {
		if n == maxCredits {
			return false, nil
		}
		b, err := link.Peek(frameAlign)
		if err != nil || b == nil {
			return false, err
		}
		if err := p.frame.parse(b); err != nil {
			return false, err
		}
		// Where the peer gives credit by control messages, a frame may be so old that its 16 bits have come round.
		if !p.hidden && !p.heardLow(p.frame.read) {
			return false, corruptError("a frame says that more messages have been read than were sent")
		}
		if p.seen = p.frame.flags&credits == 0; !p.seen {
			link.Skip(frameAlign)
		}
	}
	return true, nil
}

// accept compares the header of a message with what the batch wants, before a byte of the payload is written.
func (l *Lane) accept(r int) error {
	p := &l.peers[r]
	f := &p.frame
	at := -1
	if int(f.tag) < len(p.byTag) {
		at = int(p.byTag[f.tag]) - 1
	}
	t := &transport.Transfer{Kind: transport.Recv, Peer: r}
	if at >= 0 {
		t = &l.batch[at]
	} else if wanted := l.awaited(r); wanted != nil {
		t = wanted
	}
	switch {
	case f.call != l.call:
		return l.fail(t, l.mismatch(r, l.call, f.call))
	case at < 0:
		return l.fail(t, &tagError{f.tag, t.Tag})
	case f.length != uint64(len(t.Buf)):
		return l.fail(t, &transport.MismatchError{Replica: l.node.Rank, Peer: r, Mine: l.call, Theirs: f.call,
			MineBytes: len(t.Buf), TheirsBytes: int(min(f.length, math.MaxInt))})
	}
	p.byTag[f.tag] = 0
	p.at, p.got, p.insum = at, 0, 0
	return nil
}

// tagError says that a message of the right call has a tag that no receive of the batch waits for.
type tagError struct {
	got  uint16
	want uint32
}

func (e *tagError) Error() string {
	return fmt.Sprintf("a message with tag %d, where tag %d is expected: the replicas do not carry out the same schedule",
		e.got, e.want)
}

// awaited is a receive from a replica that is not done, or nil.
func (l *Lane) awaited(r int) *transport.Transfer {
	p := &l.peers[r]
	for i := range l.batch {
		t := &l.batch[i]
		if t.Peer == r && t.Kind != transport.Send && (p.at == i || p.byTag[t.Tag] == int32(i)+1) {
			return t
		}
	}
	return nil
}

// take reads the payload of the message at hand, and what fills it up, as far as it has come and may be used.
func (l *Lane) take(p *peer, link Link) (moved, done bool, err error) {
	t := &l.batch[p.at]
	size := len(t.Buf)
	for p.got < size {
		n := 0
		switch {
		case p.beside != nil:
			n, err = l.takeAside(p, link)
		case t.Kind == transport.Recv:
			if n, err = link.ReadInto(t.Buf[p.got:]); n > 0 {
				p.add(t.Buf[p.got : p.got+n])
				l.progress[p.at] += n
			}
		default:
			n, err = l.takeFold(p, t, link)
		}
		p.got += n
		moved = moved || n > 0
		if err != nil || n == 0 {
			return moved, false, err
		}
	}
	// What is left of the frame: bytes that fill it up, but for those that went with the last fold, and the trailer.
	rest := pad(size)
	if t.Kind != transport.Recv && p.beside == nil {
		rest = 0
	}
	trailer := 0
	if p.frame.flags&summed != 0 {
		trailer = frameAlign
	}
	if rest > 0 && !(p.got > size) {
		b, err := link.Peek(rest)
		if err != nil || b == nil {
			return moved, false, err
		}
		link.Skip(rest)
		moved = true
		p.got++ // so that it is not read twice
	}
	if trailer > 0 {
		b, err := link.Peek(trailer)
		if err != nil || b == nil {
			return moved, false, err
		}
		if sum := binary.LittleEndian.Uint32(b); sum != p.insum {
			return moved, false, errBadSum
		}
		link.Skip(trailer)
	}
	if p.beside == nil {
		l.pending--
	}
	p.at, p.beside, p.seen = -1, nil, false
	p.recvs--
	if read := p.read.Add(1); p.closing.Load() {
		l.tellRead(t.Peer, l.draft[:])
	} else if read-p.told.Load() >= transport.MaxUnread/2 {
		l.giveCredit(t.Peer, link)
	}
	return true, true, nil
}

// add adds payload to the checksum.
func (p *peer) add(b []byte) {
	if p.frame.flags&summed != 0 {
		p.insum = crc32.Update(p.insum, castagnoli, b)
	}
}

// limit is how far the receive at i of the batch may be folded: as far as the one that it goes on from.
func (l *Lane) limit(i int) int {
	if t := &l.batch[i]; !t.Next {
		return len(t.Buf)
	}
	return l.progress[i-1]
}

// whole rounds a length down to what a Fold may be given, if it is not all.
func whole(n, all int) int {
	if n >= all {
		return all
	}
	return n &^ (frameAlign - 1)
}

// takeFold folds what has come of a message where it lies.
func (l *Lane) takeFold(p *peer, t *transport.Transfer, link Link) (int, error) {
	size := len(t.Buf)
	left := whole(l.limit(p.at), size) - p.got
	if left <= 0 {
		return 0, nil
	}
	b, err := link.Peek(frameAlign)
	if err != nil || b == nil {
		return 0, err
	}
	n := min(len(b)&^(frameAlign-1), left, foldBlock)
	p.add(b[:n])
	fold(t, p.got, b[:n])
	l.progress[p.at] += n
	link.Skip(n + pad(n))
	return n, nil
}

// fold folds bytes that have arrived into Buf at the place given.
func fold(t *transport.Transfer, at int, arrived []byte) {
	end := at + len(arrived)
	dst := t.Buf[at:end:end]
	acc := dst
	switch {
	case !t.Next:
		acc = t.With[at:end:end]
	case len(t.With) > 0 && &t.With[0] != &t.Buf[0]:
		t.Fold(dst, acc, t.With[at:end:end])
	}
	t.Fold(dst, acc, arrived[:len(arrived):len(arrived)])
}
