package schedule

import (
	"cmp"
	"fmt"
	"slices"
)

// Bounds of drawings. Beyond them nobody can look at one.
const (
	maxShapeRanks   = 32
	maxShapeColumns = 256
)

// shape is what drawings of a schedule's shape show: who sends to whom in which round.
type shape struct {
	title   string
	ranks   int // drawn: the first ones
	columns []column
	refused *refusal // nil: the schedule proves, or nobody has tried
	notes   []string // of what is not drawn
}

// column is a round, or a run of rounds with the same arcs.
type column struct {
	first, last int
	arcs        []arc // in order
	wrong       int   // one more than the rank whose cell is refused; 0: none. Such a column is of one round
}

// arc is all that one rank sends another in a round and that ends in the same way.
type arc struct {
	from, to int
	end      ending
	chunks   int64
}

// ending says how messages end at their receiver.
type ending uint8

const (
	kept     ending = iota // written to a place
	folded                 // combined with other data
	mismatch               // send and receive are not of as many chunks, or one of the two is missing
)

// shapeOf finds the shape of a schedule, of which any part may be wrong. Rounds that follow each other and have the
// same arcs are one column.
func shapeOf(s *Schedule) shape {
	rounds := s.rounds()
	out := shape{title: s.title(rounds), ranks: min(len(s.Programs), maxShapeRanks), refused: s.refusal()}
	if n := len(s.Programs); n > out.ranks {
		out.notes = append(out.notes, "not drawn: "+numbered("rank", out.ranks, n-1)+", and messages with them")
	}
	astray := 0
	for t := range rounds {
		arcs, bad := s.arcs(t, out.ranks)
		wrong := out.refused.at(t, out.ranks)
		n := len(out.columns)
		alone := wrong > 0 || n > 0 && out.columns[n-1].wrong > 0
		if n > 0 && !alone && slices.Equal(out.columns[n-1].arcs, arcs) {
			out.columns[n-1].last = t
		} else if n == maxShapeColumns {
			out.notes = append(out.notes, "not drawn: "+numbered("round", t, rounds-1))
			break
		} else {
			out.columns = append(out.columns, column{t, t, arcs, wrong})
		}
		astray += bad
	}
	if astray > 0 {
		const why = " not among the moves, or with no other rank of the group"
		out.notes = append(out.notes, "not drawn: "+counted(astray, "message")+why)
	}
	return out
}

// arcs returns the arcs of round t among the first ranks, in order, and how many messages have no place in a drawing.
func (s *Schedule) arcs(t, ranks int) (out []arc, astray int) {
	type pair struct{ from, to int }
	type receipt struct {
		end   ending
		count int
	}
	sent, received := map[pair][]int{}, map[pair][]receipt{}
	var pairs []pair
	note := func(p pair) {
		if len(sent[p])+len(received[p]) == 1 {
			pairs = append(pairs, p)
		}
	}
	for rank, p := range s.Programs[:ranks] {
		if t >= len(p) {
			continue
		}
		combined := p[t].combined()
		for _, st := range p[t].Moves {
			switch {
			case st.Verb > RecvReduce || st.Peer >= ranks && st.Peer < len(s.Programs):
			case st.Peer < 0 || st.Peer >= ranks || st.Peer == rank:
				astray++
			case st.Verb == Send:
				p := pair{rank, st.Peer}
				sent[p] = append(sent[p], st.Src.Count)
				note(p)
			default:
				p, end := pair{st.Peer, rank}, kept
				if st.Verb == RecvReduce || combined[st.Dst] {
					end = folded
				}
				received[p] = append(received[p], receipt{end, st.Dst.Count})
				note(p)
			}
		}
		for _, st := range p[t].Then {
			if st.Verb <= RecvReduce {
				astray++
			}
		}
	}
	for _, p := range pairs {
		var chunks [mismatch + 1]int64
		var seen [mismatch + 1]bool
		for i := range max(len(sent[p]), len(received[p])) {
			end, count := mismatch, -1
			switch {
			case i >= len(sent[p]):
				count = received[p][i].count
			case i >= len(received[p]) || sent[p][i] != received[p][i].count:
				count = sent[p][i]
			default:
				end, count = received[p][i].end, sent[p][i]
			}
			if count < 1 || count > maxChunks { // no sum of the others overflows
				end, count = mismatch, 0
			}
			chunks[end] += int64(count)
			seen[end] = true
		}
		for end, is := range seen {
			if is {
				out = append(out, arc{p.from, p.to, ending(end), chunks[end]})
			}
		}
	}
	slices.SortFunc(out, func(a, b arc) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.end, b.end))
	})
	return out, astray
}

// combined is the set of the spans that are combined with others in a round, by steps without a message or into what
// was received before.
func (r Round) combined() map[Span]bool {
	out := map[Span]bool{}
	for _, steps := range [][]Step{r.Moves, r.Then} {
		for _, st := range steps {
			if st.Verb == Fold || st.Verb == RecvReduce && st.Src == st.Dst {
				out[st.Dst], out[st.Src] = true, true
			}
		}
	}
	return out
}

// each is the number of chunks that every arc of the column carries; 0 if they differ, or there are none.
func (c column) each() int64 {
	for _, a := range c.arcs {
		if a.chunks != c.arcs[0].chunks {
			return 0
		}
	}
	if len(c.arcs) == 0 {
		return 0
	}
	return c.arcs[0].chunks
}

// name is the number of the round, or those of the first and the last.
func (c column) name() string {
	if c.first == c.last {
		return fmt.Sprint(c.first)
	}
	return fmt.Sprintf("%d-%d", c.first, c.last)
}

// single returns columns of one round each; nil if they are too many to draw.
func (sh shape) single() []column {
	var out []column
	for _, c := range sh.columns {
		if c.last-c.first >= maxShapeColumns-len(out) {
			return nil
		}
		for t := c.first; t <= c.last; t++ {
			out = append(out, column{t, t, c.arcs, c.wrong})
		}
	}
	return out
}
