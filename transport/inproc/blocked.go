package inproc

import (
	"slices"
	"sync"

	"gogcl.dev/transport"
)

// register holds the endpoints of a lane that have been waiting for long. Who stands in it does not move: it takes the
// mutex to leave before it does anything else. So what the mutex's holder sees of the members' batches is what they are
// waiting for, and the states of the slots between two members change no more than they do: only the sender posts, and it
// has posted all of its batch; only the receiver claims.
//
// That makes the edges between members facts: if q waits for p, then q's Exchange cannot end before p's has ended. A cycle
// is a deadlock, whatever the others do, and however slow they are.
type register struct {
	mu      sync.Mutex
	members []*endpoint // by rank
}

// enter adds e, unless that shows that it will wait for ever.
func (g *register) enter(e *endpoint) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.members == nil {
		g.members = make([]*endpoint, len(e.lane.eps))
	}
	for _, m := range g.members {
		if m != nil && m.call.Group == e.call.Group && m.call.Seq == e.call.Seq && !m.call.Same(e.call) {
			return &transport.MismatchError{Rank: e.rank, Peer: m.rank, Mine: e.call, Theirs: m.call}
		}
	}
	g.members[e.rank] = e
	if cycle := g.cycle(); cycle != nil {
		first := slices.Index(cycle, slices.Min(cycle))
		cycle = slices.Concat(cycle[first:], cycle[:first])
		err := &transport.DeadlockError{Ranks: cycle}
		for _, r := range cycle {
			err.Calls = append(err.Calls, g.members[r].call)
		}
		g.members[e.rank] = nil
		return err
	}
	return nil
}

// leave removes e.
func (g *register) leave(e *endpoint) {
	g.mu.Lock()
	g.members[e.rank] = nil
	g.mu.Unlock()
}

// edge leads from a member to one that it waits for, by way of a third or of none (-1).
type edge struct{ to, via int }

// cycle returns members each of which waits for the next, and the last for the first, or nil.
func (g *register) cycle() []int {
	const (
		unseen = iota
		open   // on the path
		clear  // on no cycle
	)
	state := make([]uint8, len(g.members))
	var path []int
	var walk func(q int) []int
	walk = func(q int) []int {
		state[q] = open
		path = append(path, q)
		for _, d := range g.edges(g.members[q]) {
			if d.via >= 0 {
				path = append(path, d.via)
			}
			switch state[d.to] {
			case open:
				return path[slices.Index(path, d.to):]
			case unseen:
				if found := walk(d.to); found != nil {
					return found
				}
			}
			if d.via >= 0 {
				path = path[:len(path)-1]
			}
		}
		state[q] = clear
		path = path[:len(path)-1]
		return nil
	}
	for q, m := range g.members {
		if m != nil && state[q] == unseen {
			if found := walk(q); found != nil {
				return found
			}
		}
	}
	return nil
}

// edges returns what q waits for among the members.
func (g *register) edges(q *endpoint) []edge {
	var out []edge
	known := make([]bool, len(g.members))
	add := func(to, via int) {
		if g.members[to] != nil && !known[to] {
			known[to] = true
			out = append(out, edge{to, via})
		}
	}
	// A meeting at which somebody is missing.
	if v := q.visit; v != nil {
		for place, r := range v.members {
			if !v.present(place) {
				add(r, -1)
			}
		}
		return out
	}
	// A message that has not been posted: the sender has posted all of its batch.
	for _, c := range q.chains {
		for i := c.at; i < c.end; i++ {
			if !q.arrived(i) {
				add(q.batch[i].Peer, -1)
			}
		}
	}
	for i := q.sent; i < len(q.batch); i++ {
		t := &q.batch[i]
		if t.Kind != transport.Send || q.slots[i].state.Load() != posted {
			continue
		}
		p := g.members[t.Peer]
		if p == nil {
			continue
		}
		c, at := p.receive(q.rank, t.Tag)
		if at < 0 {
			// A message that the receiver does not want: it will take none but those of its batch.
			add(p.rank, -1)
			continue
		}
		// A message that it wants, but must first fold those in front of it.
		for k := c.at; k < at; k++ {
			if !p.arrived(k) {
				add(p.batch[k].Peer, p.rank)
			}
		}
	}
	return out
}

// sight is the slot of a receive, or nil when the sender has not made it yet. It changes nothing.
func (e *endpoint) sight(i int) *slot {
	if s := e.slots[i]; s != nil {
		return s
	}
	t := &e.batch[i]
	return e.in[t.Peer].peek(&e.heads[t.Peer], t.Tag)
}

// arrived reports whether the message of a receive is there.
func (e *endpoint) arrived(i int) bool {
	s := e.sight(i)
	return s != nil && s.state.Load() != free
}

// receive finds the receive of a message that is not done: its chain, and its index in the batch, or -1.
func (e *endpoint) receive(peer int, tag uint32) (chain, int) {
	for _, c := range e.chains {
		for i := c.at; i < c.end; i++ {
			if t := &e.batch[i]; t.Peer == peer && t.Tag == tag {
				return c, i
			}
		}
	}
	return chain{}, -1
}
