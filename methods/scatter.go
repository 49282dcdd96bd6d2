package methods

import "gogcl.dev/methods/schedule"

// scatterRecipes are those of the scatter, in which the root deals out the parts. Without a ring each part goes
// straight to its rank. On rings the parts for the ranks furthest away leave first, and are passed on. By
// recursive_doubling the root hands half of the parts to the root of the other half of the ranks, and so on.
//
//	scatter, 4 ranks, 4 chunks, 2 rounds
//	round | rank 0 | rank 1 | rank 2        | rank 3
//	------+--------+--------+---------------+-------
//	    0 | I2-3>2 |        | S0[2-3]<0     |
//	      | then   |        | then          |
//	      | O0=I0  |        | O2=S0[2]      |
//	    1 | I1>1   | O1<0   | S0[3 of 2-]>3 | O3<2
//
//draw:recursive_doubling scatter 4
var scatterRecipes = collectiveRecipes{
	collective: schedule.Scatter,
	toAll:      built(perRank, partsFromRoot),
	direct:     built(perRank, partsFromRoot),
	ring: func(f ringForm) recipe {
		return built(f.perRank, func(b *schedule.Builder, s Spec) {
			for _, l := range f.lanes(s, s.Root) {
				for d := 1; d <= l.reach; d++ {
					for hop := range d {
						b.Copy(l.reach-d+hop, l.ahead(hop), l.ahead(hop+1), l.ahead(d)*f.fragments+l.fragment, 1)
					}
				}
			}
		}).describes(f.deal)
	},
	doubling: built(perRank, func(b *schedule.Builder, s Spec) {
		last := s.treeRounds() - 1
		s.tree(2, func(t, child, parent, first, n int) { b.Copy(last-t, parent, child, first, n) })
	}),
}

// partsFromRoot is the scatter in one round.
func partsFromRoot(b *schedule.Builder, s Spec) {
	for _, to := range s.others(s.Root) {
		b.Copy(0, s.Root, to, to, 1)
	}
}
