package handshake

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// MaxUnauthenticated is how many connections of one listener may be in a handshake at a time.
const MaxUnauthenticated = 64

// grace is how long a handshake keeps its place for certain. An honest one takes a few milliseconds. Silent strangers
// take all places for good only if they come faster than 64 in this time, 1280 a second.
const grace = 50 * time.Millisecond

// Gate bounds the handshakes in progress at a listener.
//
// Nobody is refused at a full gate: the newcomer waits, in the listener's backlog, until a handshake has ended, or
// until one is older than a grace of 50 ms. Then the gate closes that connection and gives its place away. It takes the
// oldest from the source that has the most.
//
//   - Refusing the newcomer would let 64 silent strangers shut out everybody for two seconds, again and again.
//   - Closing the oldest at once would let a thousand honest replicas that start together close each other.
//   - Counting by source keeps the strangers of one host from the places of others.
type Gate struct {
	places int
	left   chan struct{} // has a token when somebody has left

	mu     sync.Mutex // guards inside
	inside []*visit   // oldest first
}

// visit is one handshake in progress.
type visit struct {
	conn   net.Conn
	source netip.Prefix
	since  time.Time
}

// NewGate makes a gate of so many places, at least one.
func NewGate(places int) *Gate {
	return &Gate{places: max(places, 1), left: make(chan struct{}, 1)}
}

// Enter waits for a place for conn, at most 50 ms for each call of Enter in progress, and may close another connection
// for it. leave gives the place back and must be called. It reports whether conn had its place until then: false after
// the gate has closed conn, and when called again.
func (g *Gate) Enter(conn net.Conn) (leave func() bool) {
	v := &visit{conn: conn, source: sourceOf(conn)}
	for {
		entered, victim, wait := g.try(v)
		if victim != nil {
			victim.conn.Close()
		}
		if entered {
			return func() bool { return g.leave(v) }
		}
		timer := time.NewTimer(wait)
		select {
		case <-g.left:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// try lets v in if there is a place or a victim. Otherwise it says how long the wait for a victim is.
func (g *Gate) try(v *visit) (entered bool, victim *visit, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	v.since = time.Now()
	if len(g.inside) >= g.places {
		if wait = grace - v.since.Sub(g.inside[0].since); wait > 0 {
			return false, nil, wait
		}
		victim = g.victim(v.since)
		g.remove(victim)
	}
	g.inside = append(g.inside, v)
	return true, victim, 0
}

// victim is the oldest visit of the source that has the most, among those older than the grace. There is one.
func (g *Gate) victim(now time.Time) *visit {
	count := map[netip.Prefix]int{}
	for _, v := range g.inside {
		count[v.source]++
	}
	var worst *visit
	for _, v := range g.inside {
		if now.Sub(v.since) >= grace && (worst == nil || count[v.source] > count[worst.source]) {
			worst = v
		}
	}
	return worst
}

func (g *Gate) leave(v *visit) bool {
	g.mu.Lock()
	inside := g.remove(v)
	g.mu.Unlock()
	select {
	case g.left <- struct{}{}:
	default:
	}
	return inside
}

// remove takes v out, and reports whether it was inside. The caller holds mu.
func (g *Gate) remove(v *visit) bool {
	for i, w := range g.inside {
		if w == v {
			g.inside = append(g.inside[:i], g.inside[i+1:]...)
			return true
		}
	}
	return false
}

// closeAll closes every connection inside.
func (g *Gate) closeAll() {
	g.mu.Lock()
	inside := append([]*visit(nil), g.inside...)
	g.mu.Unlock()
	for _, v := range inside {
		v.conn.Close()
	}
}

// sourceOf is the network that a connection comes from: an IPv4 address, or the 64 bits of IPv6 that name a network.
// All other connections are of one source.
func sourceOf(conn net.Conn) netip.Prefix {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap()
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	source, _ := addr.WithZone("").Prefix(bits)
	return source
}
