package topology

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gogcl.dev/internal/enum"
)

// Shape says how the IPUs of one link domain are linked.
type Shape uint8

// The shapes.
const (
	Clique       Shape = iota // every pair: a host, a switch
	OpenLadder                // two columns of IPUs, rungs between them
	JoinedLadder              // and the top of each column linked to its bottom
)

var shapeNames = enum.New[Shape]("shape",
	[]string{Clique: "clique", OpenLadder: "open ladder", JoinedLadder: "joined ladder"}...)

// String returns "clique", "open ladder" or "joined ladder".
func (s Shape) String() string { return shapeNames.String(s) }

// Config describes a machine. Only Replicas, or Domains in its place, has no default.
type Config struct {
	Shape          Shape  // of each link domain
	Replicas       []int  // how many replicas each link domain holds: {8} is one host with eight, {4, 4} two with four
	Domains        []int  // in place of Replicas: the domain of each replica, in any order on cliques, as {0, 1, 0, 1}
	IPUsPerReplica int    // 0: one
	IOTiles        int    // tiles of each IPU that carry messages, at most [MaxIOTiles]; 0: [DefaultIOTiles]
	Speeds         Speeds // zero fields: the defaults of [DefaultSpeeds]
}

const (
	DefaultIOTiles = 32   // what is set apart for messages in the original unless it is told otherwise
	MaxIOTiles     = 1472 // all tiles of a Mk2 IPU
)

// Topology is a machine that has been checked. It never changes and may be shared. The zero value has no replicas.
type Topology struct {
	shape  Shape
	ipus   int   // per replica
	tiles  int   // for messages, per IPU
	starts []int // first replica of each domain, or first place where dealt is set, then the number of replicas
	dealt  []int // nil, or by replica: its place, counting domain by domain, where domains are no ranges of replicas
	speeds Speeds
}

// New checks a description and returns the machine. It copies what it keeps. Errors: an unknown shape, no domain, a
// domain without replicas, a negative number, more IPUs than an int can count, a speed that is not finite, joined ends
// on half a rung, Replicas and Domains at once, Domains that are no ranges on a ladder.
func New(c Config) (Topology, error) {
	if err := shapeNames.Check(c.Shape); err != nil {
		return Topology{}, fmt.Errorf("topology: %w", err)
	}
	if c.IPUsPerReplica < 0 {
		return Topology{}, fmt.Errorf("topology: %d IPUs per replica", c.IPUsPerReplica)
	}
	if c.IOTiles < 0 || c.IOTiles > MaxIOTiles {
		return Topology{}, fmt.Errorf("topology: %d IO tiles: want 1 to %d, or 0 for %d",
			c.IOTiles, MaxIOTiles, DefaultIOTiles)
	}
	t := Topology{shape: c.Shape, ipus: max(c.IPUsPerReplica, 1), tiles: cmp.Or(c.IOTiles, DefaultIOTiles),
		starts: []int{0}}
	sizes, err := c.sizes()
	if err != nil {
		return Topology{}, err
	}
	for domain, n := range sizes {
		if n < 1 {
			return Topology{}, fmt.Errorf("topology: link domain %d holds %d replicas", domain, n)
		}
		if n > math.MaxInt/t.ipus-t.Replicas() {
			return Topology{}, fmt.Errorf("topology: more IPUs than can be counted: link domain %d holds %d replicas "+
				"of %d", domain, n, t.ipus)
		}
		if c.Shape == JoinedLadder && n%2 != 0 && t.ipus%2 != 0 {
			return Topology{}, fmt.Errorf("topology: %d replicas of %d IPUs leave half a rung on the joined ladder "+
				"of link domain %d",
				n, t.ipus, domain)
		}
		t.starts = append(t.starts, t.Replicas()+n)
	}
	if !slices.IsSorted(c.Domains) {
		if c.Shape != Clique {
			return Topology{}, fmt.Errorf("topology: the replicas of a link domain that is an %v follow each other: "+
				"Domains %v do not ascend", c.Shape, c.Domains)
		}
		next := slices.Clone(t.starts)
		for _, domain := range c.Domains {
			t.dealt = append(t.dealt, next[domain])
			next[domain]++
		}
	}
	if t.speeds, err = c.Speeds.complete(); err != nil {
		return Topology{}, err
	}
	return t, nil
}

// sizes is how many replicas each link domain holds.
func (c Config) sizes() ([]int, error) {
	switch {
	case len(c.Replicas) > 0 && len(c.Domains) > 0:
		return nil, fmt.Errorf("topology: Replicas and Domains say the same twice: leave one of them out")
	case len(c.Replicas) > 0:
		return c.Replicas, nil
	case len(c.Domains) == 0:
		return nil, fmt.Errorf("topology: no link domain")
	}
	sizes := make([]int, 0, len(c.Domains))
	for replica, domain := range c.Domains {
		if domain < 0 || domain >= len(c.Domains) {
			return nil, fmt.Errorf("topology: replica %d of %d is in link domain %d: they are numbered from 0 on",
				replica, len(c.Domains), domain)
		}
		for len(sizes) <= domain {
			sizes = append(sizes, 0)
		}
		sizes[domain]++
	}
	return sizes, nil
}

// Shape returns the shape of the link domains.
func (t Topology) Shape() Shape { return t.shape }

// Replicas returns the number of replicas in all link domains.
func (t Topology) Replicas() int {
	if len(t.starts) == 0 {
		return 0
	}
	return t.starts[len(t.starts)-1]
}

// IPUsPerReplica returns the number of IPUs that each replica has.
func (t Topology) IPUsPerReplica() int { return t.ipus }

// IOTiles returns the number of tiles of each IPU that carry messages.
func (t Topology) IOTiles() int { return t.tiles }

// IPUs returns the number of IPUs in all link domains.
func (t Topology) IPUs() int { return t.Replicas() * t.ipus }

// ReplicaIPUs returns the ids of a replica's IPUs, from lo up to but not including hi. They lie next to each other.
func (t Topology) ReplicaIPUs(replica int) (lo, hi int) {
	if replica < 0 || replica >= t.Replicas() {
		return 0, 0
	}
	return replica * t.ipus, replica*t.ipus + t.ipus
}

// Domains returns the number of link domains.
func (t Topology) Domains() int { return max(len(t.starts)-1, 0) }

// Domain returns the number of the link domain that holds a replica, or -1 if there is no such replica.
func (t Topology) Domain(replica int) int {
	if replica < 0 || replica >= t.Replicas() {
		return -1
	}
	domain, found := slices.BinarySearch(t.starts, t.place(replica))
	if !found {
		domain--
	}
	return domain
}

// place is where a replica comes if the replicas of one domain after the other are counted.
func (t Topology) place(replica int) int {
	if t.dealt != nil {
		return t.dealt[replica]
	}
	return replica
}

// DomainReplicas returns the ids of the replicas in a link domain, from lo up to but not including hi. It returns 0 and
// 0 if there is no such domain, or if domains are no ranges of replicas, as Config.Domains can have them.
func (t Topology) DomainReplicas(domain int) (lo, hi int) {
	if domain < 0 || domain >= t.Domains() || t.dealt != nil {
		return 0, 0
	}
	return t.starts[domain], t.starts[domain+1]
}

// String describes the machine in a few words, as in "joined ladder of 8+8 replicas, 2 IPUs each".
func (t Topology) String() string {
	sizes := make([]string, t.Domains())
	for d := range sizes {
		sizes[d] = fmt.Sprint(t.starts[d+1] - t.starts[d])
	}
	text := fmt.Sprintf("%v of %s replicas", t.shape, strings.Join(sizes, "+"))
	switch {
	case t.Replicas() == 0:
		return "no replicas"
	case t.Replicas() == 1:
		text = strings.TrimSuffix(text, "s")
	}
	if t.dealt != nil {
		text += ", dealt out"
	}
	if t.ipus > 1 {
		text += fmt.Sprintf(", %d IPUs each", t.ipus)
	}
	return text
}
