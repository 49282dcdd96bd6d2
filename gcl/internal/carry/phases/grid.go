package phases

import "slices"

// Grid is how a rank lies among link domains. Domains stand in the order of their first members; a place is a rank's
// among the members of its domain, in rank order.
//
//	          ranks 0 1 2 3 4 5, dealt out      follow each other
//	domain 0        0     3                     0 1
//	domain 1          1     4                       2 3
//	domain 2            2     5                         4 5
//	place           0 0 0 1 1 1                 0 1 0 1 0 1
type Grid struct {
	Domains, Each int // domains with members; members in each
	Domain, Place int // this rank's

	// Ranks are those of domain 0 by place, then those of domain 1, and so on. nil: they are 0, 1, 2, ..., since the
	// members of each domain follow each other.
	Ranks []int
}

// Rank is the rank at a place of a domain.
func (g *Grid) Rank(domain, place int) int {
	at := domain*g.Each + place
	if g.Ranks != nil {
		return g.Ranks[at]
	}
	return at
}

// At is the inverse.
func (g *Grid) At(rank int) (domain, place int) {
	if g.Ranks != nil {
		rank = slices.Index(g.Ranks, rank)
	}
	return rank / g.Each, rank % g.Each
}

// block is part i of several of the same length.
func block(parts []byte, i, bytes int) []byte { return parts[i*bytes : (i+1)*bytes] }

// blocksOf are the blocks that the members of a domain have in all, which are in rank order, side by side. They are
// copied into room where they do not lie so, or end beyond all, where they are zeros.
func (g *Grid) blocksOf(all []byte, domain int, room []byte) []byte {
	if lo := domain * len(room); g.Ranks == nil && lo+len(room) <= len(all) {
		return all[lo : lo+len(room)]
	}
	bytes := len(room) / g.Each
	for place := range g.Each {
		one := block(room, place, bytes)
		clear(one[copy(one, all[min(g.Rank(domain, place)*bytes, len(all)):]):])
	}
	return room
}

// staged is how many blocks of a domain are copied on their way: none where its members follow each other.
func (g *Grid) staged() int {
	if g.Ranks == nil {
		return 0
	}
	return g.Each
}

// roomFor is where the blocks of the members of a domain come to lie side by side: in all, if that is so there, else
// room. See settle.
func (g *Grid) roomFor(all []byte, domain int, room []byte) []byte {
	if g.Ranks == nil {
		return block(all, domain, len(all)/g.Domains)
	}
	return room
}

// settle brings blocks to where they belong in all, if they are not there.
func (g *Grid) settle(all []byte, domain int, blocks []byte) {
	if g.Ranks == nil {
		return
	}
	bytes := len(blocks) / g.Each
	for place := range g.Each {
		copy(block(all, g.Rank(domain, place), bytes), block(blocks, place, bytes))
	}
}
