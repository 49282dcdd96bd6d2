// Package netstack is the network stack on which a process listens and dials: that of the operating system, or in tests
// one in memory.
//
// A context carries the stack, so that one hook reaches gcl.Join, the rendezvous and the transport, and the tests of a
// whole job need no hook in any public type. A stack is asked for when a process joins and dials, never when it sends.
package netstack

import (
	"context"
	"io"
	"net"
	"os"
)

// Stack listens and dials, for one process.
type Stack interface {
	// Listen is that of [net.ListenConfig].
	Listen(ctx context.Context, network, address string) (net.Listener, error)

	// Dial is that of [net.Dialer].
	Dial(ctx context.Context, network, address string) (net.Conn, error)

	// Spare takes a file descriptor. Its error is EMFILE where the process has none left.
	Spare() (io.Closer, error)

	// Host is the name of the host that the process is on, or "" for the host that this program runs on.
	Host() string
}

// System is the stack of the operating system.
type System struct{}

// Listen implements [Stack].
func (System) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, network, address)
}

// Dial implements [Stack].
func (System) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, address)
}

// Spare implements [Stack]: it opens a file.
func (System) Spare() (io.Closer, error) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Host implements [Stack].
func (System) Host() string { return "" }

// key is that of a Stack in a context.
type key struct{}

// With is a context that carries a stack.
func With(ctx context.Context, s Stack) context.Context { return context.WithValue(ctx, key{}, s) }

// Of is the stack that a context carries, or that of the operating system.
func Of(ctx context.Context) Stack {
	if s, ok := ctx.Value(key{}).(Stack); ok {
		return s
	}
	return System{}
}
