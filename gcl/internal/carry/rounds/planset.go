package rounds

import (
	"cmp"
	"slices"
	"sync"

	"gogcl.dev/transport"
)

// Set is the plans of all ranks of a group for one key. The replicas of a process share it, so that each plan is
// made once, by its own replica or by the first that needs it.
type Set struct {
	Programs
	members []int
	rankOf  map[int]int // by replica
	ranks   []rankPlan
}

// rankPlan is the plan of one rank.
type rankPlan struct {
	once  sync.Once // guards what follows
	plan  *Plan     // without placements
	sends [][]int32 // by round: the moves that are sends, by peer and tag
	err   error
}

// setKey is where a Set is in what the endpoints of a process share: all that decides on the plans.
type setKey struct {
	group, rings uint64
	Key
	schedule [32]byte // the digest, of a program's own method: replicas may differ in what a name stands for
}

// SetOf finds the plans of all ranks. group and rings stand for the members and their ring orders.
func SetOf(e transport.Endpoint, group, rings uint64, members []int, key Key, from Programs) *Set {
	process, ok := e.(transport.Shared)
	if !ok {
		return NewSet(from, members)
	}
	at := setKey{group: group, rings: rings, Key: key}
	if from.Proved != nil {
		at.schedule = from.Proved.Digest
	}
	s, ok := process.Shared().Load(at)
	if !ok {
		s, _ = process.Shared().LoadOrStore(at, NewSet(from, members))
	}
	return s.(*Set)
}

// NewSet makes a set without plans.
func NewSet(from Programs, members []int) *Set {
	s := &Set{Programs: from, members: members, rankOf: make(map[int]int, len(members)),
		ranks: make([]rankPlan, len(members))}
	for rank, m := range members {
		s.rankOf[m] = rank
	}
	return s
}

// rank makes the plan of a rank, if nobody has.
func (s *Set) rank(rank int) (*rankPlan, error) {
	r := &s.ranks[rank]
	r.once.Do(func() {
		if r.plan, r.err = NewPlan(nil, s.Programs, rank, s.members, false); r.err == nil {
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
