package carry

import (
	"cmp"
	"slices"
	"sync"

	"gogcl.dev/transport"
)

// planSet is the plans of all ranks of a group for one key. The replicas of a process share it, so that each plan is
// made once, by its own replica or by the first that needs it.
type planSet struct {
	programs
	members []int
	rankOf  map[int]int // by replica
	ranks   []rankPlan
}

// rankPlan is the plan of one rank.
type rankPlan struct {
	once  sync.Once // guards what follows
	plan  *plan     // without placements
	sends [][]int32 // by round: the moves that are sends, by peer and tag
	err   error
}

// planSetKey is where a planSet is in what the endpoints of a process share: all that decides on the plans.
type planSetKey struct {
	group, rings uint64
	planKey      planKey
	schedule     [32]byte // the digest, of a program's own method: replicas may differ in what a name stands for
}

// planSet finds the plans of all ranks.
func (w *Caller) planSet(key planKey, from programs) *planSet {
	e, ok := w.Endpoint.(transport.Shared)
	if !ok {
		return newPlanSet(from, w.Group.Members)
	}
	at := planSetKey{group: w.Group.ID, rings: w.Group.Digest, planKey: key}
	if from.proved != nil {
		at.schedule = from.proved.Digest
	}
	s, ok := e.Shared().Load(at)
	if !ok {
		s, _ = e.Shared().LoadOrStore(at, newPlanSet(from, w.Group.Members))
	}
	return s.(*planSet)
}

// newPlanSet makes a set without plans.
func newPlanSet(from programs, members []int) *planSet {
	s := &planSet{programs: from, members: members, rankOf: make(map[int]int, len(members)),
		ranks: make([]rankPlan, len(members))}
	for rank, m := range members {
		s.rankOf[m] = rank
	}
	return s
}

// rank makes the plan of a rank, if nobody has.
func (s *planSet) rank(rank int) (*rankPlan, error) {
	r := &s.ranks[rank]
	r.once.Do(func() {
		if r.plan, r.err = newPlan(s.programs, rank, s.members); r.err == nil {
			r.sends = sortedSends(r.plan.rounds)
		}
	})
	return r, r.err
}

// sortedSends lists the sends of each round by peer and tag.
func sortedSends(rounds []planRound) [][]int32 {
	total := 0
	for t := range rounds {
		total += len(rounds[t].moves)
	}
	all, out := make([]int32, 0, total), make([][]int32, len(rounds))
	for t := range rounds {
		moves, first := rounds[t].moves, len(all)
		for i := range moves {
			if moves[i].kind == transport.Send {
				all = append(all, int32(i))
			}
		}
		out[t] = all[first:]
		slices.SortFunc(out[t], func(a, b int32) int {
			return cmp.Or(cmp.Compare(moves[a].peer, moves[b].peer), cmp.Compare(moves[a].tag, moves[b].tag))
		})
	}
	return out
}

// sent is the message that a rank sends to a replica in a round, or nil.
func (r *rankPlan) sent(t, to int, tag uint32) *planMove {
	if t >= len(r.sends) {
		return nil
	}
	moves := r.plan.rounds[t].moves
	at, found := slices.BinarySearchFunc(r.sends[t], to, func(i int32, to int) int {
		return cmp.Or(cmp.Compare(moves[i].peer, to), cmp.Compare(moves[i].tag, tag))
	})
	if !found {
		return nil
	}
	return &moves[r.sends[t][at]]
}
