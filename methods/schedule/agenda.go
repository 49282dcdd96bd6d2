package schedule

import "slices"

// source has the programs of a schedule.
type source interface {
	// length is how many rounds a rank's program has.
	length(rank int) int

	// next is the first round of a rank, from round t on, that has steps; the program's length if there is none.
	next(rank, t int) int

	// steps is how many all programs have together.
	steps() int64

	// round is round t of a rank. Its steps are the source's, and valid until the next call.
	round(rank, t int) Round
}

// A Schedule is a source.
func (s *Schedule) length(rank int) int { return len(s.Programs[rank]) }

func (s *Schedule) steps() int64 {
	n := int64(0)
	for _, p := range s.Programs {
		for t := range p {
			n += int64(len(p[t].Moves) + len(p[t].Then))
		}
	}
	return n
}

func (s *Schedule) next(rank, t int) int {
	p := s.Programs[rank]
	for t < len(p) && len(p[t].Moves)+len(p[t].Then) == 0 {
		t++
	}
	return t
}

func (s *Schedule) round(rank, t int) Round { return s.Programs[rank][t] }

// agenda says which ranks have steps in which round, so that a rank costs nothing in a round in which it has none.
type agenda struct {
	from   source
	rounds int     // of the longest program
	heads  []int32 // by round: one more than a rank whose next steps are in it, or 0
	links  []int32 // by rank: one more than another rank of the same round, or 0
	active []int32
}

func newAgenda(from source, size int) *agenda {
	a := &agenda{from: from, links: make([]int32, size)}
	for rank := range size {
		a.rounds = max(a.rounds, from.length(rank))
	}
	a.heads = make([]int32, a.rounds)
	for rank := range size {
		a.enter(rank, 0)
	}
	return a
}

// enter notes when a rank has steps next, from round t on.
func (a *agenda) enter(rank, t int) {
	if t = a.from.next(rank, t); t < a.from.length(rank) {
		a.links[rank], a.heads[t] = a.heads[t], int32(rank+1)
	}
}

// at returns the ranks that have steps in round t, in order. They are valid until the next call.
func (a *agenda) at(t int) []int32 {
	a.active = a.active[:0]
	for r := a.heads[t]; r > 0; r = a.links[r-1] {
		a.active = append(a.active, r-1)
	}
	slices.Sort(a.active)
	return a.active
}
