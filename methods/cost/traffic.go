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

// PriceWithin is PriceTraffic for who compares: it ends early, with false, where the time is sure to be above a limit.
// The estimate has then only a Time, which the price is not below. With a limit of 0 that is found without looking at
// all messages.
func (m Model) PriceWithin(t *schedule.Traffic, members []int, bytes int64, limit time.Duration) (Estimate, bool,
	error) {
	if err := t.Check(); err != nil {
		return Estimate{}, false, fmt.Errorf("cost: %w", err)
	}
	if err := m.check(t.Size, members, bytes); err != nil {
		return Estimate{}, false, err
	}
	most, after := math.Inf(1), make([]float64, len(t.Rounds)+1)
	if limit < math.MaxInt64 {
		most = float64(limit.Seconds()) + 1e-9 // times are rounded to nanoseconds
		after = m.least(t, members, bytes)
	}
	least := Estimate{Time: duration(after[0])}
	if limit < least.Time {
		return least, false, nil
	}
	p := trafficPrice{model: m, t: t, members: members, bytes: bytes, network: newRound(m, t.Size),
		symmetry: newAxes(m, members), sent: make([]int64, t.Size)}
	var e Estimate
	seconds := 0.0
	for i, alike := range t.Rounds {
		one, within, err := p.round(i, (most-seconds-after[i+1])/float64(alike.Times)*(1+1e-9))
		if err != nil {
			return Estimate{}, false, err
		}
		if !within {
			return least, false, nil
		}
		for range alike.Times { // one by one, to round as Price does
			seconds += one
		}
		if seconds > most {
			return least, false, nil
		}
		e.Rounds += alike.Times
	}
	e.SentBytes = sentBytes(bytes, saturated(p.most, slices.Max(p.sent)), t.Chunks)
	e.Time = duration(seconds)
	if e.Time > limit {
		return least, false, nil
	}
	return e, true, nil
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
	walked := 0 // links since the last look at the limit
	for _, msg := range p.messages {
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
		if walked += 1 + len(p.network.links); walked > lookEvery+4*len(p.network.used) {
			walked = 0
			if p.network.seconds() > limit {
				return 0, false, nil
			}
		}
	}
	for _, f := range along {
		p.most = saturated(p.most, int64(f.Chunks)*int64(alike.Times)*int64(max(f.Messages, 1)))
	}
	seconds := p.network.seconds()
	return seconds, seconds <= limit, nil
}

// lookEvery is after how many links on the ways of messages a price looks whether the limit is passed, and four times
// as many as carry something in the round, so that to look takes less time than the messages.
const lookEvery = 1 << 13

// least is, for each round, a time in seconds that the price of the rounds from there on is not below, and 0 behind the
// last. A round takes as long as any of its messages would alone, and as any link for those that it carries, of which
// it looks at few, and what the busiest processor has to do at least. Where a message has no way, which the price
// finds, it is 0.
func (m Model) least(t *schedule.Traffic, members []int, bytes int64) []float64 {
	s := sample{model: m, t: t, members: members, bytes: bytes, received: make([]int32, t.Size),
		carried: make([]float64, m.Network.Links())}
	s.part = schedule.Traffic{Size: t.Size, Chunks: t.Chunks, Orders: t.Orders, Rounds: []schedule.Alike{{
		Flows: make([]schedule.Flow, 1)}}}
	after := make([]float64, len(t.Rounds)+1)
	for i, alike := range slices.Backward(t.Rounds) {
		seconds := s.round(&alike) * (1 - 1e-9)
		if s.failed {
			return make([]float64, len(t.Rounds)+1)
		}
		after[i] = after[i+1] + float64(seconds*float64(alike.Times))
	}
	return after
}

// sample looks at some of the messages of rounds.
type sample struct {
	model    Model
	t        *schedule.Traffic
	members  []int
	bytes    int64
	part     schedule.Traffic // scratch: a round of one flow
	messages []schedule.Message
	received []int32   // scratch: by rank, 0 between rounds
	carried  []float64 // scratch: bytes by number of link, 0 between rounds
	touched  []int     // the links that carry some
	links    []int
	failed   bool // a message has no way
}

// round is a time that a round is not below, in seconds.
func (s *sample) round(alike *schedule.Alike) float64 {
	longest, all, most := 0.0, 0, 0 // most: messages of one rank
	for _, f := range alike.Flows {
		copies, senders, others := max(f.Messages, 1), f.Count, 1
		if senders == 0 {
			senders = (s.t.Size-f.First-1)/max(f.Every, 1) + 1
		}
		if f.All {
			others = s.t.Size - 1
			if f.Without > 0 { // which may be one of them
				others--
			}
		}
		all, most = all+senders*others*copies, max(most, others*copies)
		s.some(f, senders)
		for _, msg := range s.messages {
			longest = max(longest, s.alone(msg, copies))
		}
	}
	for i, msg := range alike.Listed {
		if i%(len(alike.Listed)/4+1) == 0 {
			longest = max(longest, s.alone(msg, 1))
		}
		s.received[msg.To]++
		most = max(most, int(s.received[msg.To]))
	}
	for _, msg := range alike.Listed {
		s.received[msg.To] = 0
	}
	for _, number := range s.touched {
		s.carried[number] = 0
	}
	s.touched = s.touched[:0]
	all += len(alike.Listed)
	most = max(most, (2*all+s.t.Size-1)/s.t.Size) // each has two ends
	return longest + float64(float64(most)*s.model.Overhead.Seconds())
}

// some sets messages to the first and the last of a flow of so many senders, or to one from the first if it sends to
// all.
func (s *sample) some(f schedule.Flow, senders int) {
	s.messages = s.messages[:0]
	if f.All {
		from, to := f.First, (f.First+s.t.Size/2)%s.t.Size
		if from == to || to == f.Without-1 {
			return
		}
		if f.Order > 0 {
			from, to = s.t.Orders[f.Order-1][from], s.t.Orders[f.Order-1][to]
		}
		s.messages = append(s.messages, schedule.Message{From: from, To: to, Chunks: f.Chunks})
		return
	}
	f.Messages, f.Count = 1, min(senders, 2)
	f.Every = max(f.Every, 1) * max(senders-1, 1)
	s.part.Rounds[0].Flows[0] = f
	var err error
	s.messages, err = s.part.Messages(s.messages, 0)
	s.failed = s.failed || err != nil
}

// alone is how long so many messages from one rank to another take if there are no others, or longer by what their
// links carry of those before.
func (s *sample) alone(msg schedule.Message, copies int) float64 {
	n := s.model.Network
	var err error
	if s.links, err = n.Route(s.links[:0], s.members[msg.From], s.members[msg.To]); err != nil {
		s.failed = true
		return 0
	}
	length := fraction(s.bytes, msg.Chunks, s.t.Chunks)
	latency, longest, shared := 0.0, 0.0, 0.0
	for _, number := range s.links {
		if number < 0 || number >= n.Links() {
			s.failed = true
			return 0
		}
		l := n.Link(number)
		if l.Check() != nil {
			s.failed = true
			return 0
		}
		cables := max(l.Cables, 1)
		latency += l.Latency.Seconds()
		longest = max(longest, float64(float64((copies+cables-1)/cables)*length)/l.BytesPerSecond)
		s.touched = append(s.touched, number)
		s.carried[number] += float64(float64(copies) * length)
		shared = max(shared, l.Latency.Seconds()+s.carried[number]/(float64(cables)*l.BytesPerSecond))
	}
	return max(latency+longest, shared)
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
