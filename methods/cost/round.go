package cost

import "fmt"

// round is the traffic of one round on a network.
type round struct {
	model  Model
	places []int32   // by number of link: the place of its first cable, plus one; 0: no message has taken it yet
	cables []cable   // of the links that messages have taken, those of one link side by side
	busy   []float64 // by rank: seconds of the processor. nil: processors take no time

	number int   // of the round, from 1 on
	used   []int // the cables that messages of the round take, each once

	links, way []int // scratch: the links and the cables of one message
}

// cable is one of a link. busy and slowest are of the round whose number it has.
type cable struct {
	bytesPerSecond float64
	latency        float64 // seconds
	bundle         *bundle // nil: the link has one cable

	round   int
	busy    float64 // seconds
	slowest float64 // seconds: the latency of the message on it with the longest way
}

// bundle is a link of several cables. In the round of its number none of them is busy for less than floor, and the
// first from ones are all busy for longer.
type bundle struct {
	first, count int // places in cables

	round int
	floor float64
	from  int
}

func newRound(m Model, ranks int) *round {
	r := &round{model: m, places: make([]int32, m.Network.Links()), number: 1}
	if m.Overhead > 0 || m.FoldBytesPerSecond > 0 {
		r.busy = make([]float64, ranks)
	}
	return r
}

// next begins a round.
func (r *round) next() {
	r.number++
	r.used = r.used[:0]
	clear(r.busy)
}

// send puts a message from one rank to another, which are replicas a and b, on its way.
func (r *round) send(from, to, a, b int, bytes float64) error {
	var err error
	if r.links, err = r.model.Network.Route(r.links[:0], a, b); err != nil {
		return err
	}
	latency := 0.0
	r.way = r.way[:0]
	for _, number := range r.links {
		if number < 0 || number >= len(r.places) {
			return fmt.Errorf("cost: from replica %d to replica %d: the route takes link %d of %d", a, b, number,
				len(r.places))
		}
		if r.places[number] == 0 {
			if err := r.add(number); err != nil {
				return fmt.Errorf("cost: from replica %d to replica %d: link %d: %w", a, b, number, err)
			}
		}
		at := int(r.places[number]) - 1
		c := r.current(at)
		if c.bundle != nil {
			at = r.least(c.bundle)
			c = &r.cables[at]
		}
		latency += c.latency
		c.busy += bytes / c.bytesPerSecond
		r.way = append(r.way, at)
	}
	for _, at := range r.way {
		c := &r.cables[at]
		c.slowest = max(c.slowest, latency)
	}
	if r.busy != nil {
		r.busy[from] += r.model.Overhead.Seconds()
		r.busy[to] += r.model.Overhead.Seconds()
	}
	return nil
}

// fold has a rank combine so many bytes with others.
func (r *round) fold(rank int, bytes float64) {
	if r.model.FoldBytesPerSecond > 0 {
		r.busy[rank] += bytes / r.model.FoldBytesPerSecond
	}
}

// add adds the cables of a link.
func (r *round) add(number int) error {
	l := r.model.Network.Link(number)
	if err := l.check(); err != nil {
		return err
	}
	c := cable{bytesPerSecond: l.BytesPerSecond, latency: l.Latency.Seconds()}
	count := max(l.Cables, 1)
	if count > 1 {
		c.bundle = &bundle{first: len(r.cables), count: count}
	}
	r.places[number] = int32(len(r.cables)) + 1
	for range count {
		r.cables = append(r.cables, c)
	}
	return nil
}

// current is a cable in this round.
func (r *round) current(at int) *cable {
	c := &r.cables[at]
	if c.round != r.number {
		c.round, c.busy, c.slowest = r.number, 0, 0
		r.used = append(r.used, at)
	}
	return c
}

// least is the first of those cables of a link that are busy for the shortest time.
func (r *round) least(b *bundle) int {
	if b.round != r.number {
		b.round, b.floor, b.from = r.number, 0, 0
	}
	for {
		for ; b.from < b.count; b.from++ {
			if at := b.first + b.from; r.current(at).busy == b.floor {
				return at
			}
		}
		b.floor, b.from = r.cables[b.first].busy, 0
		for _, c := range r.cables[b.first : b.first+b.count] {
			b.floor = min(b.floor, c.busy)
		}
	}
}

// seconds is how long the round takes: the slowest message, and then the processor with most to do. A message takes its
// latency and the time of the busiest of its cables. So the slowest is that with the longest way on some cable.
func (r *round) seconds() float64 {
	longest := 0.0
	for _, at := range r.used {
		c := &r.cables[at]
		longest = max(longest, c.slowest+c.busy)
	}
	processor := 0.0
	for _, b := range r.busy {
		processor = max(processor, b)
	}
	return longest + processor
}
