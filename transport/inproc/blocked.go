package inproc

import (
	"slices"
	"sync"

	"gogcl.dev/transport"
)

// register holds the endpoints of a lane that have been waiting for long. A member does not move: it takes the mutex to
// leave before it does anything else. So what the mutex's holder sees of the members' batches is what they are waiting
// for, and the states of the slots between two members change no more than they do: only the sender posts, and it has
// posted all of its batch; only the receiver claims.
//
// So the edges between members are facts: if q waits for p, then q's Exchange cannot end before p's has ended. A
// cycle is a deadlock, whatever the others do, and however slow they are.
//
// A search from the newcomer finds every cycle, because there was none before, and an edge is new in one of three ways:
//
//	newcomer ──▶ x              the newcomer waits for a member
//	q ──▶ newcomer              a member waits for the newcomer
//	q ──(by newcomer)──▶ x      the newcomer takes q's message only after one of x, for which it waits too
//
// A new cycle goes through the newcomer, or by an edge of the third kind to an x to which the newcomer has an edge of
// the first: either way it can be reached from the newcomer. A member that leaves takes edges away and brings none.
type register struct {
	mu      sync.Mutex
	members []*endpoint // by rank

	credit credit

	// Of the search for a cycle, which allocates nothing once it has been made before.
	state []uint8  // by rank
	known []uint64 // by rank: the last look that found an edge to here
	look  uint64   // counts them
	path  []int
	edges []edge // of all members on the path, those of the last one last
	cost  int    // what the search at hand has looked at: transfers and places at a meeting
}

// enter adds e, unless that shows that it will wait for ever, which is the error, or it need not wait any more.
func (g *register) enter(e *endpoint) (added bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cost = 0
	defer func() { g.credit.spend(g.cost) }()
	if e.ready() { // while it waited for its turn to search
		return false, nil
	}
	if g.members == nil {
		n := len(e.lane.eps)
		g.members, g.state, g.known = make([]*endpoint, n), make([]uint8, n), make([]uint64, n)
		g.path, g.edges = make([]int, 0, 2*n), make([]edge, 0, 4*n)
	}
	for _, m := range g.members {
		if m != nil && m.call.Group == e.call.Group && m.call.Seq == e.call.Seq && !m.met() {
			if !m.call.Same(e.call) {
				return false, &transport.MismatchError{Replica: e.rank, Peer: m.rank, Mine: e.call, Theirs: m.call}
			}
			break // with which the others of this number have been compared
		}
	}
	g.cost += e.wanted.list(e)
	g.members[e.rank] = e
	if cycle := g.cycle(e.rank); cycle != nil {
		first := slices.Index(cycle, slices.Min(cycle))
		cycle = slices.Concat(cycle[first:], cycle[:first])
		err := &transport.DeadlockError{Replicas: cycle}
		for _, r := range cycle {
			err.Calls = append(err.Calls, g.members[r].call)
		}
		g.members[e.rank] = nil
		return false, err
	}
	return true, nil
}

// met reports whether a member has been at a meeting that has come about, and only has not left yet. Others that were
// there may be further, in another call of the number: after transport.ErrNotShared it goes by messages.
func (e *endpoint) met() bool { return e.visit != nil && e.visit.Met() }

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

// cycle returns members each of which waits for the next, and the last for the first, that can be reached from a
// newcomer; or nil. It is good until the next call.
func (g *register) cycle(newcomer int) []int {
	clear(g.state)
	g.path, g.edges = g.path[:0], g.edges[:0]
	return g.walk(newcomer)
}

// walk goes on with the search at q.
func (g *register) walk(q int) []int {
	g.state[q] = onPath
	g.path = append(g.path, q)
	first := len(g.edges)
	g.lookFrom(g.members[q])
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
	if g.members[to] != nil && g.known[to] != g.look {
		g.known[to] = g.look
		g.edges = append(g.edges, edge{to, via})
	}
}

// lookFrom appends the edges from q to those among the members that it waits for.
func (g *register) lookFrom(q *endpoint) {
	g.look++
	// A meeting at which somebody is missing.
	if v := q.visit; v != nil {
		g.cost += len(v.Members)
		for place, r := range v.Members {
			if g.members[r] != nil && !v.Present(place) {
				g.add(r, -1)
			}
		}
		return
	}
	// A message that has not been posted: the sender has posted all of its batch.
	g.awaited(q, q.wanted.open, -1)
	g.cost += len(q.batch) - q.sent
	for i := q.sent; i < len(q.batch); i++ {
		t := &q.batch[i]
		if t.Kind != transport.Send {
			continue
		}
		p := g.members[t.Peer]
		if p == nil || q.slots[i].state.Load() != posted {
			continue
		}
		if l := p.wanted.find(q.rank, t.Tag); l == nil {
			// A message that the receiver does not want: it will take none but those of its batch.
			g.add(p.rank, -1)
		} else {
			// A message that it wants, but must first fold those in front of it.
			g.awaited(p, p.wanted.open[l.from:l.to], p.rank)
		}
	}
}

// awaited adds edges to the senders of some of p's receives, those whose messages are not there yet.
func (g *register) awaited(p *endpoint, receives []int32, via int) {
	g.cost += len(receives)
	for _, i := range receives {
		if peer := p.batch[i].Peer; g.members[peer] != nil && !p.arrived(int(i)) {
			g.add(peer, via)
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
