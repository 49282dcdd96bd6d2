package carry

import (
	"fmt"
	"strings"

	"gogcl.dev/gcl/internal/carry/phases"
	"gogcl.dev/topology"
)

// Split is how the members of a group lie over link domains, if each domain holds equally many, and they are neighbours
// in rank order: the rank is domain*each + place.
type Split struct {
	phases.Grid        // of this replica
	domain      int    // this replica's
	inside      *Group // the members in this replica's domain
	across      *Group // the members at its place of all domains
}

// Divide divides a group by link domains: see Group.Split. Where domains do not hold equally many members, or those of
// one do not follow each other, there is no split, and uneven says why.
func (g *Group) Divide(t topology.Topology, ring topology.RingName) (uneven string, err error) {
	var held [][]int // members by domain, of those that have any, in the order of their first
	index, last, runs := map[int]int{}, -1, 0
	for _, m := range g.Members {
		domain := t.Domain(m)
		i, known := index[domain]
		if !known {
			i = len(held)
			index[domain], held = i, append(held, nil)
		}
		held[i] = append(held[i], m)
		if i != last {
			runs++
		}
		last = i
	}
	s := &Split{Grid: phases.Grid{Domains: len(held), Each: len(g.Members) / len(held)}}
	for _, members := range held {
		if len(members) != s.Each {
			return unevenDomains(t, held), nil
		}
	}
	if runs > len(held) {
		return scattered(t, held), nil
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

// groups lists the members of all groups that make phases: those of each domain, and those at each place.
func (s *Split) groups(members []int) (groups [][]int) {
	for d := range s.Domains {
		groups = append(groups, members[d*s.Each:(d+1)*s.Each])
	}
	for place := range s.Each {
		var across []int
		for d := range s.Domains {
			across = append(across, members[d*s.Each+place])
		}
		groups = append(groups, across)
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
func unevenDomains(t topology.Topology, held [][]int) string {
	var parts []string
	for _, members := range held {
		parts = append(parts, fmt.Sprintf("%s in link domain %d", replicaList(members), t.Domain(members[0])))
	}
	return "every link domain must hold equally many members of the group, which has " + strings.Join(parts, ", ")
}

// scattered names a domain whose members do not follow each other. Of two that lie among each other, the one that
// begins first has the first member of the other between its own.
func scattered(t topology.Topology, held [][]int) string {
	for d, members := range held {
		for i := range held {
			if a := held[i][0]; i != d && a > members[0] && a < members[len(members)-1] {
				return fmt.Sprintf("the members of a link domain must follow each other in the group, but %s are in "+
					"link domain %d, and replica %d, between them, in %d: number the replicas host by host, as gclrun "+
					"and mpirun --map-by slot do", replicaList(members), t.Domain(members[0]), a, t.Domain(a))
			}
		}
	}
	return "the members of a link domain must follow each other in the group"
}

// replicaList is "replica 3" or "replicas 0, 1, 2".
func replicaList(replicas []int) string {
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(replicas), " ", ", "), "[]")
	if len(replicas) == 1 {
		return "replica " + text
	}
	return "replicas " + text
}
