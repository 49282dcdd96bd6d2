package cost

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gogcl.dev/methods/schedule"
)

// PriceTraffic is [Model.Price] of the schedule that a traffic describes. A round that comes many times is priced once,
// and on a torus, if processors take no time, one line of replicas stands for others that have the same messages.
// Chunks are of equal size here, if need be of a fraction of a byte, where in a schedule a message may be a byte longer
// or shorter than another. If bytes is a multiple of t.Chunks the prices are the same: sums of bytes are exact in any
// order, up to 1<<53 bytes on a cable or at a processor in a round. Errors: those of Price, of
// [schedule.Traffic.Check] and of [schedule.Traffic.Messages].
func (m Model) PriceTraffic(t *schedule.Traffic, members []int, bytes int64) (Estimate, error) {
	if err := t.Check(); err != nil {
		return Estimate{}, fmt.Errorf("cost: %w", err)
	}
	if err := m.check(t.Size, members, bytes); err != nil {
		return Estimate{}, err
	}
	network := newRound(m, t.Size)
	var e Estimate
	symmetry := newAxes(m, members)
	var messages []schedule.Message
	sent := make([]int64, t.Size) // chunks
	most := int64(0)              // chunks that all ranks send in rounds of which only a part is looked at
	seconds := 0.0
	for i, alike := range t.Rounds {
		var err error
		along := symmetry.flows(alike.Flows)
		if along == nil {
			messages, err = t.Messages(messages[:0], i)
		} else {
			part := schedule.Traffic{Size: t.Size, Chunks: t.Chunks, Rounds: []schedule.Alike{{Flows: along}}}
			messages, err = part.Messages(messages[:0], 0)
		}
		if err != nil {
			return Estimate{}, fmt.Errorf("cost: %w", err)
		}
		network.next()
		for _, msg := range messages {
			length := fraction(bytes, msg.Chunks, t.Chunks)
			if err := network.send(msg.From, msg.To, members[msg.From], members[msg.To], length); err != nil {
				return Estimate{}, err
			}
			if msg.Fold {
				network.fold(msg.To, length)
			}
			if along == nil {
				sent[msg.From] = saturated(sent[msg.From], int64(msg.Chunks)*int64(alike.Times))
			}
		}
		for _, f := range along {
			most = saturated(most, int64(f.Chunks)*int64(alike.Times))
		}
		one := network.seconds()
		for range alike.Times { // one by one, to round as Price does
			seconds += one
		}
		e.Rounds += alike.Times
	}
	e.SentBytes = sentBytes(bytes, saturated(most, slices.Max(sent)), t.Chunks)
	e.Time = duration(seconds)
	return e, nil
}

// fraction is bytes*n/k. n is at most k.
func fraction(bytes int64, n, k int) float64 {
	hi, lo := bits.Mul64(uint64(bytes), uint64(n))
	whole, rest := bits.Div64(hi, lo, uint64(k))
	if rest == 0 {
		return float64(whole)
	}
	return float64(whole) + float64(rest)/float64(k)
}

// sentBytes is bytes*n/k, rounded up, or the greatest number if that is more.
func sentBytes(bytes, n int64, k int) int64 {
	hi, lo := bits.Mul64(uint64(bytes), uint64(n))
	if hi >= uint64(k) {
		return math.MaxInt64
	}
	whole, rest := bits.Div64(hi, lo, uint64(k))
	if rest > 0 {
		whole++
	}
	return int64(min(whole, math.MaxInt64))
}
