package carry

import (
	"fmt"
	"strings"

	"gogcl.dev/topology"
)

// Split is how the members of a group lie over link domains, if each domain holds equally many. A domain is a range of
// replica ids and ranks ascend by replica id, so the members of a domain are neighbours in rank order: the rank is
// domain*each + place.
type Split struct {
	Domains, Each int    // domains with members; members in each
	domain, Place int    // this replica's
	inside        *Group // the members in this replica's domain
	across        *Group // the members at its place of all domains
}

// Divide divides a group by link domains: see Group.Split. Where domains do not hold equally many members there is no
// split, and uneven says why.
func (g *Group) Divide(t topology.Topology, ring topology.RingName) (uneven string, err error) {
	first := []int{0} // rank of the first member in each domain that has any
	for rank := 1; rank < len(g.Members); rank++ {
		if t.Domain(g.Members[rank]) != t.Domain(g.Members[rank-1]) {
			first = append(first, rank)
		}
	}
	s := &Split{Domains: len(first), Each: len(g.Members) / len(first)}
	for d, lo := range first {
		if lo != d*s.Each || len(g.Members) != s.Domains*s.Each {
			return unevenDomains(t, g.Members, first), nil
		}
	}
	s.domain, s.Place = g.Rank/s.Each, g.Rank%s.Each
	var across []int
	for d := range s.Domains {
		across = append(across, g.Members[d*s.Each+s.Place])
	}
	if s.inside, err = phaseGroup(t, ring, g.Members[s.domain*s.Each:(s.domain+1)*s.Each], s.Place); err != nil {
		return "", err
	}
	if s.across, err = phaseGroup(t, ring, across, s.domain); err != nil {
		return "", err
	}
	g.Split = s
	return "", nil
}

// phaseGroup makes a group for phases of the collectives of another. It has no calls of its own to count.
func phaseGroup(t topology.Topology, ring topology.RingName, members []int, rank int) (*Group, error) {
	rings, err := t.Rings(ring, members)
	if err != nil {
		return nil, err
	}
	return NewGroup(members, rank, rings), nil
}

// unevenDomains says which members each domain holds, given the rank of the first in each.
func unevenDomains(t topology.Topology, members, first []int) string {
	var parts []string
	for d, lo := range first {
		hi := len(members)
		if d+1 < len(first) {
			hi = first[d+1]
		}
		parts = append(parts, fmt.Sprintf("%s in link domain %d", replicaList(members[lo:hi]), t.Domain(members[lo])))
	}
	return "every link domain must hold equally many members of the group, which has " + strings.Join(parts, ", ")
}

// replicaList is "replica 3" or "replicas 0, 1, 2".
func replicaList(replicas []int) string {
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(replicas), " ", ", "), "[]")
	if len(replicas) == 1 {
		return "replica " + text
	}
	return "replicas " + text
}
