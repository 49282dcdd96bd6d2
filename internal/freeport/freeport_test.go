package freeport

import (
	"net"
	"net/netip"
	"testing"
)

// TestAddress: what it gives can be listened at, and is no port of a connection.
func TestAddress(t *testing.T) {
	for range 100 {
		address, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		a, err := netip.ParseAddrPort(address)
		if err != nil || !a.Addr().IsLoopback() || a.Port() < first || a.Port() > last {
			t.Fatalf("%s: %v", address, err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}
