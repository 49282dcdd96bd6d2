package cost

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

// Estimate is the price of a schedule. It is that of the bytes as they come to lie: a chunk is the piece [bytes*f/k,
// bytes*(f+1)/k), so that with whole elements some messages are a little longer or shorter.
type Estimate struct {
	Rounds    int
	SentBytes int64 // by the rank that sends most; what it passes on for others does not count
	Time      time.Duration
}

// Price prices a schedule of the replicas in members, by rank, on a machine, for a larger buffer of so many bytes.
// Processors take no time. Errors are those of [Model.Price].
func Price(s *schedule.Schedule, members []int, t topology.Topology, bytes int64) (Estimate, error) {
	return Model{Network: Machine(t)}.Price(s, members, bytes)
}

// Model is a network and the processors at its ends. All replicas have the same processor. It does one thing after the
// other, and begins when the messages of the round have arrived.
type Model struct {
	Network Network

	// Overhead is what a message takes of the processor of its sender, and once more of that of its receiver.
	Overhead time.Duration

	// FoldBytesPerSecond is how many bytes a processor combines with as many others. 0: combining takes no time.
	FoldBytesPerSecond float64
}

// Price prices a schedule of the replicas in members, by rank, for a larger buffer of so many bytes. With a
// schedule.CustomContract that is the longest of all ranks' buffers, and a contract that is wrong an error. Errors: no
// network, or one with a link or a route that cannot be; an overhead or a speed that is negative or not finite; another
// number of members than ranks, a member that does not exist or is named twice, negative bytes, a step that no schedule
// can have, a message to where no way leads.
func (m Model) Price(s *schedule.Schedule, members []int, bytes int64) (Estimate, error) {
	switch {
	case s == nil:
		return Estimate{}, errors.New("cost: nil schedule")
	case s.Chunks < 1 || len(s.Programs) != s.Size:
		return Estimate{}, fmt.Errorf("cost: a schedule of %d chunks with %d programs for %d ranks",
			s.Chunks, len(s.Programs), s.Size)
	}
	if err := m.check(s.Size, members, bytes); err != nil {
		return Estimate{}, err
	}
	long, err := lengthsOf(s, bytes)
	if err != nil {
		return Estimate{}, err
	}
	network := newRound(m, s.Size)
	var e Estimate
	for _, p := range s.Programs {
		e.Rounds = max(e.Rounds, len(p))
	}
	sent := make([]int64, s.Size)
	seconds := 0.0
	for round := range e.Rounds {
		network.next()
		for rank, p := range s.Programs {
			if round >= len(p) {
				continue
			}
			for _, steps := range [...][]schedule.Step{p[round].Moves, p[round].Then} {
				for i := range steps {
					st := &steps[i]
					if err := checkStep(s, rank, st); err != nil {
						return Estimate{}, fmt.Errorf("cost: rank %d round %d: %w", rank, round, err)
					}
					switch st.Verb {
					case schedule.Send:
						length := long.of(st.Src)
						sent[rank] = saturated(sent[rank], length)
						err := network.send(rank, st.Peer, members[rank], members[st.Peer], float64(length))
						if err != nil {
							return Estimate{}, err
						}
					case schedule.RecvReduce, schedule.Fold:
						if m.FoldBytesPerSecond > 0 {
							network.fold(rank, float64(long.of(st.Dst)))
						}
					}
				}
			}
		}
		seconds += network.seconds()
	}
	for _, n := range sent {
		e.SentBytes = max(e.SentBytes, n)
	}
	e.Time = duration(seconds)
	return e, nil
}

// checkStep refuses a message or a fold that no schedule can have. Receives take nothing beside what their sends do,
// and copies take nothing.
func checkStep(s *schedule.Schedule, rank int, st *schedule.Step) error {
	span, what := &st.Dst, "fold"
	switch st.Verb {
	case schedule.Send:
		span, what = &st.Src, "message"
		if st.Peer < 0 || st.Peer >= s.Size || st.Peer == rank {
			return fmt.Errorf("a message to rank %d of %d", st.Peer, s.Size)
		}
	case schedule.Recv, schedule.Copy:
		return nil
	}
	return checkSpan(s, what, span)
}

// checkSpan refuses a span that no schedule can have.
func checkSpan(s *schedule.Schedule, what string, span *schedule.Span) error {
	one := *span
	one.Count = min(one.Count, 1)
	if span.Stride != 0 && (span.Count > s.Chunks || len(one.AppendRuns(nil, s.Chunks)) == 0 ||
		(span.Count-1)/span.Run >= schedule.MaxRuns) {
		return fmt.Errorf("a %s of %d chunks from chunk %d on, in runs of %d, each %d after the one before, of %d", what,
			span.Count, span.First, span.Run, span.Stride, s.Chunks)
	} else if span.Stride != 0 {
		return nil
	}
	first, count := span.First, span.Count
	if first < 0 || count < 0 || first > s.Chunks || count > s.Chunks-first {
		return fmt.Errorf("a %s of %d chunks from chunk %d on, of %d", what, count, first, s.Chunks)
	}
	return nil
}

// lengthOf is how many bytes a span has.
func lengthOf(s *schedule.Schedule, span schedule.Span, bytes int64) int64 {
	if span.Stride == 0 {
		return piece(bytes, span.First+span.Count, s.Chunks) - piece(bytes, span.First, s.Chunks)
	}
	const atATime = 1024 // runs, so that a span of many takes little memory
	sum := int64(0)
	var runs []schedule.Span
	for left := span.Count; left > 0; left -= span.Count {
		span.Count = left
		if span.Run < left/atATime {
			span.Count = span.Run * atATime
		}
		runs = span.AppendRuns(runs[:0], s.Chunks)
		for _, run := range runs {
			sum += lengthOf(s, run, bytes)
		}
		span.First = int((int64(span.First) + atATime*int64(span.Stride)) % int64(s.Chunks))
	}
	return sum
}

// Check refuses a model that nothing can be priced with: no network, one of too many replicas or links, an overhead or
// a speed that is negative or not finite, a link that cannot be. It looks at every link, and at no way.
func (m Model) Check() error {
	if err := m.checkNumbers(); err != nil {
		return err
	}
	for number := range m.Network.Links() {
		if err := m.Network.Link(number).Check(); err != nil {
			return fmt.Errorf("cost: link %d: %w", number, err)
		}
	}
	return nil
}

// checkNumbers is Check without the links.
func (m Model) checkNumbers() error {
	if err := checkNetwork(m.Network); err != nil {
		return err
	}
	switch f := m.FoldBytesPerSecond; {
	case m.Overhead < 0:
		return fmt.Errorf("cost: an overhead of %v, want 0 or more", m.Overhead)
	case !(f >= 0) || math.IsInf(f, 1):
		return fmt.Errorf("cost: %v bytes folded per second, want a finite number above 0, or 0 for no time", f)
	}
	return nil
}

// check refuses what no schedule of so many ranks can be priced with.
func (m Model) check(ranks int, members []int, bytes int64) error {
	if err := m.checkNumbers(); err != nil {
		return err
	}
	switch {
	case len(members) != ranks:
		return fmt.Errorf("cost: %d members for a schedule of %d ranks", len(members), ranks)
	case bytes < 0:
		return fmt.Errorf("cost: %d bytes", bytes)
	}
	seen := make([]bool, m.Network.Replicas())
	for rank, m := range members {
		if m < 0 || m >= len(seen) {
			return fmt.Errorf("cost: rank %d is replica %d, but there are %d replicas", rank, m, len(seen))
		}
		if seen[m] {
			return fmt.Errorf("cost: replica %d is a member twice", m)
		}
		seen[m] = true
	}
	return nil
}

// piece is where chunk f of k begins in so many bytes: bytes*f/k, rounded down.
func piece(bytes int64, f, k int) int64 {
	hi, lo := bits.Mul64(uint64(bytes), uint64(f))
	begin, _ := bits.Div64(hi, lo, uint64(k)) // f is at most k, and so the result at most bytes
	return int64(begin)
}

// saturated is a+b, or the greatest number if that is more. Neither is negative.
func saturated(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// duration rounds to nanoseconds.
func duration(seconds float64) time.Duration {
	if ns := math.Round(seconds * 1e9); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}
