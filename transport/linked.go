package transport

import (
	"fmt"
	"time"
)

// LinkClass is what a link goes through.
type LinkClass uint8

// The classes of links, the slowest last.
const (
	UnknownLink LinkClass = iota // nothing is known
	MemoryLink                   // memory of one process, or shared by several, that replicas work on together
	EngineLink                   // a message passing engine, such as MPI, between processes of one host
	SocketLink                   // messages between processes of one host: unix sockets, TCP over loopback, rings
	NetworkLink                  // a network between hosts
)

// String returns "unknown link", "memory link", "engine link", "socket link" or "network link".
func (c LinkClass) String() string {
	switch c {
	case UnknownLink:
		return "unknown link"
	case MemoryLink:
		return "memory link"
	case EngineLink:
		return "engine link"
	case SocketLink:
		return "socket link"
	case NetworkLink:
		return "network link"
	}
	return fmt.Sprintf("LinkClass(%d)", uint8(c))
}

// Link is what connects two replicas. A field that is zero is not known: of the zero Link nothing is.
type Link struct {
	Class LinkClass

	// Transport names the transport, as gclperf -transport does: "inproc", "tcp", "unix", "shm". Links of one class may
	// be of several. What was measured over one is found by its name: see methods.RulesOn.
	Transport string

	// Why says why the link is none through shared memory, where the transport was to find out whether it can be and
	// both replicas are on one host.
	Why string

	// Machine names the machine that both replicas run on, if it is one and the system tells: the processor and how
	// many there are, as in "Intel(R) Xeon(R) Processor linux/amd64, 2 cores".
	Machine string

	Latency        time.Duration // of an empty message, one way
	BytesPerSecond float64       // of a long message, one way

	// Barrier is what each member adds to a barrier on peer memory.
	Barrier time.Duration

	// CopyBytesPerSecond is how fast a replica copies between its peers' buffers, on peer memory.
	CopyBytesPerSecond float64
}

// Linked is what an Endpoint may offer beside Exchange: which replicas share a host, and what connects each pair. The
// replicas agreed on that when they were connected. So all endpoints of the transport, Dups included, give the same
// answers at all times: their users may base choices on them that all replicas have to make alike.
//
//	host          0         1       2
//	replicas   0  1  4      2      3  5
//
// Links between the same two hosts are alike, and so are those within one host. Where they are not, the slowest stands
// for all. So one pair of replicas for each pair of hosts, and one within each host, tell all there is to know.
//
// Neither method sends, waits or allocates. Both may be called at any time by any goroutine.
type Linked interface {
	Endpoint

	// Host is the number of a replica's host. Hosts are numbered 0, 1, 2, ... in the order of their first replicas.
	// Host is -1 if there is no such replica, and for all replicas if nothing is known of hosts.
	Host(replica int) int

	// Link is the link between two replicas. Link(a, b) is Link(b, a). It is the zero Link if a is b, or if there is no
	// such replica.
	Link(a, b int) Link
}
