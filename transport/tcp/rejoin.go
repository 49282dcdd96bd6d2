package tcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/agree"
)

// council is the agree.Host of a mesh: control connections carry the messages, and the kernel says who has ended. Its
// methods are called by those who hold mesh.life.
type council struct{ *mesh }

// rejoining is the first byte of a control message about who is left: one of package agree follows, or nothing, which
// says that the replica that tells it leaves the job. It is no kind of message of package stream.
const rejoining byte = 253

// Tell implements agree.Host.
func (m council) Tell(place int, message []byte) {
	if g := m.now.Load(); !g.has(place) { // it is to be connected with all of them
		m.introduce(place, g.members)
	}
	m.at(place).tell(append([]byte{rejoining}, message...))
}

// May implements agree.Host. Who has left or ended does not go on elsewhere. But others may have gone on without this
// replica, with newcomers, and have ended, if it has been stopped for so long that they held it for gone.
func (m council) May(members, gone []int) error {
	left := len(members) - len(gone)
	if 2*left > len(members) || 2*left == len(members) && gone[0] != members[0] {
		return nil
	}
	for _, place := range gone {
		if m.wasStopped() {
			return m.minority(members, gone)
		}
		if c := m.at(place); c.parted.Load() || c.process.ended(0) {
			continue
		}
		if m.unsure.IsZero() {
			m.unsure = time.Now()
		}
		if time.Since(m.unsure) < minorityTime {
			return agree.ErrNotYet
		}
		return m.minority(members, gone)
	}
	return nil
}

// minorityTime is how long the kernel has to say that a process has ended whose connections have.
const minorityTime = time.Second

// retryTime is how often it is asked.
const retryTime = 10 * time.Millisecond

func (m council) minority(members, gone []int) error {
	e := &transport.MinorityError{Of: len(members)}
	for number, place := range members {
		if len(gone) > 0 && gone[0] == place {
			gone = gone[1:]
			continue
		}
		e.Left = append(e.Left, number)
	}
	return e
}

// Decided implements agree.Host.
func (m council) Decided(d agree.Decision) error {
	old := m.now.Load()
	m.unsure = time.Time{}
	for _, c := range m.all() { // who still waits says so again
		if c != nil {
			c.waits = false
		}
	}
	m.waiting.Store(false)
	g, err := m.begin(d.Generation, d.Members)
	if err != nil {
		return err
	}
	r := &transport.Rejoined{Endpoint: g.newEndpoint(g.lane, g.where), Generation: g.number, Notes: d.Notes}
	for number, place := range d.Members {
		if !old.has(place) {
			r.Came = append(r.Came, number)
			continue
		}
		r.Replicas = append(r.Replicas, old.numbers[place])
	}
	for _, place := range d.Gone {
		gone := m.at(place).left
		if gone.When.IsZero() {
			gone = transport.Gone{When: time.Now(), Why: errors.New("others have lost it")}
		}
		gone.Replica = old.numbers[place]
		r.Gone = append(r.Gone, gone)
	}
	old.next = r
	close(old.over)
	for _, place := range d.Members { // while the others have decided that it goes on
		if c := m.at(place); c != nil && !c.left.When.IsZero() {
			g.lost(place, c.left.Why)
		}
	}
	return nil
}

// Ended implements agree.Host.
func (m council) Ended(err error) {
	if err == agree.ErrLeftBehind {
		err = transport.ErrLeftBehind
	}
	g := m.now.Load()
	g.ended = err
	close(g.over)
	m.goes(func() { // what is told may have to wait for locks that the caller holds
		g.node.Abort(err)
		m.bid()
	})
}

// bid tells the others that this replica leaves the job, in whatever generation it is, and tells no more.
func (m *mesh) bid() {
	for _, c := range m.all() {
		if c != nil {
			c.tell([]byte{rejoining})
			c.leave()
		}
	}
}

// hears takes a message about who is left.
func (m *mesh) hears(place int, message []byte) error {
	if len(message) == 0 {
		m.at(place).parted.Store(true)
		m.lose(place, errParted)
		return nil
	}
	m.life.Lock()
	defer m.life.Unlock()
	switch {
	case m.arrival.waits():
		return m.arrive(place, message)
	case m.council == nil: // it has given up
		return nil
	}
	return m.council.Hear(place, message)
}

// lose notes that a replica is gone, and why. The first time counts.
func (m *mesh) lose(place int, why error) {
	m.life.Lock()
	defer m.life.Unlock()
	c := m.at(place)
	if c.left.When.IsZero() {
		c.left = transport.Gone{When: time.Now(), Why: why}
	}
	c.waits = false
	m.waiting.Store(slices.ContainsFunc(m.all(), func(c *control) bool { return c != nil && c.waits }))
	m.letGo()
	switch {
	case m.arrival.waits():
		m.arrival.ends(m.arrival.newcomer.Lose(place))
		m.arrival.ends(m.nobody(why))
	case m.council != nil:
		m.council.Lose(place)
	}
}

// retry asks the kernel again who has ended.
func (m *mesh) retry(g *generation) {
	m.life.Lock()
	defer m.life.Unlock()
	if m.now.Load() == g && !m.unsure.IsZero() {
		m.council.Retry()
	}
}

// Rejoin implements transport.Rejoiner.
func (e *endpoint) Rejoin(ctx context.Context, note uint64) (*transport.Rejoined, error) {
	g, m := e.generation, e.generation.mesh
	me := e.Rank()
	if ctx == nil || !e.IsRoot() {
		return nil, &transport.ArgumentError{Reason: "Rejoin needs a context, and the first endpoint of a replica, not " +
			"one that Dup made"}
	}
	if e.IsClosed() {
		return nil, &transport.ClosedError{Replica: me}
	}
	g.node.Abort(fmt.Errorf("replica %d rejoins", me))
	m.life.Lock()
	if g.asked {
		m.life.Unlock()
		return nil, fmt.Errorf("tcp: replica %d has rejoined from this endpoint before", me)
	}
	g.asked = true
	if g == m.now.Load() && g.ended == nil && ctx.Err() == nil {
		m.council.Join(note)
	}
	m.life.Unlock()
	retry := time.NewTicker(retryTime)
	defer retry.Stop()
	for waits := true; waits; {
		select {
		case <-retry.C:
			m.retry(g)
			continue
		case <-g.over:
		case <-ctx.Done():
		case <-m.ctx.Done():
		}
		waits = false
	}
	m.life.Lock()
	defer m.life.Unlock()
	switch {
	case g.next != nil:
		return g.next, nil
	case g.ended != nil:
		return nil, g.ended
	case ctx.Err() == nil || m.ctx.Err() != nil:
		return nil, &transport.ClosedError{Replica: me}
	}
	g.ended = context.Cause(ctx)
	close(g.over)
	m.council.End()
	m.bid()
	return nil, g.ended
}
