package sim

import (
	"cmp"
	"slices"

	"gogcl.dev/transport"
)

// matchPosts matches the transfers of all Exchanges that have begun with those of others, and has the messages go that
// can. The caller holds n.mu here and below.
func (n *Net) matchPosts() {
	sorted(n.posts)
	posts := n.posts
	n.posts = nil
	for _, e := range posts {
		switch by := n.slow[e.rank]; {
		case !e.live():
		case by > 0 && e.late:
			e.late = false
			serial := e.exchanges
			n.simulator.after(by.Seconds(), func() {
				if e.exchanges == serial {
					n.posts = append(n.posts, e)
				}
			})
		default:
			n.match(e)
		}
	}
	slices.SortFunc(n.matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.send.e.rank, b.send.e.rank), a.send.e.lane.compare(b.send.e.lane),
			cmp.Compare(a.send.index, b.send.index))
	})
	for _, m := range n.matches {
		if m.send.e.live() && m.recv.e.live() {
			n.start(m)
		}
	}
	clear(n.matches)
	n.matches = n.matches[:0]
}

// match matches the transfers of an endpoint.
func (n *Net) match(e *endpoint) {
	l := e.lane
	for i := range e.batch {
		t := &e.batch[i]
		mine := half{e, i}
		key := letterOf(e.rank, t)
		other, ok := l.waiting[key]
		if !ok {
			if l.gone(t.Peer) {
				e.fail(t, e.desertion(t))
				return
			}
			l.waiting[key] = mine
			continue
		}
		delete(l.waiting, key)
		m := match{mine, other}
		if t.Kind != transport.Send {
			m = match{other, mine}
		}
		if err := m.compare(); err != nil {
			m.recv.e.fail(m.recv.transfer(), err)
			return
		}
		e.states[i] = state{phase: underway, peer: other}
		other.e.states[other.index] = state{phase: underway, peer: mine}
		n.matches = append(n.matches, m)
	}
}

func (h half) transfer() *transport.Transfer { return &h.e.batch[h.index] }

// letterOf is what a transfer of a replica is known by.
func letterOf(rank int, t *transport.Transfer) letter {
	if t.Kind == transport.Send {
		return letter{int32(rank), int32(t.Peer), t.Tag}
	}
	return letter{int32(t.Peer), int32(rank), t.Tag}
}

// compare returns a *MismatchError of the receiver if the two ends are not of the same message.
func (m *match) compare() error {
	s, r := m.send.e, m.recv.e
	out, in := m.send.transfer(), m.recv.transfer()
	switch {
	case s.call != r.call:
		return &transport.MismatchError{Replica: r.rank, Peer: s.rank, Mine: r.call, Theirs: s.call}
	case len(out.Buf) != len(in.Buf):
		return &transport.MismatchError{Replica: r.rank, Peer: s.rank, Mine: r.call, Theirs: r.call,
			MineBytes: len(in.Buf), TheirsBytes: len(out.Buf)}
	}
	return nil
}

// start puts a message on its way.
func (n *Net) start(m match) {
	s, r := m.send.e, m.recv.e
	t := m.recv.transfer()
	bytes := float64(len(t.Buf))
	overhead := n.config.Overhead.Seconds()
	s.work += overhead
	r.work += overhead
	if t.Kind == transport.RecvFold && n.config.FoldBytesPerSecond > 0 {
		r.work += bytes / n.config.FoldBytesPerSecond
	}
	if n.isCut(s.rank, r.rank) {
		return
	}
	f := n.simulator.flow()
	f.from, f.to = m.send, m.recv
	if err := n.simulator.send(f, s.rank, r.rank, bytes, n.jitter(m)); err != nil {
		s.fail(m.send.transfer(), err)
		return
	}
	s.states[m.send.index].flow = f
	r.states[m.recv.index].flow = f
}

// jitter is how many seconds a message is late, which its place among the messages of its sender decides and the seed.
func (n *Net) jitter(m match) float64 {
	most := n.config.Faults.Jitter
	if most == 0 {
		return 0
	}
	x := n.config.Seed
	for _, word := range [...]uint64{m.send.e.lane.id, uint64(m.send.e.rank), m.send.e.exchanges,
		uint64(m.send.index)} {
		x = mix(x ^ word)
	}
	return float64(x>>11) / (1 << 53) * most.Seconds()
}

// arrived notes that all of a message is there.
func (n *Net) arrived(f *flow) {
	from, to := f.from, f.to
	n.simulator.recycle(f)
	from.e.states[from.index] = state{phase: arrived, peer: to}
	to.e.states[to.index] = state{phase: arrived, peer: from}
	e := to.e
	for i := to.index; i < len(e.batch) && e.states[i].phase == arrived; i++ {
		if next := e.batch[i].Next; next && e.states[i-1].phase < taken || !next && i > to.index {
			break
		}
		sender := e.states[i].peer
		e.states[i].phase = taken
		sender.e.states[sender.index].phase = taken
		sender.e.pinned++
		e.inbox = append(e.inbox, i)
	}
	if len(e.inbox) > 0 {
		e.rouse()
	}
}

// circle looks for endpoints of a lane that wait for each other in a circle, none of which can ever go on, and ends
// their calls. With across it takes what the endpoints of a replica wait for together: that is a circle if one
// goroutine makes the calls of the replica. It reports whether there is one.
func (n *Net) circle(across bool) bool {
	var all []*endpoint
	for _, r := range n.replicas {
		for _, e := range r.lanes {
			if e.live() {
				all = append(all, e)
			}
		}
	}
	sorted(all)
	of := map[*endpoint]int{} // numbers of nodes
	var nodes [][]*endpoint
	for i, e := range all {
		if !across || i == 0 || all[i-1].rank != e.rank {
			nodes = append(nodes, nil)
		}
		of[e] = len(nodes) - 1
		nodes[len(nodes)-1] = append(nodes[len(nodes)-1], e)
	}
	found := cycle(len(nodes), func(node int, yield func(next int)) {
		for _, e := range nodes[node] {
			for i := range e.batch {
				if o := e.awaits(i); o != nil {
					if number, ok := of[o]; ok {
						yield(number)
					} else if across {
						for _, other := range o.replica.lanes {
							if number, ok := of[other]; ok {
								yield(number)
								break
							}
						}
					}
				}
			}
		}
	})
	if found == nil {
		return false
	}
	d := &transport.DeadlockError{}
	for _, node := range found {
		e := nodes[node][0]
		d.Replicas, d.Calls = append(d.Replicas, e.rank), append(d.Calls, e.call)
	}
	first := nodes[found[0]][0]
	for i, node := range found {
		a, b := nodes[node][0], nodes[found[(i+1)%len(found)]][0]
		if a.call != b.call && !across {
			mismatch := &transport.MismatchError{Replica: a.rank, Peer: b.rank, Mine: a.call, Theirs: b.call}
			a.fail(a.unfinished(), mismatch)
			return true
		}
	}
	first.fail(first.unfinished(), d)
	return true
}

// awaits is the endpoint whose call has to end before a transfer can go on, if it is in one; nil: there is none. A
// message that has arrived waits for the sender of another one, which comes before it in a chain of folds.
func (e *endpoint) awaits(index int) *endpoint {
	t := &e.batch[index]
	switch s := &e.states[index]; {
	case s.phase == waiting:
		return e.lane.eps[t.Peer]
	case s.phase == arrived && t.Kind == transport.Send:
		r, first := s.peer.e, s.peer.index
		for first > 0 && r.batch[first].Next && r.states[first-1].phase < taken {
			first--
		}
		if r.states[first].phase == waiting {
			return r.lane.eps[r.batch[first].Peer]
		}
	}
	return nil
}

// cycle finds nodes that lead to each other in a circle.
func cycle(nodes int, each func(node int, yield func(next int))) []int {
	const (
		unseen = iota
		on     // the path
		off
	)
	color := make([]uint8, nodes)
	edges := make([][]int, nodes)
	for start := range nodes {
		if color[start] != unseen {
			continue
		}
		path := []int{start}
		for len(path) > 0 {
			at := path[len(path)-1]
			if color[at] == unseen {
				color[at] = on
				each(at, func(next int) { edges[at] = append(edges[at], next) })
			}
			if len(edges[at]) == 0 {
				color[at] = off
				path = path[:len(path)-1]
				continue
			}
			next := edges[at][0]
			edges[at] = edges[at][1:]
			switch color[next] {
			case unseen:
				path = append(path, next)
			case on:
				return path[slices.Index(path, next):]
			}
		}
	}
	return nil
}
