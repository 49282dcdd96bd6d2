package gcl

import (
	"slices"
	"time"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/transport"
)

// Collectives with a root alone can succeed on one member while another is in a different call: nothing comes back to
// who has sent its part, as the root of a broadcast or a leaf of a reduce, nor from the end of a chain to its middle.
// On peer memory the transport knows how far each member is (see docs/design/peer-memory.md). By messages nobody does
// but the flight recorders, and those of other processes have to be asked.

// closeTime is how long Close waits for members that have not had the last call with a root by messages, unless a call
// that needs all members has followed it. Once a Close has waited for so long in vain no other waits: it may be one
// goroutine that closes all replicas, one after the other.
const closeTime = time.Second

// The times between looks for those members, which nothing announces.
const (
	minLook = 50 * time.Microsecond
	maxLook = 10 * time.Millisecond
)

// open lists the groups of a connection with a call after which not all members have met.
func (l *connection) open() (groups []*membership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.groups {
		if last := g.Unconfirmed.Load(); last != 0 && !l.Flight.SettledSince(g.ID, last) {
			groups = append(groups, g)
		}
	}
	return groups
}

// all are the connections that a Close of this one closes.
func (l *connection) all() []*connection {
	if l.first != nil {
		return []*connection{l}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*connection{l}, l.others...)
}

// settle asks members in other processes about those calls, on all connections that the first one closes, until
// closeTime is over. The error says that one has made another call, or has left without it.
func (l *connection) settle() error {
	if l.first != nil {
		return nil // others may come later, by way of the first connection
	}
	until := time.Now().Add(closeTime)
	for _, l := range l.all() {
		e, ok := l.Endpoint.(transport.Settler)
		if !ok {
			continue
		}
		for _, g := range l.open() {
			call, known := l.Flight.Unconfirmed(g.ID, g.Unconfirmed.Load())
			here := l.flights.Peers(l.number, g.Members)
			elsewhere := slices.DeleteFunc(slices.Clone(g.Members), func(replica int) bool {
				return replica == e.Rank() ||
					slices.ContainsFunc(here, func(f *flight.Recorder) bool { return f.Replica == replica })
			})
			if known && len(elsewhere) > 0 {
				if err := e.Settle(call, elsewhere, time.Until(until)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// unheard is what is wrong with those calls in this process, on a connection that is closed, and on its Dups, as far as
// that comes out within closeTime.
func (l *connection) unheard() error {
	whole := l.first == nil // which may wait: see settle
	endpoint := l.Endpoint
	until, look := time.Now().Add(closeTime), minLook
	for _, l := range l.all() {
		for _, g := range l.open() {
			members, last := l.flights.Peers(l.number, g.Members), g.Unconfirmed.Load()
			for {
				// Looked at in this order: who disagrees ends the communicator first, and its call then.
				waits := whole && slices.ContainsFunc(members, func(f *flight.Recorder) bool {
					return !f.Past(g.ID, last)
				})
				if err := endpoint.Close(); err != nil {
					return err
				}
				if !waits || l.flights.Expired.Load() {
					break
				}
				if time.Now().After(until) {
					l.flights.Expired.Store(true)
					break
				}
				time.Sleep(look)
				look = min(2*look, maxLook)
			}
			if err := l.apart(g, members); err != nil {
				return err
			}
		}
	}
	return nil
}

// apart is what is wrong with the last such call of a group, by the recorders of its members.
func (l *connection) apart(g *membership, members []*flight.Recorder) error {
	last := g.Unconfirmed.Load()
	call, known := l.Flight.Unconfirmed(g.ID, last)
	for _, f := range members {
		if f.IsClosed() && !f.Came(g.ID, last) {
			return &transport.ClosedError{Replica: f.Replica}
		}
		if !known {
			continue
		}
		if theirs, ok := f.Made(call); ok && !theirs.Same(call) {
			return &transport.MismatchError{Replica: l.Endpoint.Rank(), Peer: f.Replica, Mine: call, Theirs: theirs}
		}
	}
	return nil
}
