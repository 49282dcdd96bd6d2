package cost

import "fmt"

// round is the traffic of one round on a network. It adds up bytes, and makes seconds of them when the round is over.
// Sums of whole bytes below 1<<53 are exact, so that the order of the messages does not show in the last digits.
type round struct {
	model      Model
	places     []int32 // by number of link: the place of its first cable, plus one; 0: no message has taken it yet
	cables     []cable // that messages have taken
	processors []work  // by rank. nil: processors take no time

	number int   // of the round, from 1 on
	used   []int // the cables that messages of the round take, each once

	links, way []int // scratch: the links and the cables of one message
}

// work is what the processor of a rank does in a round.
type work struct {
	messages int     // that it sends or receives
	folded   float64 // bytes
}

// cable is one of a link. bytes and slowest are of the round whose number it has.
type cable struct {
	bytesPerSecond float64
	latency        float64 // seconds
	bundle         *bundle // nil: the link has one cable

	round   int
	bytes   float64 // that it carries
	slowest float64 // seconds: the latency of the message on it with the longest way
}

// bundle is a link of several cables. In the round of its number none of them carries less than floor, and the first
// from ones all carry more.
type bundle struct {
	cables []int32 // the places of those that messages have taken
	count  int     // of all cables

	round int
	floor float64 // bytes
	from  int
}

func newRound(m Model, ranks int) *round {
	r := &round{model: m, places: make([]int32, m.Network.Links()), number: 1}
	if m.Overhead > 0 || m.FoldBytesPerSecond > 0 {
		r.processors = make([]work, ranks)
	}
	return r
}

// next begins a round.
func (r *round) next() {
	r.number++
	r.used = r.used[:0]
	clear(r.processors)
}

// send puts a message from one rank to another, which are replicas a and b, on its way.
func (r *round) send(from, to, a, b int, bytes float64) error {
	var err error
	if r.links, err = r.model.Network.Route(r.links[:0], a, b); err != nil {
		return err
	}
	latency := 0.0
	r.way = r.way[:0]
	if err := r.checkWay(r.links, a, b); err != nil {
		return err
	}
	for _, number := range r.links {
		at := int(r.places[number]) - 1
		c := r.current(at)
		if c.bundle != nil {
			at = r.least(c.bundle)
			c = &r.cables[at]
		}
		latency += c.latency
		c.bytes += bytes
		r.way = append(r.way, at)
	}
	for _, at := range r.way {
		c := &r.cables[at]
		c.slowest = max(c.slowest, latency)
	}
	if r.processors != nil {
		r.processors[from].messages++
		r.processors[to].messages++
	}
	return nil
}

// fold has a rank combine so many bytes with others.
func (r *round) fold(rank int, bytes float64) {
	if r.processors != nil {
		r.processors[rank].folded += bytes
	}
}

// add adds the first cable of a link.
func (r *round) add(number int) error {
	l := r.model.Network.Link(number)
	if err := l.Check(); err != nil {
		return err
	}
	c := cable{bytesPerSecond: l.BytesPerSecond, latency: l.Latency.Seconds()}
	if l.Cables > 1 {
		c.bundle = &bundle{cables: []int32{int32(len(r.cables))}, count: l.Cables}
	}
	r.places[number] = int32(len(r.cables)) + 1
	r.cables = append(r.cables, c)
	return nil
}

// current is a cable in this round.
func (r *round) current(at int) *cable {
	c := &r.cables[at]
	if c.round != r.number {
		c.round, c.bytes, c.slowest = r.number, 0, 0
		r.used = append(r.used, at)
	}
	return c
}

// least is the first of those cables of a link that carry least. A cable is made when a message takes it.
func (r *round) least(b *bundle) int {
	if b.round != r.number {
		b.round, b.floor, b.from = r.number, 0, 0
	}
	for {
		for ; b.from < b.count; b.from++ {
			if b.from == len(b.cables) { // one that is not made carries nothing, which is floor then
				first := r.cables[b.cables[0]]
				b.cables = append(b.cables, int32(len(r.cables)))
				r.cables = append(r.cables, cable{bytesPerSecond: first.bytesPerSecond, latency: first.latency,
					bundle: b})
			}
			if at := int(b.cables[b.from]); r.current(at).bytes == b.floor {
				return at
			}
		}
		b.floor, b.from = r.cables[b.cables[0]].bytes, 0
		for _, at := range b.cables {
			b.floor = min(b.floor, r.cables[at].bytes)
		}
	}
}

// seconds is how long the round takes: the slowest message, and then the processor with most to do. A message takes its
// latency and the time of the busiest of its cables. So the slowest is that with the longest way on some cable.
func (r *round) seconds() float64 {
	longest := 0.0
	for _, at := range r.used {
		c := &r.cables[at]
		longest = max(longest, c.slowest+c.bytes/c.bytesPerSecond)
	}
	processor := 0.0
	for _, w := range r.processors {
		processor = max(processor, r.model.busy(w))
	}
	return longest + processor
}

// busy is how long a processor works, in seconds.
func (m *Model) busy(w work) float64 {
	busy := float64(float64(w.messages) * m.Overhead.Seconds()) // rounded, alike on all processors
	if m.FoldBytesPerSecond > 0 {
		busy += w.folded / m.FoldBytesPerSecond
	}
	return busy
}

// checkWay refuses a way over links that the network does not have, or that cannot be.
func (r *round) checkWay(links []int, a, b int) error {
	for _, number := range links {
		if number < 0 || number >= len(r.places) {
			return fmt.Errorf("cost: from replica %d to replica %d: the route takes link %d of %d", a, b, number,
				len(r.places))
		}
		if r.places[number] == 0 {
			if err := r.add(number); err != nil {
				return fmt.Errorf("cost: from replica %d to replica %d: link %d: %w", a, b, number, err)
			}
		}
	}
	return nil
}
