package methods

import "gogcl.dev/methods/schedule"

// barrierRecipes are those of the barrier: word that a rank has come goes to all, and may come twice. Without a ring
// everyone tells everyone. On rings each lane carries round what it has heard. By recursive_doubling rank r tells rank
// r+2^t in round t all that it has heard, which is the dissemination barrier of Hensgen, Finkel and Manber (1988).
//
//	barrier, 3 ranks, 1 chunk, 2 rounds
//	round | rank 0         | rank 1         | rank 2
//	------+----------------+----------------+---------------
//	    0 | I0>1           | I0>2           | I0>0
//	      | S0[0]=I0+<2    | S0[0]=I0+<0    | S0[0]=I0+<1
//	    1 | S0[0]>2        | S0[0]>0        | S0[0]>1
//	      | S1[0]=S0[0]+<1 | S1[0]=S0[0]+<2 | S1[0]=S0[0]+<0
//	      | then           | then           | then
//	      | O0=S1[0]       | O0=S1[0]       | O0=S1[0]
//
//draw:recursive_doubling barrier 3
var barrierRecipes = collectiveRecipes{
	collective: schedule.Barrier,
	toAll:      built(whole, everyoneTellsEveryone),
	direct:     built(whole, everyoneTellsEveryone),
	ring: func(f ringForm) recipe {
		return built(func(Spec) int { return f.fragments }, func(b *schedule.Builder, s Spec) {
			for rank := range s.Size {
				for _, l := range f.lanes(s, rank) {
					for t := range l.reach {
						b.Fold(t, rank, l.ahead(1), l.fragment, 1)
					}
				}
			}
		})
	},
	doubling: built(whole, func(b *schedule.Builder, s Spec) {
		for t := range s.treeRounds() {
			for rank := range s.Size {
				b.Fold(t, rank, (rank+1<<t)%s.Size, 0, 1)
			}
		}
	}),
}

// everyoneTellsEveryone is the barrier in one round.
func everyoneTellsEveryone(b *schedule.Builder, s Spec) {
	for rank := range s.Size {
		for _, to := range s.others(rank) {
			b.Fold(0, rank, to, 0, 1)
		}
	}
}
