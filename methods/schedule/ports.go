package schedule

import (
	"fmt"
	"iter"
)

// Ports has the Builder choose rounds, so that a rank sends at most k messages in a round and receives at most k. It
// comes before the first message.
//
// The messages are a sequence then: each carries what its sender holds after all messages before it, as if these went
// one after the other. The round of a call is the first that its message may go in; 0 leaves the choice to the Builder.
// The message goes in the earliest round from there on
//   - that comes after those of the messages before it that bring its chunks to its sender;
//   - that comes after those of the messages before it that bring its chunks to its receiver, or is the last of these,
//     if the message is a Fold and that one brings the same chunks, no more and no fewer;
//   - that comes no sooner than those of the messages before it that take its chunks from its receiver;
//   - in which its sender has sent fewer than k messages, and its receiver has received fewer than k.
//
// A message joins an earlier one, so that they are one message and take one port, if
//   - the earlier one is the last that brought the chunk before its own, or the one behind, to its receiver;
//   - both have one sender, both calls have one round, and both are a Copy or both a Fold;
//   - the message may go in the round of the earlier one, and would go no sooner alone;
//   - nothing else arrives in that round for the chunks of either.
//
// Strided messages do not join others, nor do any by a contract of a program's own, where neighbours may lie apart.
//
// Calls with different rounds keep neighbours apart. So the pieces of a pipeline have their numbers as rounds.
//
// Two ranks cannot send each other one chunk at the same time: the second sends what it holds after the first. That
// needs a Builder without Ports.
//
// The rounds follow from the calls alone. With [Builder.Only] the Builder keeps the messages of all ranks, since any of
// them may take a port, and makes one program. k below 1 is an error of Build, as is a call after the first message.
func (b *Builder) Ports(k int) *Builder {
	switch {
	case b == nil:
		return nil
	case b.err != nil:
	case k < 1:
		b.err = fmt.Errorf("schedule: %d ports, want 1 or more", k)
	case b.rounds > 0:
		b.err = fmt.Errorf("schedule: Ports(%d) after a message, want it before the first", k)
	default:
		b.ports = &ports{most: int32(min(k, maxBuiltMessages)), pages: map[portPage]*[pageChunks]portChunk{}}
	}
	return b
}

// ports chooses rounds.
type ports struct {
	most   int32 // messages that a rank sends in a round, and that it receives
	placed []placed
	pages  map[portPage]*[pageChunks]portChunk
	out    []lane // by rank: what it sends
	in     []lane // by rank: what it receives
}

// placed is what ports knows of a message of Builder.moves besides.
type placed struct {
	earliest int  // the round as an argument
	chained  bool // one before it brings the same chunks to its receiver in the same round
}

// portChunk is what happened last to a chunk at a rank. Rounds and messages are one more than their numbers; 0: none.
type portChunk struct {
	arrived int32 // the round in which it arrived
	sent    int32 // the round in which it was sent
	message int32 // the message, of Builder.moves, in which it arrived
}

// A page has the state of so many chunks of a rank, so that ranks that see few chunks take little memory.
const pageChunks = 64

type portPage struct{ rank, page int }

// over goes over the chunks of a message.
func (b *Builder) over(m built) iter.Seq[int] {
	return func(yield func(int) bool) {
		sp := m.span()
		at := sp.walk(b.s.Chunks)
		for range m.n {
			if !yield(at.next()) {
				return
			}
		}
	}
}

// chunk is the state of a chunk at a rank.
func (p *ports) chunk(rank, f int) *portChunk {
	key := portPage{rank, f / pageChunks}
	page := p.pages[key]
	if page == nil {
		page = new([pageChunks]portChunk)
		p.pages[key] = page
	}
	return &page[f%pageChunks]
}

// place adds a message, in the round that is chosen for it.
func (b *Builder) place(m built) error {
	p := b.ports
	if p.out == nil {
		p.out, p.in = make([]lane, b.s.Size), make([]lane, b.s.Size)
	}
	info := placed{earliest: m.round}
	t, last := m.round, -1 // the round in which one of its chunks came to the receiver last
	for f := range b.over(m) {
		from, to := p.chunk(m.from, f), p.chunk(m.to, f)
		t = max(t, int(from.arrived), int(to.sent)-1)
		last = max(last, int(to.arrived)-1)
	}
	before := int(p.chunk(m.to, m.first).message) - 1 // with which it may share round last
	if before >= 0 && (!m.fold || b.moves[before].round != last || byChunks(b.moves[before], m) != 0) {
		before = -1
	}
	if last >= t {
		t = last
		if before < 0 {
			t++
		}
	}
	round := t
	for out := -1; out != round; {
		out = p.out[m.from].free(round)
		round = p.in[m.to].free(out)
	}
	if i := b.neighbour(m, info, max(t, last+1), round); i >= 0 {
		other := &b.moves[i]
		b.mark(m, other.round, i)
		other.first, other.n = min(other.first, m.first), other.n+m.n
		return nil
	}
	if round >= maxBuiltRounds {
		return fmt.Errorf("schedule: round %d of a message that may go in round %d, want at most round %d", round,
			m.round, maxBuiltRounds-1)
	}
	info.chained = before >= 0 && round == last
	p.out[m.from].use(round, p.most)
	p.in[m.to].use(round, p.most)
	b.mark(m, round, len(b.moves))
	m.round = round
	b.moves = append(b.moves, m)
	p.placed = append(p.placed, info)
	b.rounds = max(b.rounds, round+1)
	return nil
}

// neighbour is the message that m joins if it goes in rounds first to last, the earlier of two; -1 if there is none.
func (b *Builder) neighbour(m built, info placed, first, last int) int {
	if b.s.Custom != nil || m.stride != 0 {
		return -1 // neighbours may lie apart in the Input, and strided messages have none
	}
	found := -1
	for _, f := range [...]int{m.first - 1, m.first + m.n} {
		if f < 0 || f >= b.s.Chunks {
			continue
		}
		i := int(b.ports.chunk(m.to, f).message) - 1
		if i < 0 || b.ports.placed[i] != info { // one that is chained is not equal
			continue
		}
		other := b.moves[i]
		beside := other.first+other.n == m.first || m.first+m.n == other.first
		beside = beside && other.stride == 0
		if beside && other.from == m.from && other.fold == m.fold && first <= other.round && other.round <= last {
			found, last = i, other.round-1
		}
	}
	return found
}

// mark notes that message number i has taken the chunks of m from its sender to its receiver.
func (b *Builder) mark(m built, round, i int) {
	for f := range b.over(m) {
		from, to := b.ports.chunk(m.from, f), b.ports.chunk(m.to, f)
		from.sent = max(from.sent, int32(round+1))
		to.arrived, to.message = int32(round+1), int32(i+1)
	}
}

// lane counts, by round, the messages that a rank sends, or those that it receives.
type lane struct {
	first  int     // the round of counts[0]; a message in no other round takes no memory
	counts []int32 // a round that is full has minus a later one, with only full rounds between the two
}

// free is the first round from t on that is not full.
func (l *lane) free(t int) int {
	for {
		count := l.count(t)
		if *count >= 0 {
			return t
		}
		next := int(-*count)
		if after := l.count(next); *after < 0 {
			*count = *after // halves the way of the next search
		}
		t = next
	}
}

// count is that of a round; a new 0 if it has none.
func (l *lane) count(t int) *int32 {
	if t < l.first || t >= l.first+len(l.counts) {
		return new(int32)
	}
	return &l.counts[t-l.first]
}

// use counts a message in a round that is not full.
func (l *lane) use(t int, most int32) {
	switch n := len(l.counts); {
	case n == 0:
		l.first = t
	case t < l.first:
		first := max(0, t-n) // room for more, so that going down costs no more than going up
		l.counts = append(make([]int32, l.first-first), l.counts...)
		l.first = first
	}
	if more := t + 1 - l.first - len(l.counts); more > 0 {
		l.counts = append(l.counts, make([]int32, more)...)
	}
	count := l.count(t)
	if *count++; *count == most {
		*count = -int32(t + 1)
	}
}
