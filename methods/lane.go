package methods

import "gogcl.dev/methods/schedule"

// lane is one direction round one ring as one rank sees it. All ring methods are made of lanes: they differ in how
// many there are, which fragments each carries, and how far it carries them.
type lane struct {
	order []int // the ranks in the direction of travel
	at    int   // this rank's place in order

	reach    int // rounds: how many places a fragment travels
	fragment int // which of a rank's fragments it carries
	id       int // its number among the lanes of the rank, for scratch slots
}

// ahead is the rank d places further in the direction of travel; d may be negative.
func (l lane) ahead(d int) int {
	k := len(l.order)
	return l.order[((l.at+d)%k+k)%k]
}

// behind is the rank that lies d places back.
func (l lane) behind(d int) int { return l.ahead(-d) }

func (l lane) self() int { return l.order[l.at] }

// newLane puts a rank on a ring order, in its direction or against it.
func newLane(rank int, ring []int, against bool) lane {
	k := len(ring)
	l := lane{order: ring, reach: k - 1}
	if against {
		l.order = make([]int, k)
		for i, r := range ring {
			l.order[k-1-i] = r
		}
	}
	for i, r := range l.order {
		if r == rank {
			l.at = i
		}
	}
	return l
}

// ringForm is what a ring method says of itself.
type ringForm struct {
	rings     int                // ring orders that it follows
	fragments int                // of each rank: one for each lane, but that lanes may share one
	reach     func(size int) int // rounds: how many places the lane that reaches furthest goes
	lanes     func(s Spec, rank int) []lane
}

// wholeRing is the reach of a lane that goes all the way round.
func wholeRing(size int) int { return size - 1 }

// perRank and perPiece are into how many chunks a ring method cuts data that belongs to ranks, and data that goes down
// a chain.
func (f ringForm) perRank(s Spec) int  { return f.fragments * s.Size }
func (f ringForm) perPiece(s Spec) int { return f.fragments * s.pieces() }

// ringRow is the row of a ring method.
func ringRow(name string, f ringForm) row {
	along := func(make func(s Spec, r ring) schedule.Program) func(s Spec, rank int) schedule.Program {
		return func(s Spec, rank int) schedule.Program {
			lanes := f.lanes(s, rank)
			for i := range lanes {
				lanes[i].id = i
			}
			return make(s, ring{lanes, f.fragments})
		}
	}
	all := recipes{
		schedule.AllReduce:     {chunks: f.perRank, program: along(Spec.laneAllReduce), traffic: f.thereAndBack},
		schedule.ReduceScatter: {chunks: f.perRank, program: along(Spec.laneReduceScatter), traffic: f.there},
		schedule.AllGather:     {chunks: f.perRank, program: along(Spec.laneAllGather), traffic: f.back},
		schedule.AllToAll:      {chunks: f.perRank, program: along(Spec.laneAllToAll), traffic: f.onward},
		schedule.Broadcast: {
			chunks:  f.perPiece,
			program: along(Spec.laneBroadcast),
			reach:   f.reach,
			traffic: f.chain,
		},
	}
	return row{name: name, rings: f.rings, inOrder: chained, recipes: all.and(func(c collectiveRecipes) recipe {
		return c.ring(f)
	})}
}

// ring is the lanes of a rank, in the order of their ids.
type ring struct {
	lanes     []lane
	fragments int // that each rank owns
}

// rounds returns a program of as many empty rounds as the lane that reaches furthest needs, and extra ones.
func (r ring) rounds(extra int) schedule.Program {
	reach := 0
	for _, l := range r.lanes {
		reach = max(reach, l.reach)
	}
	return make(schedule.Program, reach+extra)
}

// steps has room for a send and a receive of each lane in each of its rounds, so that all steps of a program lie
// together.
func (r ring) steps() []schedule.Step {
	n := 0
	for _, l := range r.lanes {
		n += 2 * l.reach
	}
	return make([]schedule.Step, 0, n)
}
