package stream

import "slices"

// divert puts messages aside whose turn has not come, and reports whether there are any.
func (l *Lane) divert() (any bool) {
	for _, r := range l.active {
		p := &l.peers[r]
		if p.recvs == 0 || p.at < 0 || p.beside != nil {
			continue
		}
		t := &l.batch[p.at]
		if p.got >= len(t.Buf) || !t.Next || whole(l.limit(p.at), len(t.Buf)) > p.got {
			continue
		}
		var a *aside
		if last := len(l.unused) - 1; last >= 0 {
			a, l.unused = l.unused[last], l.unused[:last]
		} else {
			a = new(aside)
		}
		*a = aside{at: p.at, from: p.got, bytes: l.memory(len(t.Buf)-p.got, len(t.Buf))}
		p.beside, l.asides = a, append(l.asides, a)
		any = true
	}
	return any
}

// memory returns n bytes with the room of a whole receive, so that rounds that are alike use the same memory again,
// whatever part of a message is put aside.
func (l *Lane) memory(n, whole int) []byte {
	best := -1
	for i, b := range l.spare {
		if cap(b) >= whole && (best < 0 || cap(b) < cap(l.spare[best])) {
			best = i
		}
	}
	if best >= 0 {
		b := l.spare[best]
		l.spare = slices.Delete(l.spare, best, best+1)
		return b[:n]
	}
	if len(l.spare) > len(l.peers) { // more than a round needs
		l.spare = l.spare[1:]
	}
	return make([]byte, n, whole)
}

// takeAside reads what has come of a message into the memory beside.
func (l *Lane) takeAside(p *peer, link Link) (int, error) {
	a := p.beside
	n, err := link.ReadInto(a.bytes[a.come:])
	p.add(a.bytes[a.come : a.come+n])
	a.come += n
	return n, err
}

// applyAsides folds what was put aside and has its turn by now.
func (l *Lane) applyAsides() (moved bool) {
	for k := 0; k < len(l.asides); k++ {
		a := l.asides[k]
		t := &l.batch[a.at]
		size := len(t.Buf)
		for {
			end := min(whole(l.limit(a.at), size), a.from+whole(a.come, len(a.bytes)))
			at := a.from + a.taken
			n := min(end-at, foldBlock)
			if n <= 0 {
				break
			}
			fold(t, at, a.bytes[a.taken:a.taken+n])
			a.taken += n
			l.progress[a.at] += n
			moved = true
		}
		if a.taken == len(a.bytes) && !l.isRead(a) {
			l.letGo(a)
			l.asides = slices.Delete(l.asides, k, k+1)
			k--
			l.pending--
			moved = true
		}
	}
	return moved
}

// isRead reports whether a message that was put aside is still being read: bytes that fill it up may be missing.
func (l *Lane) isRead(a *aside) bool { return l.peers[l.batch[a.at].Peer].beside == a }

// letGo keeps an aside and its memory for the next.
func (l *Lane) letGo(a *aside) {
	l.spare = append(l.spare, a.bytes[:cap(a.bytes)])
	*a = aside{}
	l.unused = append(l.unused, a)
}
