package tcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"

	"gogcl.dev/internal/machine"
	"gogcl.dev/internal/netstack"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/hosts"
)

// Address is where a replica can be reached, for the others to be told.
type Address struct {
	Host string // a name that no other host has, within a job
	TCP  string // "ip:port", or "" if the replica does not listen on TCP
	Unix string // the name of an abstract socket, as in "@gogcl-...", or ""

	// Process is the replica's process for others of its host, or "" where the kernel does not tell: the name of the
	// namespace of its number, and the number.
	Process string `json:",omitempty"`

	// Where says in errors where the replica runs: "pid 4711 on node1".
	Where string `json:",omitempty"`

	// Machine is what the replica's machine is called, as in transport.Link.
	Machine string `json:",omitempty"`

	// Memory is whose memory the replica shares: replicas of one host share theirs if both have the same text. "": it
	// shares none. Sockets says why, where it was to find out whether it can. Join sets them, with network Auto.
	Memory  string `json:",omitempty"`
	Sockets string `json:",omitempty"`
}

// shares reports whether two replicas share memory.
func (a Address) shares(b Address) bool {
	return a.Host == b.Host && a.Memory == b.Memory && a.Memory != ""
}

// HostName is what Address.Host is for replicas of this machine and network namespace: those that reach each other's
// loopback and abstract sockets. A replica that is taken for one of another host is slower, while one that is taken for
// one of this host is not found: so a replica that does not answer on a unix socket is tried over TCP.
func HostName() string { return hosts.Name() }

// maxWhere bounds Address.Where in bytes.
const maxWhere = 255

// whereabouts is Address.Where of this process.
func whereabouts() string {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Sprintf("pid %d", os.Getpid())
	}
	return fmt.Sprintf("pid %d on %s", os.Getpid(), host)
}

// Listener is a replica that can be reached and does not know the others yet.
type Listener struct {
	config    Config
	channel   *handshake.Channel // nil without TLS
	ownUser   bool               // takes connections of its own user only
	address   Address
	listeners []net.Listener
	shm       *shared // made in advance, or nil
	desk      *deskOf // where newcomers find the job; nil: nowhere
}

// Listen begins to listen. Errors: a Config that makes no sense, and those of the operating system, with the address.
func Listen(c Config) (*Listener, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Network = cmp.Or(c.Network, Auto)
	over, linux := c.Network.traits(), runtime.GOOS == "linux"
	if !over.tcp && !linux {
		return nil, fmt.Errorf("tcp: network %q needs Linux, this is %s: use %q", c.Network, runtime.GOOS, TCP)
	}
	channel, err := c.channel()
	if err != nil {
		return nil, err
	}
	l := &Listener{config: c, channel: channel, ownUser: c.ownUser(),
		address: Address{Host: HostName(), Process: processName(), Where: whereabouts(), Machine: machine.Name()}}
	stack, system := c.stack()
	if !system { // processes of a test, all of which are this one
		l.address.Host, l.address.Process = stack.Host(), ""
	}
	if over.tcp {
		listener, err := listenTCP(stack, c.Address, c.Ports)
		if err != nil {
			return nil, err
		}
		l.listeners = append(l.listeners, listener)
		l.address.TCP = listener.Addr().String()
	}
	if over.unix && linux {
		name := make([]byte, 16)
		rand.Read(name)
		l.address.Unix = "@gogcl-" + hex.EncodeToString(name)
		listener, err := stack.Listen(context.Background(), "unix", l.address.Unix)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("tcp: %w", err)
		}
		l.listeners = append(l.listeners, listener)
	}
	return l, nil
}

// listenTCP listens on the first port of a range that is free.
func listenTCP(stack netstack.Stack, host string, ports [2]int) (net.Listener, error) {
	if host == "" {
		host = "127.0.0.1"
	}
	var first error
	for port := ports[0]; port <= ports[1]; port++ {
		l, err := stack.Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return l, nil
		}
		if first == nil {
			first = err
		}
	}
	if ports[1] > 0 {
		return nil, fmt.Errorf("tcp: no port of %d to %d is free on %s (want one for each replica on a host): %w",
			ports[0], ports[1], host, first)
	}
	return nil, fmt.Errorf("tcp: %w", first)
}

// Address is where the replica can be reached. A Listener on all addresses of its host has to be told which one.
func (l *Listener) Address() Address { return l.address }

// AddressFor is Address with an IP address in place of the one that the Listener was given, for one that listens on all
// addresses of its host.
func (l *Listener) AddressFor(ip netip.Addr) Address {
	a := l.address
	if _, port, err := net.SplitHostPort(a.TCP); err == nil && ip.IsValid() {
		a.TCP = net.JoinHostPort(ip.String(), port)
	}
	return a
}

// Close ends listening. A Listener that is connected is closed by its endpoint.
func (l *Listener) Close() error {
	l.shm.close(nil)
	var errs []error
	for _, listener := range l.listeners {
		errs = append(errs, listener.Close())
	}
	return errors.Join(errs...)
}
