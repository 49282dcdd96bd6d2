package topology

import "gogcl.dev/internal/enum"

// Kind says what a link is made of.
type Kind uint8

// The kinds of links.
const (
	NoLink   Kind = iota // none: traffic has to go through others
	IPULink              // rail or rung of a ladder
	GWLink               // between link domains
	HostLink             // inside a clique: memory, a bus, a switch
)

var kindNames = enum.New[Kind]("kind of link",
	[]string{NoLink: "no link", IPULink: "ipu-link", GWLink: "gw-link", HostLink: "host-link"}...)

// String returns "no link", "ipu-link", "gw-link" or "host-link".
func (k Kind) String() string { return kindNames.String(k) }

// How many parallel links make up one line of the picture.
const (
	// railLinks is two because the quad-directional method is defined by it: the mirrored ring has links of its own.
	railLinks = 2
	// gatewayLinks is the two GW-Link ports of a Bow-2000 (datasheet, "Overview"). Its four IPUs share them: crossing
	// from all four at once, each has a quarter of the two.
	gatewayLinks = 2
)

// Link is what joins two IPUs or two replicas directly: Count parallel links of one kind. The zero Link is none.
type Link struct {
	Kind  Kind
	Count int
}

// IPULink returns the link between two IPUs. There is none from an IPU to itself.
//
// Within a clique every pair of IPUs has a host link, within a ladder neighbours on a rail or a rung have a bundle of
// IPU-Links. Joined ends add a link only where there are three rungs or more: with two, top and bottom are neighbours
// already. Between domains GW-Links join, on ladders, the IPUs at the same place, and on cliques every pair.
func (t Topology) IPULink(a, b int) Link {
	if a == b || a < 0 || b < 0 || a >= t.IPUs() || b >= t.IPUs() {
		return Link{}
	}
	da, db := t.Domain(a/t.ipus), t.Domain(b/t.ipus)
	placeA, placeB := a-t.starts[da]*t.ipus, b-t.starts[db]*t.ipus
	switch {
	case t.shape == Clique && da == db:
		return Link{HostLink, 1}
	case t.shape == Clique:
		return Link{GWLink, 1}
	case da != db && placeA == placeB:
		return Link{GWLink, gatewayLinks}
	case da == db && t.neighbours(placeA, placeB, (t.starts[da+1]-t.starts[da])*t.ipus):
		return Link{IPULink, railLinks}
	}
	return Link{}
}

// neighbours reports whether two different places on a ladder of n IPUs share a rung or a rail.
func (t Topology) neighbours(a, b, n int) bool {
	if a > b {
		a, b = b, a
	}
	rung := a/2 == b/2
	rail := b-a == 2
	around := t.shape == JoinedLadder && b-a == n-2 // with two rungs that is the rail again
	return rung || rail || around
}

// ReplicaLink returns the links between two replicas: those of all pairs of their IPUs that have one, counted together.
// On a clique that would count a port many times; there it is one for each IPU of a replica.
func (t Topology) ReplicaLink(a, b int) Link {
	if a == b || a < 0 || b < 0 || a >= t.Replicas() || b >= t.Replicas() {
		return Link{}
	}
	loA, hiA := t.ReplicaIPUs(a)
	loB, hiB := t.ReplicaIPUs(b)
	if t.shape == Clique || t.Domain(a) != t.Domain(b) {
		// Replicas at the same place meet IPU by IPU, others on ladders not at all: the first pair tells.
		link := t.IPULink(loA, loB)
		link.Count *= t.ipus
		return link
	}
	sum := Link{}
	lo, hi := t.DomainReplicas(t.Domain(a))
	around := 2 // nothing leads around: look at the neighbour again
	if t.shape == JoinedLadder {
		around = (hi-lo)*t.ipus - 2
	}
	for i := loA; i < hiA; i++ {
		last := -1
		// Where an IPU's links can lead: down, across, up, around the ends. Ascending, to skip what is named twice.
		for _, j := range [...]int{i - around, i - 2, i - 1, i + 1, i + 2, i + around} {
			if j <= last || j < loB || j >= hiB {
				continue
			}
			last = j
			if link := t.IPULink(i, j); link.Kind != NoLink {
				sum.Kind = link.Kind
				sum.Count += link.Count
			}
		}
	}
	return sum
}
