package carry

import (
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/gcl/internal/carry/phases"
	"gogcl.dev/topology"
)

// Split is how the members of a group lie over link domains, if each domain holds equally many.
type Split struct {
	phases.Grid        // of this replica
	inside      *Group // the members in this replica's domain
	across      *Group // the members at its place of all domains

	firstInside, firstAcross *Group // the same of rank 0, by which all members price phases
}

// Divide divides a group by link domains: see Group.Split. Where domains do not hold equally many members there is no
// split, and uneven says so.
func (g *Group) Divide(t topology.Topology, ring topology.RingName) (uneven string, err error) {
	var held [][]int // ranks by domain, of those that have any, in the order of their first
	index := map[int]int{}
	for rank, m := range g.Members {
		domain := t.Domain(m)
		i, known := index[domain]
		if !known {
			i = len(held)
			index[domain], held = i, append(held, nil)
		}
		held[i] = append(held[i], rank)
	}
	s := &Split{Grid: phases.Grid{Domains: len(held), Each: len(held[0])}}
	ranks := slices.Concat(held...)
	for _, one := range held {
		if len(one) != s.Each {
			return g.unevenDomains(t, held), nil
		}
	}
	if !slices.IsSorted(ranks) {
		s.Ranks = ranks
	}
	s.Domain, s.Place = s.At(g.Rank)
	groups := func(domain, place int) (inside, across *Group) {
		if err == nil {
			inside, err = phaseGroup(t, ring, s.inDomain(g.Members, domain), place)
		}
		if err == nil {
			across, err = phaseGroup(t, ring, s.atPlace(g.Members, place), domain)
		}
		return inside, across
	}
	s.inside, s.across = groups(s.Domain, s.Place)
	s.firstInside, s.firstAcross = s.inside, s.across
	if g.Rank > 0 {
		s.firstInside, s.firstAcross = groups(0, 0)
	}
	if err != nil {
		return "", err
	}
	g.Split = s
	return "", nil
}

// inDomain are the members in a domain.
func (s *Split) inDomain(members []int, domain int) (in []int) {
	for place := range s.Each {
		in = append(in, members[s.Rank(domain, place)])
	}
	return in
}

// atPlace are the members at a place of all domains.
func (s *Split) atPlace(members []int, place int) (at []int) {
	for domain := range s.Domains {
		at = append(at, members[s.Rank(domain, place)])
	}
	return at
}

// groups lists the members of all groups that make phases: those of each domain, and those at each place.
func (s *Split) groups(members []int) (groups [][]int) {
	for domain := range s.Domains {
		groups = append(groups, s.inDomain(members, domain))
	}
	for place := range s.Each {
		groups = append(groups, s.atPlace(members, place))
	}
	return groups
}

// phaseGroup makes a group for phases of the collectives of another. It has no calls of its own to count.
func phaseGroup(t topology.Topology, ring topology.RingName, members []int, rank int) (*Group, error) {
	rings, err := t.Rings(ring, members)
	if err != nil {
		return nil, err
	}
	return NewGroup(members, rank, rings, 0), nil
}

// unevenDomains says which members each domain holds.
func (g *Group) unevenDomains(t topology.Topology, held [][]int) string {
	var parts []string
	for _, ranks := range held {
		var members []int
		for _, rank := range ranks {
			members = append(members, g.Members[rank])
		}
		parts = append(parts, fmt.Sprintf("%s in link domain %d", replicaList(members), t.Domain(members[0])))
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
