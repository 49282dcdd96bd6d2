package tcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"gogcl.dev/internal/netstack"
	"gogcl.dev/transport/internal/agree"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/rendezvous"
)

// aheadLimit bounds how many numbers may be left out between the last member and a newcomer.
const aheadLimit = 1 << 16

// admitNewcomer says what is wrong with the control connection of a newcomer.
func (m *mesh) admitNewcomer(conn net.Conn, h handshake.Hello) error {
	m.life.Lock()
	if m.leaves {
		m.life.Unlock()
		return fmt.Errorf("replica %d has left the job", m.config.Rank)
	}
	members := m.now.Load().members
	last := max(members[len(members)-1], m.config.Size-1)
	if h.Rank <= last || h.Rank > min(last+aheadLimit, agree.MaxID) {
		m.life.Unlock()
		return fmt.Errorf("a newcomer with the number %d, and members have numbers up to %d: it comes too late, and has to "+
			"come again", h.Rank, last)
	}
	c := m.add(h.Rank)
	m.life.Unlock()
	return c.reserve(conn, h.Lane)
}

// add is the control connection to a replica that this one may not have known before. The caller holds m.life.
func (m *mesh) add(place int) *control {
	if c := m.at(place); c != nil {
		return c
	}
	all := slices.Clone(m.all())
	for len(all) <= place {
		all = append(all, nil)
	}
	all[place] = newControl(m, place)
	m.controls.Store(&all)
	return all[place]
}

// introducing is the first byte of a control message about where a replica is, in JSON: see introduction. A newcomer
// tells so of itself first. It is no kind of message of package stream.
const introducing byte = 252

// introduction says where a replica is. A newcomer repeats it when it waits with all members.
type introduction struct {
	Place   int
	Address Address
	Waits   bool `json:",omitempty"`
}

func (i introduction) message() []byte {
	text, err := json.Marshal(i)
	if err != nil { // there is nothing in it that cannot be marshalled
		panic(err)
	}
	return append([]byte{introducing}, text...)
}

// introduce tells a newcomer where members are that have come themselves. Of the others the desk has told.
func (m *mesh) introduce(newcomer int, members []int) {
	for _, place := range members {
		if place < m.config.Size {
			continue
		}
		m.at(newcomer).tell(introduction{Place: place, Address: m.addressOf(place)}.message())
	}
}

// introduced takes an introduction: of a newcomer that has connected, or by a member to this newcomer.
func (m *mesh) introduced(by int, text []byte) error {
	var i introduction
	if err := json.Unmarshal(text, &i); err != nil {
		return fmt.Errorf("it introduces a replica, by something else than JSON: %w", err)
	}
	m.life.Lock()
	defer m.life.Unlock()
	if by > m.config.Rank && m.arrival.waits() { // one that has heard of this replica as a member, before itself
		m.awaitArrival()
	}
	switch {
	case m.arrival != nil && !m.arrival.waits() && m.council == nil: // it has given up
		return nil
	case m.arrival.waits():
		if i.Place < 0 || i.Place >= m.config.Rank && by < m.config.Rank && i.Place != m.config.Rank {
			m.arrival.ends(agree.ErrAgain) // another newcomer has come before, with a greater number
			return nil
		}
		m.reach(i)
		return nil
	case i.Place == by && i.Waits && by >= m.config.Size:
		if c := m.at(by); !m.now.Load().has(by) && c.left.When.IsZero() { // else it has been taken in meanwhile
			c.waits = true
			m.waiting.Store(true)
		}
		return nil
	case i.Place != by || m.now.Load().has(by) || by < m.config.Size:
		return fmt.Errorf("it introduces replica %d, which is for newcomers to do", i.Place)
	}
	m.at(by).isAt(i.Address)
	m.council.Wait(by)
	return nil
}

// Awaited implements transport.Rejoiner.
func (e *endpoint) Awaited() bool {
	g := e.generation
	return g.waiting.Load() && len(g.members) < g.most()
}

// deskOf is where the first of those that are left answers newcomers, and what it knows for them.
type deskOf struct {
	config rendezvous.Config
	key    []byte // of the job: see Join
	blob   []byte // what the first replica 0 has told all
}

// running is what a newcomer is told at the desk.
type running struct {
	Key        []byte
	Size, Most int
	Network    Network
	Crowded    bool // the desk's host is
	Members    []introduction
	Blob       []byte
}

// answer is the desk of this replica.
func (m *mesh) answer() {
	d := m.listener.desk
	next := 0
	own, _ := netip.ParseAddrPort(m.address.TCP)
	answer := func() []byte {
		m.life.Lock()
		defer m.life.Unlock()
		r := running{Key: d.key, Size: m.config.Size, Most: m.config.Most, Network: m.config.Network,
			Crowded: m.config.Crowded, Blob: d.blob}
		for _, place := range m.now.Load().members {
			r.Members = append(r.Members, introduction{Place: place, Address: m.addressOf(place)})
		}
		text, err := json.Marshal(r)
		if err != nil { // there is nothing in it that cannot be marshalled
			panic(err)
		}
		return text
	}
	number := func() uint64 {
		m.life.Lock()
		defer m.life.Unlock()
		next = max(next+1, len(m.all()), m.config.Rank+1)
		return uint64(next)
	}
	stack, _ := m.config.stack()
	err := rendezvous.Desk(netstack.With(m.ctx, stack), d.config, own.Addr(), answer, number)
	if m.ctx.Err() == nil && d.config.Tell != nil {
		d.config.Tell(fmt.Sprintf("replica %d cannot answer newcomers, and none can come: %v", m.me(), err))
	}
}

// fits says why a newcomer cannot come to a job.
func (r *running) fits(c *Config, m *Meeting) error {
	own := c.Network
	switch {
	case len(r.Members) == 0 || slices.ContainsFunc(r.Members, func(i introduction) bool {
		return i.Place < 0 || i.Place > agree.MaxID
	}):
		return errors.New("it is told of a job without replicas")
	case r.Size != c.Size || r.Most != c.Most:
		return fmt.Errorf("to a job of %d replicas at first and %d at most, and the job has %d and %d: give it the same",
			c.Size, c.Most, r.Size, r.Most)
	case own != "" && own != Auto && own != r.Network:
		return fmt.Errorf("by network %q, and the job goes by %q: give it the same, or %q", own, r.Network, Auto)
	case r.Network.memory() && c.TLS != nil:
		return fmt.Errorf("with TLS, which memory has not, and the job goes by %q", r.Network)
	case m.Agree != nil:
		return m.Agree([][]byte{r.Blob, m.Blob})
	}
	return nil
}
