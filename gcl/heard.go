package gcl

import (
	"slices"
	"time"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/transport"
)

// Collectives with a root alone can succeed on one member while another is in a different call: nothing comes back to
// who has sent its part, as the root of a broadcast or a leaf of a reduce, nor from the end of a chain to its middle.
// On peer memory the transport knows how far each member is (see docs/peer-memory.md). By messages nobody does but the
// flight recorders.

// closeTime is how long Close waits for members that have not had the last call with a root by messages, unless a call
// that needs all members has followed it. Once a Close has waited for so long in vain no other waits: it may be one
// goroutine that closes all replicas, one after the other.
const closeTime = time.Second

// The times between looks for those members, which nothing announces.
const (
	minLook = 50 * time.Microsecond
	maxLook = 10 * time.Millisecond
)

// unheard is what is wrong with the last calls with a root of a connection that is closed, and of its Dups, as far as
// that comes out within closeTime.
func (l *connection) unheard() error {
	var open []*membership
	// which may wait: on a Dup others may come later, by way of the first connection
	lanes, whole := []*connection{l}, l.first == nil
	if whole {
		l.mu.Lock()
		lanes = append(lanes, l.others...)
		l.mu.Unlock()
	}
	endpoint := l.Endpoint
	until, look := time.Now().Add(closeTime), minLook
	for _, l := range lanes {
		l.mu.Lock()
		for _, g := range l.groups {
			if last := g.Passed.Load(); last != 0 && !l.Flight.SettledSince(g.ID, last) {
				open = append(open, g)
			}
		}
		l.mu.Unlock()
		for _, g := range open {
			members := l.flights.Peers(l.number, g.Members)
			for {
				// Looked at in this order: who disagrees ends the communicator first, and its call then.
				waits := whole && slices.ContainsFunc(members, func(f *flight.Recorder) bool {
					return !f.Past(g.ID, g.Passed.Load())
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
			for _, f := range members {
				if f.IsClosed() && !f.Made(g.ID, g.Passed.Load()) {
					return &transport.ClosedError{Replica: f.Replica}
				}
			}
		}
		open = open[:0]
	}
	return nil
}
