package tcp

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/hosts"
	"gogcl.dev/transport/internal/stream"
)

// generation is the mesh among those who are left of it: the stream.Host of their node. Their numbers in it are not
// those of the mesh, which stay: a member's number in the mesh is its place.
type generation struct {
	*mesh
	number  int
	members []int       // places, ascending: by number in the generation
	numbers map[int]int // by place: number in the generation
	node    *stream.Node
	lane    *stream.Lane // that its node began with
	where   *hosts.Table
	before  *generation // the last one: word of it may still come; nil: there is none

	// Guarded by mesh.life.
	asked bool                // Rejoin has been called on it
	next  *transport.Rejoined // what this replica has agreed on in it
	ended error               // why there is none
	over  chan struct{}       // closed when one of them is set
}

// begin makes a generation of members and its node. The caller holds m.life, or nobody else has the mesh yet.
func (m *mesh) begin(number int, members []int) (*generation, error) {
	c := m.config
	g := &generation{mesh: m, number: number, members: members, numbers: make(map[int]int, len(members)),
		before: m.now.Load(), over: make(chan struct{})}
	if g.before != nil {
		g.before.before = nil
	}
	if g.number > maxGeneration {
		return nil, fmt.Errorf("tcp: replicas have rejoined %d times, which is as often as there are numbers", maxGeneration)
	}
	processes := make([]string, len(members))
	addresses := make([]Address, len(members))
	for i, place := range members {
		at := m.addressOf(place)
		g.numbers[place], processes[i], addresses[i] = i, at.Where, at
	}
	where := links(c.Network, addresses)
	config := stream.Config{Rank: g.numbers[c.Rank], Size: len(members), Host: g, Spin: spin, Crowded: c.Crowded,
		Silence: c.silence(), Processes: processes, Generation: g.number}
	if _, system := c.stack(); c.parks || !system { // a bubble's clock stands while somebody looks
		config.Spin = 0
	}
	config.Checksum = func(peer int) bool {
		return c.Checksum == ChecksumOn || c.Checksum == ChecksumAuto && where.Host(peer) != where.Host(config.Rank)
	}
	node, lane, err := stream.NewNode(config)
	if err != nil {
		return nil, err
	}
	g.node, g.lane, g.where = node, lane, where
	m.open = append(m.open, g)
	m.now.Store(g)
	if members[0] == c.Rank && m.listener.desk != nil && !m.desk {
		m.desk = true
		m.goes(m.answer)
	}
	return g, nil
}

// maxGeneration is the greatest number of a generation: see stream.Config.Generation.
const maxGeneration = 1<<16 - 1

// of returns the generation that a lane belongs to, which may be the last one, or nil: this replica is not in it.
func (m *mesh) of(lane uint64) *generation { return m.numbered(stream.GenerationOf(lane)) }

// numbered returns a generation that words may still be of: this one or the last one.
func (m *mesh) numbered(number int) *generation {
	m.life.Lock()
	defer m.life.Unlock()
	for g := m.now.Load(); g != nil; g = g.before {
		if g.number == number {
			return g
		}
	}
	return nil
}

// Tell implements stream.Host.
func (g *generation) Tell(peer int, message []byte) {
	if g.number > 0 {
		message = append(binary.BigEndian.AppendUint16([]byte{ofGeneration}, uint16(g.number)), message...)
	}
	g.at(g.members[peer]).tell(message)
}

// ofGeneration is the first byte of a control message of a generation that is not the first: its number follows, and
// then the message. It is no kind of message of package stream.
const ofGeneration byte = 254

// generationBytes is how much longer such a message is.
const generationBytes = 1 + 2

// handle takes a message of package stream, of whatever generation.
func (m *mesh) handle(place int, message []byte) error {
	number := 0
	if len(message) >= generationBytes && message[0] == ofGeneration {
		number, message = int(binary.BigEndian.Uint16(message[1:])), message[generationBytes:]
	}
	g := m.numbered(number)
	switch {
	case g == nil && number > m.now.Load().number:
		return fmt.Errorf("a word of generation %d, which this replica has not come to", number)
	case g == nil || !g.has(place):
		return nil
	}
	return g.node.Handle(g.numbers[place], message)
}

// has reports whether a place is of a member.
func (g *generation) has(place int) bool {
	_, is := g.numbers[place]
	return is
}

// number is what the users of this generation call a replica: for those that are not in it, and before the first, its
// place.
func (m *mesh) number(place int) int {
	if g := m.now.Load(); g != nil && g.has(place) {
		return g.numbers[place]
	}
	return place
}

// me is the number of this replica.
func (m *mesh) me() int { return m.number(m.config.Rank) }

// misses reports whether the end of the connection to a replica matters to the generation.
func (g *generation) misses(place int) bool {
	return g.has(place) && g.node.Misses(g.numbers[place])
}

// lost says that a member is lost to the generation.
func (g *generation) lost(place int, err error) {
	if g.has(place) {
		g.node.Lost(g.numbers[place], err)
	}
}

// Parker implements stream.Host.
func (g *generation) Parker(lane uint64) (stream.Parker, error) { return g.parker(lane) }

// Connect implements stream.Host.
func (g *generation) Connect(peer int, lane uint64) { g.connect(g.members[peer], lane) }

// Aborting implements stream.Sharer. Whoever has its call fail says so first, to all, and then looks for those who
// touch its memory: see package meeting.
func (g *generation) Aborting() {
	m := g.mesh
	if m.shm == nil {
		return
	}
	m.shm.mu.Lock()
	defer m.shm.mu.Unlock()
	if m.shm.closed {
		return
	}
	word := abortWord(g.number, m.config.Rank)
	setAborted(m.shm.own.Aborted(), word)
	for _, c := range m.all() {
		if c == nil {
			continue
		}
		if near := c.neighbour(); near != nil {
			setAborted(near.segment.Aborted(), word)
		}
	}
}

// abortWord is what a replica that aborts writes into the segments of all: the generation, its place, and 1.
func abortWord(generation, place int) uint64 { return uint64(generation)<<32 | uint64(place+1) }

// setAborted sets the word, unless it is one of this generation or of a later one.
func setAborted(at *atomic.Uint64, word uint64) {
	for {
		old := at.Load()
		if old != 0 && old>>32 >= word>>32 || at.CompareAndSwap(old, word) {
			return
		}
	}
}

// Forget implements stream.Sharer.
func (g *generation) Forget(lane uint64) {
	m := g.mesh
	if m.shm == nil {
		return
	}
	m.shm.mu.Lock()
	defer m.shm.mu.Unlock()
	if !m.shm.closed {
		m.shm.own.FreeSeats(lane)
	}
}

// letGo lets go of what replicas have given of their memory that are gone, and in no generation whose node is open. The
// caller holds m.life.
func (m *mesh) letGo() {
	if m.shm == nil {
		return
	}
	m.shm.mu.Lock()
	defer m.shm.mu.Unlock()
	if m.shm.closed {
		return
	}
	for place, c := range m.all() {
		used := func(g *generation) bool { return g.has(place) }
		if c != nil && !c.left.When.IsZero() && !slices.ContainsFunc(m.open, used) {
			c.takeNeighbour().close()
		}
	}
}

// Leave implements stream.Host. With the last generation this replica leaves the job, and with the last node that is
// closed it lets the memory go.
func (g *generation) Leave() {
	m := g.mesh
	m.life.Lock()
	last := m.now.Load() == g
	if last && m.council != nil {
		m.council.End()
	}
	m.life.Unlock()
	if last {
		m.leave()
	}
	m.life.Lock()
	m.open = slices.DeleteFunc(m.open, func(open *generation) bool { return open == g })
	closed := len(m.open) == 0
	m.letGo()
	m.life.Unlock()
	if closed {
		m.shm.close(m.all())
	}
}
