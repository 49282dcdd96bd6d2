package stream

import (
	"context"
	"errors"
	"runtime"

	"gogcl.dev/transport"
)

var errUnwound = errors.New("a Fold panicked or ended its goroutine")

// Exchange implements transport.Endpoint.
func (l *Lane) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	if !l.busy.TryLock() {
		return l.refuse(&call)
	}
	if err := l.checker.Check(l.node.Rank, l.node.Size, batch); err != nil {
		l.busy.Unlock()
		return err
	}
	if l.closed.Load() {
		l.busy.Unlock()
		return l.refuse(&call)
	}
	l.begin(ctx, call, batch)
	defer l.end()
	err := l.run()
	if err != nil {
		l.retract()
	}
	l.settled = true
	return err
}

// refuse is the error of a call on a lane that is closed, or in another call.
func (l *Lane) refuse(call *transport.Call) error {
	err := transport.ErrBusy
	if l.closed.Load() {
		err = &transport.ClosedError{Replica: l.node.Rank}
		if aborted := l.node.aborted.Load(); aborted != nil {
			err = aborted
		}
	}
	return &transport.RoundError{Replica: l.node.Rank, Round: call.Round, Peer: -1, Err: err}
}

// begin sets out what is to be done. It sends nothing.
func (l *Lane) begin(ctx context.Context, call transport.Call, batch []transport.Transfer) {
	l.ctx, l.done, l.call, l.batch = ctx, ctx.Done(), call, batch
	if l.stops == nil {
		l.stops = l.stopped
	}
	l.history.Add(&call)
	l.settled, l.pending, l.active = false, len(batch), l.active[:0]
	l.progress = append(l.progress[:0], make([]int, len(batch))...)
	l.pause, l.asides, l.chase.still = pause{}, l.asides[:0], false
	for i := range batch {
		t := &batch[i]
		p := &l.peers[t.Peer]
		if len(p.sends) == 0 && p.recvs == 0 {
			l.active = append(l.active, t.Peer)
		}
		if t.Kind == transport.Send {
			p.sends = append(p.sends, i)
			continue
		}
		p.recvs++
		if more := int(t.Tag) + 1 - len(p.byTag); more > 0 {
			p.byTag = append(p.byTag, make([]int32, more)...)
		}
		p.byTag[t.Tag] = int32(i) + 1
	}
}

// end lets go of the batch. After a Fold that did not return it does first what run would have done.
func (l *Lane) end() {
	if !l.settled {
		l.fail(nil, errUnwound)
		l.retract()
	}
	for i := range l.batch {
		if t := &l.batch[i]; t.Kind != transport.Send {
			l.peers[t.Peer].byTag[t.Tag] = 0
		}
	}
	for _, r := range l.active {
		p := &l.peers[r]
		p.sends, p.turn, p.recvs = p.sends[:0], 0, 0
	}
	l.ctx, l.done, l.batch, l.engaged = nil, nil, nil, false
	shares := l.shares()
	l.busy.Unlock()
	if shares {
		runtime.Gosched()
	}
}

// run carries out the batch.
func (l *Lane) run() error {
	if err := l.interruption(); err != nil {
		return l.fail(nil, err)
	}
	for {
		l.heardOf = l.events.Load()
		moved, err := l.step()
		if err == nil && l.poller != nil {
			moved = l.poll(moved)
		}
		switch {
		case err != nil:
			return err
		case l.pending == 0:
			return nil
		case moved:
			l.pause.looks, l.chase.still = 0, false
			continue
		}
		if err := l.interrupted(); err != nil {
			return err
		}
		if err := l.wait(); err != nil {
			return err
		}
	}
}

// poll has the parker start what the step has given to links, and look for what is next: for a while if nothing has
// moved.
func (l *Lane) poll(moved bool) bool {
	limit := pollTime
	if moved || l.pending == 0 {
		limit = 0
	}
	return l.poller.Poll(limit) || moved
}

// retract has the links let go of the memory of the batch, which has failed.
func (l *Lane) retract() {
	for _, r := range l.active {
		if link := l.peers[r].link.Load(); link != nil {
			if p, ok := link.Link.(Poster); ok {
				p.Retract()
			}
		}
	}
}

// step does what can be done without waiting. It sends first: others wait for that.
func (l *Lane) step() (moved bool, err error) {
	for _, r := range l.active {
		p := &l.peers[r]
		if p.turn == len(p.sends) || p.mute.err != nil {
			continue
		}
		link := p.link.Load()
		if link == nil {
			l.seekLink(r)
			continue
		}
		pushed, err := l.push(r, link)
		if err != nil {
			return moved, err
		}
		moved = moved || pushed
	}
	for _, r := range l.active {
		p := &l.peers[r]
		link := p.link.Load()
		if link == nil && p.recvs > 0 {
			l.seekLink(r)
		} else if p.recvs > 0 && p.deaf.err == nil {
			pulled, err := l.pull(r, link)
			if err != nil {
				return moved, err
			}
			moved = moved || pulled
		}
	}
	if len(l.asides) > 0 {
		moved = l.applyAsides() || moved
	}
	return moved, nil
}

// seekLink has the link to a replica made.
func (l *Lane) seekLink(r int) {
	p := &l.peers[r]
	if p.sought || p.left.Load() != nil {
		return
	}
	p.sought = true
	l.node.mu.Lock()
	defer l.node.mu.Unlock()
	l.node.connect(r, l.number) // the lane is open, so there is no error
}
