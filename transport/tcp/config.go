package tcp

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"slices"
	"time"

	"gogcl.dev/internal/netstack"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/segment"
)

// Network is what connections between replicas go over.
type Network string

// The networks.
const (
	// Auto is memory in a job by Join between replicas that are on one host and of one user, have no TLS, and can share
	// it, as over Shm: transport.Link.Why says which of that is not so. Else it is unix sockets between processes of
	// one host, on Linux, and TCP.
	Auto Network = "auto"
	TCP  Network = "tcp"
	Unix Network = "unix" // for jobs on one host; Linux only

	// Shm is memory that processes of one host and one user share, beside unix sockets for control connections. Linux
	// only, and not with TLS.
	Shm Network = "shm"
)

// network is what a Network stands for.
type network struct {
	name      Network
	tcp, unix bool // what a replica listens on; without tcp a job is on one host
	memory    bool // messages go through memory
	auto      bool // Join may find another one
}

// networks are those that there are to choose from.
var networks = []network{
	{name: Auto, tcp: true, unix: true, auto: true},
	{name: TCP, tcp: true},
	{name: Unix, unix: true},
	{name: Shm, unix: true, memory: true},
}

// Networks are the networks, Auto first.
func Networks() []Network {
	names := make([]Network, len(networks))
	for i, n := range networks {
		names[i] = n.name
	}
	return names
}

// traits is the row of networks, or nil.
func (n Network) traits() *network {
	i := slices.IndexFunc(networks, func(row network) bool { return row.name == cmp.Or(n, Auto) })
	if i < 0 {
		return nil
	}
	return &networks[i]
}

// Checksum says which payloads carry a checksum, CRC32C. Headers always do.
type Checksum uint8

// The values of Checksum.
const (
	ChecksumAuto Checksum = iota // between hosts
	ChecksumOn
	ChecksumOff
)

// DefaultSilence is Config.Silence where that is 0. "torture stand" tries shorter ones: docs/design/processes.md.
const DefaultSilence = 10 * time.Second

// memory reports whether messages go through memory. It is no for a Network that there is not.
func (n Network) memory() bool { t := n.traits(); return t != nil && t.memory }

// Config says how a replica is connected. All replicas of a job have the same, but for Rank.
type Config struct {
	Rank, Size int
	Network    Network // "": Auto

	// Job tells jobs apart. Secret is what a connection must know before anything else of it is read. Without Secret
	// and TLS both ends of a connection are to be of one user and on one host, which only Linux tells.
	Job    string
	Secret []byte

	// Silence is after how long a replica that says nothing counts as lost. 0 is DefaultSilence; less than 0 is never.
	Silence time.Duration

	Checksum Checksum

	// Most is how many replicas the job may have when newcomers come, by Come. With as many as it
	// has it takes none until one is gone. 0: it takes none at all.
	Most int

	// TLS encrypts all connections, over TCP and over unix sockets, by TLS 1.3. It has a certificate for servers and
	// clients, and in RootCAs or ClientCAs the authorities for those of the others: each side verifies the other one.
	// What it leaves open is set; what would let strangers in is an error. Without ServerName, names in certificates
	// are not compared. Nil: no encryption.
	TLS *tls.Config

	// Address is where other hosts reach this replica: a host or an IP address to listen on, without a port. "" is
	// loopback. Ports are the first and the last port to try; zero is any.
	Address string
	Ports   [2]int

	// Crowded says that there are more replicas on this host than processors: waiting replicas then give theirs to
	// other threads after each look, unless it is this process that has so many of them.
	Crowded bool

	anyUser bool           // Meeting.Insecure
	from    netstack.Stack // of connections; nil: the operating system
	form    segment.Form   // of shared memory; the zero value: segment.DefaultForm
	parks   bool           // for tests: waiting replicas park at once
	ring    int            // for tests: bytes that a pump holds in each direction; 0: pumpRing
	word    time.Duration  // for tests: in place of wordTime
	dialled func(rank int) // for tests: a replica that meets the others has dialled those that it dials
	meets   func(*mesh)    // for tests: a replica is about to meet the others
	tests   *testHooks     // for tests in memory; nil: none
}

// testHooks is what a process in memory takes from its network in place of the operating system.
type testHooks struct {
	kernel func(there Address) kernel // says whether another replica of the host has ended
	runs   func()                     // returns when this process is not stopped
}

// ownUser is whether replicas are of one user: where nothing else tells them from others, and where they share memory.
func (c *Config) ownUser() bool {
	return len(c.Secret) == 0 && c.TLS == nil && !c.anyUser || c.Network.memory()
}

// stack is what this process listens and dials on, and whether that is of the operating system.
func (c *Config) stack() (stack netstack.Stack, system bool) {
	if c.from == nil {
		return netstack.System{}, true
	}
	_, system = c.from.(netstack.System)
	return c.from, system
}

// channel is that of the job's connections, nil without TLS.
func (c *Config) channel() (*handshake.Channel, error) {
	if c.TLS == nil {
		return nil, nil
	}
	channel, err := handshake.NewChannel(c.TLS)
	if err != nil {
		return nil, fmt.Errorf("tcp: %w", err)
	}
	return channel, nil
}

// check returns what is wrong with a Config.
func (c *Config) check() error {
	switch {
	case c.Size < 1 || c.Size > maxReplicas:
		return fmt.Errorf("tcp: %d replicas, want 1 to %d", c.Size, maxReplicas)
	case c.Rank < 0 || c.Rank >= c.Size:
		return fmt.Errorf("tcp: replica %d of %d, want 0 to %d", c.Rank, c.Size, c.Size-1)
	case c.Network.traits() == nil:
		return fmt.Errorf("tcp: network %q, want one of %q", c.Network, Networks())
	case c.Network.memory() && c.TLS != nil:
		return fmt.Errorf("tcp: network %q with TLS: memory is not encrypted, and its descriptors do not travel over TLS: "+
			"use %q or %q", c.Network, Auto, Unix)
	case c.Most < 0 || c.Most > maxReplicas || c.Most > 0 && c.Most < c.Size:
		return fmt.Errorf("tcp: a job of %d replicas, and %d at most when newcomers come: want as many or more, up to %d, "+
			"or 0 for none", c.Size, c.Most, maxReplicas)
	case c.Checksum > ChecksumOff:
		return fmt.Errorf("tcp: unknown Checksum %d", c.Checksum)
	case c.Ports[0] < 0 || c.Ports[1] > 65535 || c.Ports[0] > c.Ports[1]:
		return fmt.Errorf("tcp: ports %d to %d, want two of 1 to 65535, the lower one first, or 0 and 0 for any",
			c.Ports[0], c.Ports[1])
	}
	_, err := c.channel()
	return err
}

// silence is the time after which a replica counts as lost, or 0 for never.
func (c *Config) silence() time.Duration { return max(cmp.Or(c.Silence, DefaultSilence), 0) }

// maxReplicas bounds what a replica keeps for the others: two connections to each, or more with lanes.
const maxReplicas = 1 << 12
