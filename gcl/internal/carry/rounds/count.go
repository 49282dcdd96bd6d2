package rounds

import "sync"

// Count counts what the replicas of a process share of plans, for tests: sets, and the plans in them.
func Count(shared *sync.Map) (sets, plans int) {
	shared.Range(func(_, v any) bool {
		if s, ok := v.(*Set); ok {
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
