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
// Errors: another number of members than ranks, a member that does not exist or is named twice, negative bytes, a step
// that no schedule can have.
func Price(s *schedule.Schedule, members []int, t topology.Topology, bytes int64) (Estimate, error) {
	if err := check(s, members, t, bytes); err != nil {
		return Estimate{}, err
	}
	network := newNetwork(t)
	var e Estimate
	for _, p := range s.Programs {
		e.Rounds = max(e.Rounds, len(p))
	}
	sent := make([]int64, s.Size)
	seconds := 0.0
	for round := range e.Rounds {
		network.clear()
		for rank, p := range s.Programs {
			if round >= len(p) {
				continue
			}
			for _, st := range p[round].Moves {
				if st.Verb != schedule.Send {
					continue
				}
				if err := checkSend(s, rank, st); err != nil {
					return Estimate{}, fmt.Errorf("cost: rank %d round %d: %w", rank, round, err)
				}
				length := piece(bytes, st.Src.First+st.Src.Count, s.Chunks) - piece(bytes, st.Src.First, s.Chunks)
				sent[rank] = saturated(sent[rank], length)
				if err := network.send(members[rank], members[st.Peer], float64(length)); err != nil {
					return Estimate{}, err
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

func check(s *schedule.Schedule, members []int, t topology.Topology, bytes int64) error {
	switch {
	case s == nil:
		return errors.New("cost: nil schedule")
	case s.Chunks < 1 || len(s.Programs) != s.Size:
		return fmt.Errorf("cost: a schedule of %d chunks with %d programs for %d ranks",
			s.Chunks, len(s.Programs), s.Size)
	case len(members) != s.Size:
		return fmt.Errorf("cost: %d members for a schedule of %d ranks", len(members), s.Size)
	case bytes < 0:
		return fmt.Errorf("cost: %d bytes", bytes)
	}
	seen := make([]bool, t.Replicas())
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

func checkSend(s *schedule.Schedule, rank int, st schedule.Step) error {
	first, count := st.Src.First, st.Src.Count
	switch {
	case st.Peer < 0 || st.Peer >= s.Size || st.Peer == rank:
		return fmt.Errorf("a message to rank %d of %d", st.Peer, s.Size)
	case first < 0 || count < 0 || first > s.Chunks || count > s.Chunks-first:
		return fmt.Errorf("a message of %d chunks from chunk %d on, of %d", count, first, s.Chunks)
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
