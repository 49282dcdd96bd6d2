package cost

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"gogcl.dev/methods/schedule"
)

// PriceTraffic is [Model.Price] of the schedule that a traffic describes. A round that comes many times is priced once,
// and on a torus, if processors take no time, one line of replicas stands for others that have the same messages.
// Chunks are of equal size here, if need be of a fraction of a byte, where in a schedule a message may be a byte longer
// or shorter than another. If bytes is a multiple of t.Chunks the prices are the same: sums of bytes are exact in any
// order, up to 1<<53 bytes on a cable or at a processor in a round. Errors: those of Price, of
// [schedule.Traffic.Check] and of [schedule.Traffic.Messages].
func (m Model) PriceTraffic(t *schedule.Traffic, members []int, bytes int64) (Estimate, error) {
	e, _, err := m.PriceWithin(t, members, bytes, math.MaxInt64)
	return e, err
}

// PriceWithin is PriceTraffic for who compares: it ends early, with false and no estimate, where the time is sure to be
// above a limit.
func (m Model) PriceWithin(t *schedule.Traffic, members []int, bytes int64, limit time.Duration) (Estimate, bool,
	error) {
	if err := t.Check(); err != nil {
		return Estimate{}, false, fmt.Errorf("cost: %w", err)
	}
	if err := m.check(t.Size, members, bytes); err != nil {
		return Estimate{}, false, err
	}
	most := math.Inf(1)
	if limit < math.MaxInt64 {
		most = float64(limit.Seconds()) + 1e-9 // times are rounded to nanoseconds
	}
	if limit < m.least(t, bytes) {
		return Estimate{}, false, nil
	}
	p := trafficPrice{model: m, t: t, members: members, bytes: bytes, network: newRound(m, t.Size),
		symmetry: newAxes(m, members), sent: make([]int64, t.Size)}
	var e Estimate
	seconds := 0.0
	for i, alike := range t.Rounds {
		one, within, err := p.round(i, most-seconds)
		if err != nil || !within {
			return Estimate{}, false, err
		}
		for range alike.Times { // one by one, to round as Price does
			seconds += one
		}
		if seconds > most {
			return Estimate{}, false, nil
		}
		e.Rounds += alike.Times
	}
	e.SentBytes = sentBytes(bytes, saturated(p.most, slices.Max(p.sent)), t.Chunks)
	e.Time = duration(seconds)
	return e, e.Time <= limit, nil
}

// trafficPrice prices one round of a traffic after the other.
type trafficPrice struct {
	model    Model
	t        *schedule.Traffic
	members  []int
	bytes    int64
	network  *round
	symmetry axes
	messages []schedule.Message
	sent     []int64 // chunks, by rank
	most     int64   // chunks that all ranks send in rounds of which only a part is looked at
	everyone *everyone
}

// round is how long one of Rounds[i] takes, or false if it is longer than a limit.
func (p *trafficPrice) round(i int, limit float64) (float64, bool, error) {
	t, alike := p.t, p.t.Rounds[i]
	if len(alike.Flows) == 1 && len(alike.Listed) == 0 && alike.Flows[0].All {
		if seconds, done, err := p.toAll(alike, limit); done || err != nil {
			return seconds, seconds <= limit, err
		}
	}
	var along []schedule.Flow
	if len(alike.Listed) == 0 {
		along = p.symmetry.flows(alike.Flows)
	}
	var err error
	if along == nil {
		p.messages, err = t.Messages(p.messages[:0], i)
	} else {
		part := schedule.Traffic{Size: t.Size, Chunks: t.Chunks, Rounds: []schedule.Alike{{Flows: along}}}
		p.messages, err = part.Messages(p.messages[:0], 0)
	}
	if err != nil {
		return 0, false, fmt.Errorf("cost: %w", err)
	}
	p.network.next()
	for j, msg := range p.messages {
		length := fraction(p.bytes, msg.Chunks, t.Chunks)
		if err := p.network.send(msg.From, msg.To, p.members[msg.From], p.members[msg.To], length); err != nil {
			return 0, false, err
		}
		if msg.Fold {
			p.network.fold(msg.To, length)
		}
		if along == nil {
			p.sent[msg.From] = saturated(p.sent[msg.From], int64(msg.Chunks)*int64(alike.Times))
		}
		if j%lookEvery == lookEvery-1 && p.network.seconds() > limit {
			return 0, false, nil
		}
	}
	for _, f := range along {
		p.most = saturated(p.most, int64(f.Chunks)*int64(alike.Times)*int64(max(f.Messages, 1)))
	}
	seconds := p.network.seconds()
	return seconds, seconds <= limit, nil
}

// lookEvery is after how many messages of a round a price looks whether the limit is passed, which takes as long as
// some of them.
const lookEvery = 1 << 13

// least is a time that no price of the traffic is below: of each round that of its longest message on the fastest link
// there is, and what its sender's processor has to do for it. On a network of a program's own, on which a message may
// take no link, it is what the processor has to do.
func (m Model) least(t *schedule.Traffic, bytes int64) time.Duration {
	fastest, latency := math.Inf(1), 0.0
	if ofPackage(m.Network) && m.Network.Links() > 0 {
		fastest, latency = 0, math.Inf(1)
		for number := range m.Network.Links() {
			l := m.Network.Link(number)
			if l.Check() != nil {
				return 0 // which the price finds
			}
			fastest = max(fastest, l.BytesPerSecond*float64(max(l.Cables, 1)))
			latency = min(latency, l.Latency.Seconds())
		}
	}
	seconds := 0.0
	for _, alike := range t.Rounds {
		longest := 0.0
		add := func(chunks, messages, others int) { // on one way, and in all
			longest = max(longest, latency+fraction(bytes, chunks, t.Chunks)*float64(messages)/fastest+
				float64(float64(messages*others)*m.Overhead.Seconds()))
		}
		for _, f := range alike.Flows {
			others := 1
			if f.All {
				others = max(t.Size-2, 1)
			}
			add(f.Chunks, max(f.Messages, 1), others)
		}
		for _, msg := range alike.Listed {
			add(msg.Chunks, 1, 1)
		}
		seconds += float64(longest * float64(alike.Times))
	}
	return duration(seconds * (1 - 1e-9))
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
