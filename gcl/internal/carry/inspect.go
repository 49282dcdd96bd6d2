package carry

import (
	"slices"
	"sync"
)

// Inspection is what tests may know of how the latest call went.
type Inspection struct {
	Pieces   int  // of the latest call in one pass over peer memory
	Streamed bool // its results were stored past the caches
	Staged   int  // bytes of staging memory
}

// Inspect says how the latest call went.
func (l *Carrier) Inspect() Inspection {
	s := &l.onePass
	return Inspection{
		Pieces:   s.pieces[0],
		Streamed: s.large && slices.ContainsFunc(s.operands, func(o operand) bool { return !o.replaces }),
		Staged:   len(l.staging),
	}
}

// PlansOf counts what the replicas of a process share of plans: sets, and the plans in them.
func PlansOf(shared *sync.Map) (sets, plans int) {
	shared.Range(func(_, v any) bool {
		if s, ok := v.(*planSet); ok {
			sets++
			for i := range s.ranks {
				if s.ranks[i].plan != nil {
					plans++
				}
			}
		}
		return true
	})
	return sets, plans
}
