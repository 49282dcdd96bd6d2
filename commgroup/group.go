package commgroup

import (
	"fmt"

	"gogcl.dev/internal/enum"
)

// Type says how the members of a group lie among all replicas.
type Type uint8

// The types of groups.
const (
	All         Type = iota // one group of all replicas
	Consecutive             // blocks of neighbours; with a stride s, every s-th replica of a block s times as long
	Orthogonal              // one replica from each of k equal blocks: the stride is N/k
	Listed                  // groups of any sizes, made by Lists
)

var typeNames = enum.New[Type]("group type",
	[]string{All: "ALL", Consecutive: "CONSECUTIVE", Orthogonal: "ORTHOGONAL", Listed: "LISTS"}...)

// String returns ALL, CONSECUTIVE, ORTHOGONAL or LISTS.
func (t Type) String() string { return typeNames.String(t) }

// Group describes a partition of the replicas: into groups of equal size by its fields, or into any groups by [Lists].
// The zero value is one group of all. Any value can be built; [Group.Resolve] says whether it makes sense for a number
// of replicas. Groups are comparable: equal values describe the same partition.
type Group struct {
	Type   Type
	Size   int // replicas in a group; 0: all of them, or the sizes of the lists
	Stride int // distance between neighbours in a group; 0: the type's own

	lists string // of Listed: the groups as listsText writes them; else ""
}

// check finds what is wrong with a group whatever the number of replicas.
func (g Group) check() error {
	switch {
	case !typeNames.Valid(g.Type):
		return fmt.Errorf("commgroup: %w", typeNames.Check(g.Type))
	case g.Size < 0:
		return fmt.Errorf("commgroup: %v group of negative size %d", g.Type, g.Size)
	case g.Stride < 0:
		return fmt.Errorf("commgroup: %v group with negative stride %d", g.Type, g.Stride)
	case g.Type == Listed && g.lists == "":
		return fmt.Errorf("commgroup: LISTS group without lists, want one made by Lists or Parse")
	case g.Type == Listed && (g.Size != 0 || g.Stride != 0):
		return fmt.Errorf("commgroup: LISTS group with size %d and stride %d, want 0 for both: its lists have the sizes",
			g.Size, g.Stride)
	case g.Type != Listed && g.lists != "":
		return fmt.Errorf("commgroup: %v group with lists, want type LISTS", g.Type)
	}
	return nil
}

// Resolve fits the group to n replicas: defaults are filled in and everything is checked. The error names n, the size,
// the stride, and which would do; of lists, the replicas that are in no group, or do not exist.
func (g Group) Resolve(n int) (Layout, error) {
	if err := g.check(); err != nil {
		return Layout{}, err
	}
	if n < 1 {
		return Layout{}, fmt.Errorf("commgroup: %v needs at least one replica, not %d", g, n)
	}
	if g.Type == Listed {
		return g.resolveLists(n)
	}
	size, stride := g.Size, g.Stride
	if size == 0 {
		size = n
	}
	if stride == 0 {
		stride = 1
	}
	switch {
	case g.Type == All && size != n:
		return Layout{}, fmt.Errorf("commgroup: an ALL group of %d replicas has size %d or 0, not %d", n, n, size)
	case g.Type == Orthogonal && stride > 1:
		return Layout{}, fmt.Errorf("commgroup: an ORTHOGONAL group of size %d of %d replicas takes no explicit "+
			"stride, not %d",
			size, n, stride)
	// size*stride may overflow: it is formed only once it is known to be at most n.
	case size > n || stride > n/size || n%(size*stride) != 0:
		return Layout{}, misfit(n, size, stride)
	case g.Type == Orthogonal:
		stride = n / size
	}
	return newLayout(n, size, stride), nil
}
