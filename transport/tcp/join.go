package tcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"gogcl.dev/internal/netstack"
	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/hosts"
	"gogcl.dev/transport/internal/rendezvous"
	"gogcl.dev/transport/internal/user"
)

// Meeting is how the replicas of a job find each other.
type Meeting struct {
	// Where is "host:port", at replica 0, which listens there; "unix:@NAME", if all are on one host; or "dir:PATH", a
	// directory that all hosts share. A job of one replica needs none.
	Where string

	// Interface picks the addresses of this host that others may use. Nil: the address that reached the rendezvous, or
	// in a directory the first one of the host that is not loopback.
	Interface func(name string, address netip.Addr) bool

	// Insecure lets a job run over a network without a secret and without TLS, or with a secret that others may know.
	Insecure bool

	// Exposed is why others may know Config.Secret, as for a file that they may read. It is an error off this host.
	Exposed error

	// Tell is told how the meeting goes while it lasts: after 5 s and then every 15 for whom this replica waits, and at
	// once what stands in the way. It may be nil.
	Tell func(text string)

	// Within bounds how long a newcomer looks for the job: see Come. 0: it looks on.
	Within time.Duration

	// Blob is what the caller has to tell the other replicas, and Agree looks at what all have told, by rank. Its error
	// ends the joining; since all replicas see the same blobs, it is to be the same on all. Agree may be nil.
	Blob  []byte
	Agree func(blobs [][]byte) error
}

// MaxBlob is the greatest length of Meeting.Blob.
const MaxBlob = 32 << 10

// card is what a replica tells the others.
type card struct {
	Address Address
	Key     []byte  `json:",omitempty"` // replica 0's: see Join
	TLS     bool    `json:",omitempty"` // it has a TLS configuration
	CPUs    []int   `json:",omitempty"` // that the process may run on, if known
	Network Network // what the replica goes by
	Error   string  `json:",omitempty"` // why the replica cannot take part
	Blob    []byte
}

// keySize is the length of a job's key.
const keySize = 32

// Join meets the other replicas of a job, agrees with them, and connects. All replicas of the job call it, with the
// same Config but for Rank and what is a host's own. ctx bounds how long the others are waited for. An error is one on
// all who have come, and says which replica is the reason.
//
// Off this host it needs a secret or TLS, or Meeting.Insecure. A secret has 16 bytes or more there: who has seen one
// handshake can try out shorter ones. A rendezvous on a unix socket or a loopback address is on this host. With neither
// secret nor TLS all replicas are processes of one user.
//
// The connections between replicas shake hands with Config.Secret and a key behind it. Replica 0 has drawn the key for
// this job and put it on its card, so a process that has neither met nor come as a newcomer does not connect. It may be
// one of an earlier job with the same secret, or where there is no secret one of another user, since the rendezvous
// gives the cards to this user's processes only. The key protects against nobody who can read the rendezvous on its
// way: there the secret, which does not travel, or TLS does.
func Join(ctx context.Context, c Config, m Meeting) (transport.Endpoint, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Size == 1 && c.Most == 0 {
		return (&Listener{config: c, address: Address{Host: HostName()}}).Connect(ctx, []Address{{Host: HostName()}})
	}
	p, err := m.prepare(ctx, &c)
	if err != nil {
		return nil, err
	}
	var l *Listener
	blob := func(reached netip.Addr) []byte {
		own := card{TLS: c.TLS != nil, Network: cmp.Or(c.Network, Auto), CPUs: hosts.Processors(), Blob: m.Blob}
		var err error
		if c.Address == "" && p.secure && !p.local {
			c.Address, err = m.address(reached)
		}
		if err == nil {
			l, err = Listen(c)
		}
		if short := handshake.Shortage(err); short != nil {
			err = short
		}
		if err == nil {
			err = checkDescriptors(max(c.Size, c.Most), c.Network)
		}
		if err == nil {
			l.tryMemory()
		}
		if err != nil {
			own.Error = err.Error()
		} else {
			own.Address = l.Address()
		}
		if c.Rank == 0 {
			own.Key = make([]byte, keySize)
			rand.Read(own.Key)
		}
		b, err := json.Marshal(own)
		if err != nil { // there is nothing in a card that cannot be marshalled
			panic(err)
		}
		return b
	}
	all := m.at(c, p)
	all.Blob = blob
	met, err := rendezvous.Meet(ctx, all)
	var cards []card
	if err == nil {
		cards, err = readCards(met.Blobs)
	}
	if err == nil && strings.HasPrefix(m.Where, "unix:") {
		for r := range cards { // an abstract socket is of one network namespace, whatever name it has
			cards[r].Address.Host = cards[0].Address.Host
		}
	}
	if err == nil {
		err = checkCards(cards, p.secure, m.Agree)
	}
	if err != nil {
		if l != nil {
			l.Close()
		}
		return nil, fmt.Errorf("tcp: replica %d of %d: %w", c.Rank, c.Size, err)
	}
	addresses, places := make([]Address, c.Size), make([]hosts.Place, c.Size)
	for r := range cards {
		addresses[r], places[r] = cards[r].Address, hosts.Place{Host: cards[r].Address.Host, CPUs: cards[r].CPUs}
	}
	tellSockets(cards, addresses)
	l.config.Secret = slices.Concat(c.Secret, cards[0].Key)
	l.config.Crowded = c.Crowded || hosts.Crowded(places, c.Rank)
	if c.Most > 0 {
		l.desk = &deskOf{config: m.at(c, p), key: cards[0].Key, blob: cards[0].Blob}
	}
	return l.Connect(ctx, addresses)
}

// prepared is what follows from a Config and a Meeting.
type prepared struct {
	secure  bool // others than the job's processes can do nothing, or are said to be none
	local   bool // the rendezvous is one of processes of one host
	channel *handshake.Channel
}

// prepare says what is wrong with the two.
func (m *Meeting) prepare(ctx context.Context, c *Config) (p prepared, err error) {
	p.secure = len(c.Secret) > 0 || c.TLS != nil || m.Insecure
	secure := p.secure
	if p.local, err = isLocal(ctx, m.Where, net.DefaultResolver.LookupNetIP); err != nil {
		return p, fmt.Errorf("tcp: the rendezvous %s: %w", m.Where, err)
	}
	local := p.local
	switch {
	case c.Most > 0 && strings.HasPrefix(m.Where, "dir:"):
		return p, fmt.Errorf("tcp: the rendezvous %s is a directory, and newcomers find a job at a socket: want host:port or "+
			"unix:@NAME, or a job that takes none", m.Where)
	case len(m.Blob) > MaxBlob:
		return p, fmt.Errorf("tcp: a blob of %d bytes, want at most %d", len(m.Blob), MaxBlob)
	case !secure && !local && !strings.HasPrefix(m.Where, "dir:"):
		return p, fmt.Errorf("tcp: the rendezvous %s can be reached from other hosts, and the job has no secret: %s",
			m.Where, secureWays)
	case !local && !m.Insecure && len(c.Secret) > 0 && len(c.Secret) < minSecret:
		return p, fmt.Errorf("tcp: the rendezvous %s can be reached from other hosts, and the job's secret has %d bytes, "+
			"which can be guessed: want %d random bytes or more, as of: head -c 32 /dev/urandom | base64",
			m.Where, len(c.Secret), minSecret)
	case !local && !m.Insecure && m.Exposed != nil:
		return p, fmt.Errorf("tcp: the rendezvous %s can be reached from other hosts, and others may know the job's "+
			"secret: %w", m.Where, m.Exposed)
	case !secure && local && !strings.HasPrefix(m.Where, "unix:") && !user.TellsTCP:
		return p, fmt.Errorf("tcp: the rendezvous %s can be reached by all users of this host, and the job has no "+
			"secret: %s", m.Where, secureWays)
	}
	c.anyUser, c.from = m.Insecure, netstack.Of(ctx)
	p.channel, err = c.channel()
	return p, err
}

// at is where newcomers ask.
func (m *Meeting) at(c Config, p prepared) rendezvous.Config {
	return rendezvous.Config{Rank: c.Rank, Size: c.Size, Job: c.Job, Secret: c.Secret, Where: m.Where,
		Channel: p.channel, AnyUser: c.anyUser, Tell: m.Tell}
}

// secureWays is how a job that is not on one host can start.
const secureWays = "give all replicas the same GCL_SECRET or GCL_SECRET_FILE, or TLS, or say that it may be insecure"

// minSecret is the length of the shortest secret of a job that other hosts can reach, in bytes.
const minSecret = 16

// isLocal reports whether a rendezvous is one of processes of one host. lookup finds the addresses of a name: localhost
// is what the host's files or its name server say.
func isLocal(ctx context.Context, where string,
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)) (bool, error) {
	if strings.HasPrefix(where, "unix:") {
		return true, nil
	}
	host, _, err := net.SplitHostPort(where)
	if err != nil {
		return false, nil
	}
	ips := []netip.Addr{{}}
	if host == "localhost" {
		if ips, err = lookup(ctx, "ip", host); err != nil {
			return false, fmt.Errorf("%w: use 127.0.0.1", err)
		}
	} else if ip, err := netip.ParseAddr(host); err == nil {
		ips[0] = ip
	}
	for _, ip := range ips {
		if !ip.IsLoopback() {
			return false, nil
		}
	}
	return len(ips) > 0, nil
}

// isLoopback reports whether an address of TCP is one that no other host can reach.
func isLoopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().IsLoopback()
}

// address is the address of this host that the others are told.
func (m *Meeting) address(reached netip.Addr) (string, error) {
	if m.Interface == nil && reached.IsValid() && !reached.IsUnspecified() {
		return reached.String(), nil
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	var candidates []netip.Addr
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		for _, a := range addresses {
			prefix, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			ip := prefix.Addr().Unmap()
			switch {
			case m.Interface != nil && m.Interface(i.Name, ip):
			case m.Interface == nil && !ip.IsLoopback() && !ip.IsLinkLocalUnicast():
			default:
				continue
			}
			if ip.Is6() && ip.IsLinkLocalUnicast() {
				ip = ip.WithZone(i.Name)
			}
			candidates = append(candidates, ip)
		}
	}
	if len(candidates) == 0 && m.Interface == nil {
		return "", nil // loopback, which is enough if all replicas are on this host
	}
	if len(candidates) == 0 {
		return "", errors.New("no interface of this host fits: see JoinConfig.Interface and GCL_INTERFACE")
	}
	// An address of the kind that reached the rendezvous, else IPv4: then all choose alike.
	for _, ip := range candidates {
		if reached.IsValid() && ip.Is4() == reached.Unmap().Is4() {
			return ip.String(), nil
		}
	}
	for _, ip := range candidates {
		if ip.Is4() {
			return ip.String(), nil
		}
	}
	return candidates[0].String(), nil
}

// readCards reads what all replicas have told.
func readCards(blobs [][]byte) ([]card, error) {
	cards := make([]card, len(blobs))
	for r, b := range blobs {
		if err := json.Unmarshal(b, &cards[r]); err != nil {
			return nil, fmt.Errorf("replica %d tells something else than a card: %w", r, err)
		}
		if cards[r].Network.traits() == nil {
			return nil, fmt.Errorf("replica %d goes by transport %q, which there is not here: want one of %v", r,
				cards[r].Network, Networks())
		}
	}
	if len(cards[0].Key) != keySize {
		return nil, fmt.Errorf("replica 0 tells a key of %d bytes, want %d", len(cards[0].Key), keySize)
	}
	return cards, nil
}

// tellSockets has the addresses say who asks for sockets, where others leave it open.
func tellSockets(cards []card, addresses []Address) {
	auto := func(c card) bool { return c.Network.traits().auto }
	for r, c := range cards {
		if !auto(c) && slices.ContainsFunc(cards, auto) {
			addresses[r].Sockets = fmt.Sprintf("it is to go by transport %q", c.Network)
		}
	}
}

// checkCards says why the replicas cannot form a job, the same on all.
func checkCards(cards []card, secure bool, agree func([][]byte) error) error {
	blobs := make([][]byte, len(cards))
	for r := range cards {
		blobs[r] = cards[r].Blob
		if cards[r].Error != "" {
			return fmt.Errorf("replica %d cannot take part: %s", r, cards[r].Error)
		}
	}
	for r := range cards {
		if cards[r].TLS != cards[0].TLS {
			with, without := 0, r
			if cards[r].TLS {
				with, without = r, 0
			}
			return fmt.Errorf("replica %d has a TLS configuration, and replica %d none: give one to all, or to none",
				with, without)
		}
		if a, b := cards[0].Network, cards[r].Network; a.memory() != b.memory() {
			return fmt.Errorf("replica %d goes by transport %q, and replica 0 by %q: give all the same", r, b, a)
		}
	}
	for r := range cards {
		if cards[r].Address.Host == cards[0].Address.Host {
			continue
		}
		if q := slices.IndexFunc(cards, func(c card) bool { return !c.Network.traits().tcp }); q >= 0 {
			return fmt.Errorf("replica %d is on another host than replica 0 or in another container, and transport %q of "+
				"replica %d is for one host: use %q", r, cards[q].Network, q, Auto)
		}
		switch {
		case !secure:
			return fmt.Errorf("replica %d is on another host than replica 0 or in another container, "+
				"and the job has no secret: %s", r, secureWays)
		case isLoopback(cards[r].Address.TCP):
			return fmt.Errorf("replica %d is on another host than replica 0 and has no address but that of loopback: "+
				"see JoinConfig.Interface and GCL_INTERFACE", r)
		case isLoopback(cards[0].Address.TCP):
			return fmt.Errorf("replica 0 is on another host than replica %d and has no address but that of loopback: "+
				"see JoinConfig.Interface and GCL_INTERFACE", r)
		}
	}
	if agree == nil {
		return nil
	}
	return agree(blobs)
}
