package methods

import "gogcl.dev/methods/schedule"

// gatherRecipes are those of the gather, a scatter backwards. Without a ring everyone sends its part straight to the
// root. On rings the parts go round towards the root, each rank passing on in round t the part of the rank t places
// behind. By recursive_doubling they go up a binomial tree, whose inner ranks pass on the parts of all below them
// together.
//
//	gather, 4 ranks, 4 chunks, 2 rounds
//	round | rank 0 | rank 1 | rank 2            | rank 3
//	------+--------+--------+-------------------+-------
//	    0 | O1<1   | I1>0   | S0[3]<3           | I3>2
//	      | then   |        | then              |
//	      | O0=I0  |        | S1[2]=I2          |
//	      |        |        | S1[3 of 2-]=S0[3] |
//	    1 | O2-3<2 | -      | S1[2-3]>0         | -
//
//draw:recursive_doubling gather 4
var gatherRecipes = collectiveRecipes{
	collective: schedule.Gather,
	toAll:      built(perRank, partsToRoot),
	direct:     built(perRank, partsToRoot),
	ring: func(f ringForm) recipe {
		return built(f.perRank, func(b *schedule.Builder, s Spec) {
			for _, l := range f.lanes(s, s.Root) {
				for d := 1; d <= l.reach; d++ {
					for t := range d {
						b.Copy(t, l.behind(d-t), l.behind(d-t-1), l.behind(d)*f.fragments+l.fragment, 1)
					}
				}
			}
		}).describes(f.collect)
	},
	doubling: built(perRank, func(b *schedule.Builder, s Spec) {
		s.tree(2, func(t, child, parent, first, n int) { b.Copy(t, child, parent, first, n) })
	}),
}

// partsToRoot is the gather in one round.
func partsToRoot(b *schedule.Builder, s Spec) {
	for _, from := range s.others(s.Root) {
		b.Copy(0, from, s.Root, from, 1)
	}
}
