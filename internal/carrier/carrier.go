// Package carrier is where the connections of a job come from: the operating system, or in tests a network in memory.
//
// A context carries the network, so that one hook reaches gcl.Join, the rendezvous and the transport, and the tests of
// a whole job need no hook in any public type. A network is asked for when a process joins and dials, never when it
// sends.
package carrier

import (
	"context"
	"io"
	"net"
	"os"
)

// Network listens and dials, for one process.
type Network interface {
	// Listen is that of [net.ListenConfig].
	Listen(ctx context.Context, network, address string) (net.Listener, error)

	// Dial is that of [net.Dialer].
	Dial(ctx context.Context, network, address string) (net.Conn, error)

	// Spare takes a file descriptor. Its error is EMFILE where the process has none left.
	Spare() (io.Closer, error)

	// Host is the name of the host that the process is on, or "" for the host that this program runs on.
	Host() string
}

// System is the operating system.
type System struct{}

// Listen implements [Network].
func (System) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, network, address)
}

// Dial implements [Network].
func (System) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, address)
}

// Spare implements [Network]: it opens a file.
func (System) Spare() (io.Closer, error) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Host implements [Network].
func (System) Host() string { return "" }

// key is that of a Network in a context.
type key struct{}

// With is a context that carries a network.
func With(ctx context.Context, n Network) context.Context { return context.WithValue(ctx, key{}, n) }

// Of is the network that a context carries, or the operating system.
func Of(ctx context.Context) Network {
	if n, ok := ctx.Value(key{}).(Network); ok {
		return n
	}
	return System{}
}
