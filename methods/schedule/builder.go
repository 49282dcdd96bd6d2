package schedule

import (
	"errors"
	"fmt"
)

// Builder makes a schedule from the chunks' point of view: it is told which chunks go from one rank to another in which
// round, and finds out where they lie. An all-reduce round a ring, of which chunk f ends with rank f first:
//
//	for t := range k - 1 {
//		for rank := range k {
//			b.Fold(t, rank, (rank+1)%k, (rank-t-1+k)%k, 1)
//		}
//	}
//	for t := range k - 1 {
//		for rank := range k {
//			b.Copy(k-1+t, rank, (rank+1)%k, (rank-t+k)%k, 1)
//		}
//	}
//
// A message has the value that its sender holds when the round begins. What arrives lies in the Output if that holds
// the chunks, and else in Scratch. Results that do not lie in the Output in the end are copied there. [Builder.Ports]
// has the Builder choose the rounds.
//
// A Builder takes collectives whose two buffers number their chunks alike: all but those of Blocks. A rank holds one
// value of a chunk at a time: one that passes on another than it ends with, as in an exclusive scan, is beyond a
// Builder. The zero Builder is an error of Build.
type Builder struct {
	s      Schedule
	only   int // the one rank to make the program of; -1: all
	rounds int
	moves  []built
	ports  *ports // chooses rounds; nil: they are those of the calls
	err    error  // the first one
}

// built is one message.
type built struct {
	round, from, to int
	first, n        int
	fold            bool
	stride, run     int // as in a Span
}

// span is the chunks of a message, in the Input.
func (m *built) span() Span { return Span{First: m.first, Count: m.n, Stride: m.stride, Run: m.run} }

// chunks is the text of them.
func (m *built) chunks() string {
	if m.stride == 0 {
		return fmt.Sprintf("%d to %d", m.first, m.first+m.n-1)
	}
	return m.span().String()[1:]
}

// These bound what a Builder keeps in memory.
const (
	maxBuiltRanks    = 1 << 16
	maxBuiltRounds   = 1 << 20
	maxBuiltMessages = 1 << 26
)

// NewBuilder begins a schedule of a collective with chunks chunks over size ranks. root is that of a collective that
// has one, else 0. Errors show in Build.
func NewBuilder(c Collective, size, root, chunks int) *Builder {
	return newBuilder(Schedule{Collective: c, Size: size, Root: root, Chunks: chunks})
}

// NewBuilderFor begins a schedule of a collective of a program's own. Errors show in Build.
func NewBuilderFor(c *CustomContract) *Builder {
	if c == nil {
		return &Builder{err: errors.New("schedule: a builder for no contract")}
	}
	return newBuilder(Schedule{Collective: Custom, Size: len(c.Inputs), Chunks: c.Chunks(), Custom: c})
}

func newBuilder(s Schedule) *Builder {
	c, size := s.Collective, s.Size
	b := &Builder{s: s, only: -1}
	if size < 1 || size > maxBuiltRanks {
		b.err = fmt.Errorf("schedule: size %d, want 1 to %d", size, maxBuiltRanks)
		return b
	}
	if b.err = checkHeader(&b.s, size); b.err == nil && c.Contract().Output == Blocks {
		b.err = fmt.Errorf("schedule: a builder does not take %v, whose blocks have other numbers in the output: %w",
			c, errors.ErrUnsupported)
	}
	return b
}

// Only has the Builder make the program of one rank and leave those of the others empty, at the cost of that rank's
// messages, or with [Builder.Ports] of all. It comes before the first of them.
func (b *Builder) Only(rank int) *Builder {
	if b == nil {
		return nil
	}
	switch {
	case b.err != nil:
	case rank < 0 || rank >= b.s.Size:
		b.err = fmt.Errorf("schedule: rank %d of %d", rank, b.s.Size)
	case b.rounds > 0:
		b.err = fmt.Errorf("schedule: Only(%d) after a message, want it before the first", rank)
	}
	b.only = rank
	return b
}

// Copy sends what rank from holds of n chunks, beginning with first, to rank to, which holds it from the next round on.
// With [Builder.Ports] round is the first that the message may go in.
func (b *Builder) Copy(round, from, to, first, n int) {
	b.add(built{round: round, from: from, to: to, first: first, n: n})
}

// Fold is Copy, but rank to combines what arrives with what it holds. Several folds of a round into the same chunks are
// combined in the order of the calls; before them, a Copy of the same chunks may take the place of what the rank holds.
func (b *Builder) Fold(round, from, to, first, n int) {
	b.add(built{round: round, from: from, to: to, first: first, n: n, fold: true})
}

// CopyStrided is Copy of n chunks that come in runs of run, each beginning stride chunks after the one before, in one
// message. Numbers go round: see [Span.Strided].
func (b *Builder) CopyStrided(round, from, to, first, n, run, stride int) {
	b.strided(built{round: round, from: from, to: to, first: first, n: n}, run, stride)
}

// FoldStrided is Fold of the chunks of CopyStrided.
func (b *Builder) FoldStrided(round, from, to, first, n, run, stride int) {
	b.strided(built{round: round, from: from, to: to, first: first, n: n, fold: true}, run, stride)
}

// strided adds a message, without a stride if its chunks follow each other.
func (b *Builder) strided(m built, run, stride int) {
	if b == nil || b.err != nil || b.s.Size == 0 {
		return // Build says so
	}
	sp := m.span().Strided(run, stride)
	if sp.Stride != 0 || sp.Run != 0 {
		if err := checkStride(&sp, 0, b.s.Chunks, b.s.Chunks); err != nil {
			b.err = fmt.Errorf("schedule: round %d: from rank %d to rank %d: %w", m.round, m.from, m.to, err)
			return
		}
		var room [2]Span
		if runs := sp.AppendRuns(room[:0], b.s.Chunks); len(runs) > 1 {
			m.stride, m.run = sp.Stride, sp.Run
		}
	}
	b.add(m)
}

func (b *Builder) add(m built) {
	if b == nil || b.s.Size == 0 && b.err == nil {
		return // Build says so
	}
	switch size, chunks := b.s.Size, b.s.Chunks; {
	case b.err != nil:
	case m.round < 0 || m.round >= maxBuiltRounds:
		b.err = fmt.Errorf("schedule: round %d of a message from rank %d to rank %d, want 0 to %d", m.round, m.from, m.to,
			maxBuiltRounds-1)
	case len(b.moves) == maxBuiltMessages:
		b.err = fmt.Errorf("schedule: round %d: more than %d messages", m.round, maxBuiltMessages)
	case m.from < 0 || m.from >= size || m.to < 0 || m.to >= size || m.from == m.to:
		b.err = fmt.Errorf("schedule: round %d: a message from rank %d to rank %d of %d", m.round, m.from, m.to, size)
	case m.stride == 0 && (m.n < 1 || m.first < 0 || m.first > chunks-m.n):
		b.err = fmt.Errorf("schedule: round %d: from rank %d to rank %d: %d chunks from chunk %d on of %d", m.round, m.from,
			m.to, m.n, m.first, chunks)
	case m.fold && !b.s.Contract().Combines:
		b.err = fmt.Errorf("schedule: round %d: a fold in %v, which combines nothing", m.round, b.s.Collective)
	case b.ports != nil:
		b.err = b.place(m)
	default:
		b.rounds = max(b.rounds, m.round+1)
		if b.only < 0 || b.only == m.from || b.only == m.to {
			b.moves = append(b.moves, m)
		}
	}
}

// Build returns the schedule, which is the caller's. All programs have as many rounds: ranks that step together make
// the same steps. The schedule is not proved: see Check. Errors: the first of a call before; a message of chunks that
// its sender does not hold, or holds in part; a fold into chunks that are held in part; two messages of a round that
// share chunks on their way to a rank, unless both have the same ones and the second folds.
func (b *Builder) Build() (*Schedule, error) {
	if b == nil || b.err == nil && b.s.Size == 0 {
		return nil, errors.New("schedule: a Builder that NewBuilder has not made")
	}
	if b.err != nil {
		return nil, b.err
	}
	s := b.s
	s.Programs = make([]Program, s.Size)
	byRank := make([][]built, s.Size)
	for _, m := range b.moves {
		if b.only >= 0 && b.only != m.from && b.only != m.to {
			continue // kept for Ports
		}
		byRank[m.from] = append(byRank[m.from], m)
		byRank[m.to] = append(byRank[m.to], m)
	}
	for rank := range s.Programs {
		if b.only >= 0 && rank != b.only {
			continue
		}
		p, err := b.program(rank, byRank[rank])
		if err != nil {
			return nil, err
		}
		s.Programs[rank] = p
	}
	return &s, nil
}
