package handshake

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// guest is a connection from an address that knows whether it was closed.
type guest struct {
	net.Conn
	from   string
	closed atomic.Bool
}

func (g *guest) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(g.from), 4242))
}

func (g *guest) Close() error {
	g.closed.Store(true)
	return nil
}

// TestGateSilence: silent strangers lose their places, the oldest first, and nobody waits longer than the grace.
func TestGateSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate(4)
		var guests []*guest
		enter := func(from string) func() bool {
			g := &guest{from: from}
			leave := gate.Enter(g)
			guests = append(guests, g)
			return leave
		}
		start := time.Now()
		for range 4 {
			enter("10.0.0.1")
			time.Sleep(time.Millisecond)
		}
		leave := enter("10.0.0.1")
		if waited := time.Since(start); waited != grace {
			t.Errorf("the newcomer waited until %v, want %v", waited, grace)
		}
		for i, g := range guests {
			if g.closed.Load() != (i == 0) {
				t.Errorf("guest %d: closed %v", i, g.closed.Load())
			}
		}
		if !leave() {
			t.Error("a guest that was not closed had no place")
		}
		if leave() {
			t.Error("a guest gives its place back twice")
		}
		before := time.Now()
		enter("10.0.0.1")
		if time.Since(before) != 0 {
			t.Error("the newcomer waited though there was a place")
		}
	})
}

// TestGateSources: when several are beyond the grace, the source that has most loses one.
func TestGateSources(t *testing.T) {
	for _, strangers := range [][2]string{{"10.0.0.1", "10.0.0.1"}, {"fd00::1", "fd00::ffff:0:0:1"}} {
		synctest.Test(t, func(t *testing.T) {
			gate := NewGate(3)
			honest := &guest{from: "10.0.0.2"}
			gate.Enter(honest)
			first, second := &guest{from: strangers[0]}, &guest{from: strangers[1]}
			gate.Enter(first)
			gate.Enter(second)
			time.Sleep(2 * grace)
			gate.Enter(&guest{from: "10.0.0.3"})
			if honest.closed.Load() || !first.closed.Load() || second.closed.Load() {
				t.Errorf("%v: closed: honest %v, strangers %v and %v", strangers,
					honest.closed.Load(), first.closed.Load(), second.closed.Load())
			}
		})
	}
}

// TestGateCrowd: a thousand replicas that start together all get in, though each takes a while.
func TestGateCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate(MaxUnauthenticated)
		var inside, most atomic.Int64
		for range 1000 {
			g := &guest{from: "10.0.0.1"}
			leave := gate.Enter(g)
			go func() {
				most.Store(max(most.Load(), inside.Add(1)))
				time.Sleep(grace - time.Millisecond)
				inside.Add(-1)
				leave()
				if g.closed.Load() {
					t.Error("an honest connection was closed")
				}
			}()
		}
		synctest.Wait()
		if most.Load() > MaxUnauthenticated {
			t.Errorf("%d at a time", most.Load())
		}
		time.Sleep(grace)
	})
}

func TestSourceOf(t *testing.T) {
	for from, want := range map[string]string{
		"10.1.2.3":           "10.1.2.3/32",
		"::ffff:10.1.2.3":    "10.1.2.3/32",
		"fe80::1%eth0":       "fe80::/64",
		"2001:db8:1:2:3::4":  "2001:db8:1:2::/64",
		"2001:db8:1:2:ff::4": "2001:db8:1:2::/64",
	} {
		if have := fmt.Sprint(sourceOf(&guest{from: from})); have != want {
			t.Errorf("%s: %s, want %s", from, have, want)
		}
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if have := sourceOf(a); have.IsValid() {
		t.Errorf("a pipe: %v", have)
	}
}
