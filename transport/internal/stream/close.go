package stream

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
)

// settleTime is how long Close waits for the receivers of messages that nobody has read. Once a Close of a node has
// waited for so long in vain no other waits.
const settleTime = time.Second

// Close implements transport.Endpoint. The root lane closes all lanes of its node.
func (l *Lane) Close() error {
	n, whole := l.node, l.IsRoot()
	closing, others, idle := l.beginClose(whole)
	for _, l := range others { // what they tell goes first
		n.await(l.isParted, func() { <-l.parted })
	}
	if len(closing) == 0 {
		return nil
	}
	for _, l := range closing { // out of its last Exchange
		n.await(l.busy.TryLock, l.busy.Lock)
		if l.stopWatch != nil {
			l.stopWatch()
		}
	}
	var err error
	if idle && n.aborted.Load() == nil {
		err = n.settleAll(closing)
	}
	if whole { // a report goes before the word that this replica leaves: nobody waits for it after that
		n.mu.Lock()
		n.leaving = true
		n.mu.Unlock()
		n.reports.sending.Wait()
	}
	for _, l := range closing {
		l.part(whole && l == closing[len(closing)-1])
		l.busy.Unlock()
	}
	if whole {
		n.dropEarly()
		n.Host.Leave()
	}
	if aborted := n.aborted.Load(); err == nil && aborted != nil && calls.Disagree(aborted) && !n.told.Swap(true) {
		err = aborted
	}
	return err
}

// await waits for another goroutine of this replica. Where a Scheduler decides who runs, it is asked to, and ready is
// what it tries.
func (n *Node) await(ready func() bool, wait func()) {
	if s, ok := n.Host.(Scheduler); ok {
		s.Await(ready)
		return
	}
	wait()
}

// isParted reports whether Close has told the others and let the links go.
func (l *Lane) isParted() bool {
	select {
	case <-l.parted:
		return true
	default:
		return false
	}
}

// beginClose marks the lane closed, and with whole all others of the node. It returns those that it has marked, those
// that were closed before, and whether none is in a call.
func (l *Lane) beginClose(whole bool) (closing, others []*Lane, idle bool) {
	n := l.node
	n.mu.Lock()
	defer n.mu.Unlock()
	lanes := []*Lane{l}
	if whole {
		n.closed = true
		for _, other := range n.lanes {
			if other != l {
				lanes = append(lanes, other)
			}
		}
		slices.SortFunc(lanes[1:], func(a, b *Lane) int { return cmp.Compare(a.number, b.number) })
	}
	idle = true
	for _, l := range lanes {
		if l.closed.Load() {
			others = append(others, l)
			continue
		}
		l.closed.Store(true) // first: an Exchange that meets the look below is refused as closed, not as busy
		if l.busy.TryLock() {
			l.busy.Unlock()
		} else {
			idle = false
		}
		l.wake()
		closing = append(closing, l)
	}
	return closing, others, idle
}

// settleAll waits for the messages of lanes that are being closed. The first error counts; a disagreement aborts.
func (n *Node) settleAll(lanes []*Lane) (err error) {
	for _, l := range lanes {
		if unsettled := l.settle(); err == nil {
			err = unsettled
		}
	}
	if calls.Disagree(err) {
		n.told.Store(true)
		n.abort(err)
	}
	return err
}

// dropEarly closes the links of lanes that were never opened here.
func (n *Node) dropEarly() {
	n.mu.Lock()
	var links []Link
	for _, e := range n.early {
		if e.link != nil {
			links = append(links, e.link)
		}
	}
	clear(n.early)
	n.mu.Unlock()
	closeAll(links)
}

// settle waits until the messages that this replica has sent are read, or their receivers have left, for settleTime at
// most, and says what is wrong with those that are not, and with those that this replica has not read.
func (l *Lane) settle() error {
	n := l.node
	if l.poller != nil { // nothing has come that was not asked for
		if err := l.discord(); err != nil {
			return err
		}
		l.poller.Poll(pollTime)
	}
	open := func() (any bool) {
		for r := range l.peers {
			if p := &l.peers[r]; p.sent.Load() > p.acked.Load() && p.left.Load() == nil {
				any = true
			}
		}
		return any || l.boards != nil && !l.boards.Heard()
	}
	a := l.looker
	if a != nil && l.boards != nil && !l.boards.Heard() {
		a.Attend(hearing{l.boards})
		defer a.Attend(nil)
	}
	if open() && !n.expired.Load() {
		for r := range l.peers {
			if p := &l.peers[r]; p.sent.Load() > p.acked.Load() {
				n.Host.Tell(r, appendLane(nil, ask, l.number))
			}
		}
		for until := time.Now().Add(settleTime); ; {
			l.heardOf = l.events.Load()
			rest := time.Until(until)
			if !open() || n.aborted.Load() != nil || n.expired.Load() {
				break
			}
			if rest <= 0 {
				n.expired.Store(true)
				break
			}
			if a != nil && l.boards != nil && l.boards.Heard() {
				a.Attend(nil) // or it would not sleep
			}
			l.sleep(rest)
		}
	}
	if err := l.discord(); err != nil {
		return err
	}
	for r := range l.peers {
		p := &l.peers[r]
		left := p.left.Load()
		if left == nil || p.sent.Load() <= p.acked.Load() {
			continue
		}
		made := l.history.Last(historyLength)
		for _, mine := range made {
			if theirs := left.instead(&mine); theirs != nil {
				return l.mismatch(r, mine, *theirs)
			}
		}
		if n.stopped() != nil { // which the other has told before it left: that is why it has not read
			return nil
		}
		for _, mine := range made {
			if p.last > 0 && mine.Group == p.lastGroup && mine.Seq == p.lastSeq && left.over(&mine) { // without it
				return &transport.MismatchError{Replica: r, Peer: n.Rank, Mine: mine, Theirs: mine, TheirsBytes: p.last}
			}
		}
		return &transport.ClosedError{Replica: r}
	}
	if l.boards != nil {
		// In this order: the others do not leave over an abort before this replica knows of it.
		if err := l.boards.Unheard(); err != nil && n.stopped() == nil {
			return err
		}
	}
	return nil
}

// hearing waits for others to hear what this replica has told them beside messages.
type hearing struct{ Boards }

// Met implements Awaited.
func (h hearing) Met() bool { return h.Heard() }

// Awaits implements Awaited. Nobody asks.
func (h hearing) Awaits(int) bool { return true }

// part tells the others that this replica leaves the lane, or all lanes, and gives back what the lane has.
func (l *Lane) part(whole bool) {
	n := l.node
	for r := range l.peers {
		if r != n.Rank {
			n.Host.Tell(r, l.appendLeft(nil, r, whole))
		}
	}
	var links []Link
	for r := range l.peers {
		if link := l.peers[r].link.Load(); link != nil {
			links = append(links, link.Link)
		}
	}
	if n.aborted.Load() != nil {
		for i, link := range links {
			if d, ok := link.(Dropper); ok {
				d.Drop()
				links[i] = nil
			}
		}
	}
	closeAll(links)
	l.parker.Close()
	if l.IsRoot() {
		replicas.Add(-1)
	}
	n.mu.Lock()
	l.through = true
	n.forget(l)
	n.mu.Unlock()
	close(l.parted)
}

// closeAll closes links, all at a time: each may take a while.
func closeAll(links []Link) {
	var all sync.WaitGroup
	for _, link := range links {
		if link != nil {
			all.Go(func() { link.Close() })
		}
	}
	all.Wait()
}

// appendLeft makes the message that this replica leaves a lane.
func (l *Lane) appendLeft(b []byte, peer int, whole bool) []byte {
	b = appendLane(b, left, l.number)
	how := byte(0)
	if whole {
		how |= leftWhole
	}
	b = append(b, how)
	p := &l.peers[peer]
	// Messages that the link has taken in part are counted too. Their Exchange has failed, and the peer has heard of
	// the abort before this. It may still be passing the abort on: explained waits for that.
	b = binary.LittleEndian.AppendUint64(b, p.sent.Load())
	b = binary.LittleEndian.AppendUint64(b, p.read.Load())
	for _, c := range l.history.Last(partingLength) {
		b = transport.AppendCall(b, c)
	}
	return b
}
