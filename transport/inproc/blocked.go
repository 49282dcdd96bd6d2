package inproc

import (
	"slices"
	"sync"

	"gogcl.dev/transport"
)

// register holds the endpoints of a lane that have been waiting for long. Who stands in it does not move: it takes the
// mutex to leave before it does anything else. So what the mutex's holder sees of the members' batches is what they
// are waiting for, and the states of the slots between two members change no more than they do: only the sender posts,
// and it has posted all of its batch; only the receiver claims.
//
// That makes the edges between members facts: if q waits for p, then q's Exchange cannot end before p's has ended. A
// cycle is a deadlock, whatever the others do, and however slow they are.
type register struct {
	mu      sync.Mutex
	members []*endpoint // by rank

	// Of the search for a cycle, which is how a long wait begins and allocates nothing.
	state []uint8 // by rank
	known []bool  // by rank: the member whose edges are being looked for has one to here
	path  []int
	edges []edge // of all members on the path, those of the last one last
}

// enter adds e, unless that shows that it will wait for ever.
func (g *register) enter(e *endpoint) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.members == nil {
		n := len(e.lane.eps)
		g.members, g.state, g.known = make([]*endpoint, n), make([]uint8, n), make([]bool, n)
		g.path, g.edges = make([]int, 0, 2*n), make([]edge, 0, 4*n)
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

// The states of a member in the search.
const (
	unseen uint8 = iota
	onPath
	cleared // on no cycle
)

// cycle returns members each of which waits for the next, and the last for the first, or nil. It is good until the
// next call.
func (g *register) cycle() []int {
	clear(g.state)
	g.path, g.edges = g.path[:0], g.edges[:0]
	for q, m := range g.members {
		if m != nil && g.state[q] == unseen {
			if found := g.walk(q); found != nil {
				return found
			}
		}
	}
	return nil
}

// walk goes on with the search at q.
func (g *register) walk(q int) []int {
	g.state[q] = onPath
	g.path = append(g.path, q)
	first := len(g.edges)
	g.look(g.members[q])
	for i := first; i < len(g.edges); i++ {
		d := g.edges[i]
		if d.via >= 0 {
			g.path = append(g.path, d.via)
		}
		switch g.state[d.to] {
		case onPath:
			return g.path[slices.Index(g.path, d.to):]
		case unseen:
			if found := g.walk(d.to); found != nil {
				return found
			}
		}
		if d.via >= 0 {
			g.path = g.path[:len(g.path)-1]
		}
	}
	g.edges = g.edges[:first]
	g.state[q] = cleared
	g.path = g.path[:len(g.path)-1]
	return nil
}

// add appends an edge to a member, unless there is one.
func (g *register) add(to, via int) {
	if g.members[to] != nil && !g.known[to] {
		g.known[to] = true
		g.edges = append(g.edges, edge{to, via})
	}
}

// look appends the edges from q to those among the members that it waits for.
func (g *register) look(q *endpoint) {
	clear(g.known)
	// A meeting at which somebody is missing.
	if v := q.visit; v != nil {
		for place, r := range v.members {
			if !v.present(place) {
				g.add(r, -1)
			}
		}
		return
	}
	// A message that has not been posted: the sender has posted all of its batch.
	for _, c := range q.chains {
		for i := c.at; i < c.end; i++ {
			if !q.arrived(i) {
				g.add(q.batch[i].Peer, -1)
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
			g.add(p.rank, -1)
			continue
		}
		// A message that it wants, but must first fold those in front of it.
		for k := c.at; k < at; k++ {
			if !p.arrived(k) {
				g.add(p.batch[k].Peer, p.rank)
			}
		}
	}
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
