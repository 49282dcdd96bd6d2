package cost

import (
	"slices"

	"gogcl.dev/topology"
)

// machine is the network of a topology.
type machine struct {
	Network
	topology topology.Topology
}

// Machine returns the network of a topology: ports on a clique, halves of bundles on a ladder. The package comment says
// what they are.
func Machine(t topology.Topology) Network {
	if t.Shape() == topology.Clique {
		return machine{newPorts(t), t}
	}
	return machine{bundles(t), t}
}

// TopologyOf is the topology of a network that [Machine] has made, or [ParseNetwork] of the name of a machine. ok is
// false of others.
func TopologyOf(n Network) (t topology.Topology, ok bool) {
	m, ok := n.(machine)
	return m.topology, ok
}

// bundles is the network of ladders.
func bundles(t topology.Topology) *graph {
	n := t.Replicas()
	g := newGraph(n, 0)
	for a := range n {
		for _, b := range nearby(t, a) {
			l := t.ReplicaLink(a, b)
			if l.Kind == topology.NoLink {
				continue
			}
			speed := t.Speed(l.Kind)
			g.add(a, b, Link{
				BytesPerSecond: speed.BytesPerSecond * float64(max(l.Count/2, 1)),
				Latency:        speed.Latency,
				Cables:         min(l.Count, 2),
			})
		}
	}
	return g.sorted()
}

// nearby lists replicas, all those on a ladder to which a replica may have a link among them: two places up and down,
// around the ends, and at the same place of other domains.
func nearby(t topology.Topology, replica int) []int {
	own := t.Domain(replica)
	lo, hi := t.DomainReplicas(own)
	var out []int
	for d := range t.Domains() {
		if d == own {
			for away := -2; away <= 2; away++ {
				out = append(out, lo+((replica-lo+away)%(hi-lo)+(hi-lo))%(hi-lo))
			}
			continue
		}
		if first, end := t.DomainReplicas(d); first+replica-lo < end {
			out = append(out, first+replica-lo)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ports is a clique: each replica has, for links inside its domain and for those to others, a port by which everything
// leaves and one by which everything comes.
type ports struct {
	domains []int // by replica: its link domain
	links   [portsCount]Link
}

// Four links for each replica: out and in of one kind, out and in of the other.
const (
	portsIn    = 1
	portsGW    = 2
	portsCount = 4
)

func newPorts(t topology.Topology) *ports {
	p := &ports{domains: make([]int, t.Replicas())}
	for replica := range p.domains {
		p.domains[replica] = t.Domain(replica)
	}
	for number := range p.links {
		kind := topology.HostLink
		if number&portsGW != 0 {
			kind = topology.GWLink
		}
		speed := t.Speed(kind)
		p.links[number].BytesPerSecond = speed.BytesPerSecond * float64(t.IPUsPerReplica())
		if number&portsIn == 0 { // one latency for the two
			p.links[number].Latency = speed.Latency
		}
	}
	return p
}

func (p *ports) Replicas() int { return len(p.domains) }
func (p *ports) Links() int    { return portsCount * len(p.domains) }

func (p *ports) Link(number int) Link {
	if number < 0 || number >= p.Links() {
		return Link{}
	}
	return p.links[number%portsCount]
}

func (p *ports) Route(links []int, from, to int) ([]int, error) {
	if err := checkEnds(from, to, len(p.domains)); err != nil {
		return links, err
	}
	kind := 0
	if p.domains[from] != p.domains[to] {
		kind = portsGW
	}
	return append(links, portsCount*from+kind, portsCount*to+kind+portsIn), nil
}
