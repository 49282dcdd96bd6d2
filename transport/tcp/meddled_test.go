package tcp

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/internal/meddler"
	"gogcl.dev/transport"
)

// meddled connects two replicas over TCP by a proxy, with the filter given.
func meddled(t *testing.T, c Config, filter meddler.Filter) []transport.Endpoint {
	t.Helper()
	c.Size, c.Network, c.Job, c.Secret = 2, TCP, "meddled", make([]byte, 32)
	listeners, addresses, err := listenAll(c)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := meddler.New(addresses[1].TCP, filter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	addresses[1].TCP = proxy.Address()
	eps, err := connectAll(listeners, addresses)
	if err != nil {
		t.Fatal(err)
	}
	return eps
}

// TestFlippedControl: of a control message that says in which call a replica waits, and of which a bit is changed on
// the way, nobody makes a mismatch: the connection is no good.
func TestFlippedControl(t *testing.T) {
	leaktest.Check(t)
	const bits = 8 * (headBytes + 1 + 8 + transport.CallBytes)
	for bit := 0; bit < bits; bit += 13 {
		var armed atomic.Bool
		var at atomic.Int64 // bytes since
		eps := meddled(t, Config{Silence: time.Minute}, func(number int, back bool, b []byte) []byte {
			if number > 0 || !back || !armed.Load() {
				return b
			}
			if k := bit/8 - int(at.Load()); k >= 0 && k < len(b) {
				b[k] ^= 1 << (bit % 8)
			}
			at.Add(int64(len(b)))
			return b
		})
		armed.Store(true)
		call := transport.Call{Group: 1, Seq: 5, Count: 25, Collective: 1, DType: 2}
		err := eps[1].Exchange(context.Background(), call,
			[]transport.Transfer{{Kind: transport.Recv, Peer: 0, Buf: make([]byte, 8)}})
		var lost *transport.LostError
		if !errors.As(err, &lost) || lost.Replica != 1 || errors.As(err, new(*transport.MismatchError)) {
			t.Errorf("bit %d: %v, want that the connection to replica 1 is lost", bit, err)
		}
		for _, e := range eps {
			e.Close()
		}
	}
}
