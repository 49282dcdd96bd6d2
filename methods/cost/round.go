package cost

import (
	"fmt"
	"slices"
)

// round is the traffic of one round on a network.
type round struct {
	model  Model
	places []int32   // by number of link: its place in tracks, plus one; 0: no message has taken it yet
	tracks []track   // the links that messages have taken
	cables []cable   // those of all tracks
	busy   []float64 // by rank: seconds of the processor. nil: processors take no time

	number int   // of the round, from 1 on
	used   []int // the cables that messages of the round take, each once

	links, way []int // scratch: the links and the cables of one message
}

// track is a link that a message has taken.
type track struct {
	bytesPerSecond float64
	latency        float64 // seconds
	first, count   int     // places in cables
}

// cable is one of a link. What it says is of the round whose number it has.
type cable struct {
	busy    float64 // seconds
	latency float64 // seconds, of the message on it with the longest way
	round   int
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
		t, err := r.track(number)
		if err != nil {
			return fmt.Errorf("cost: from replica %d to replica %d: %w", a, b, err)
		}
		latency += t.latency
		at := t.first
		c := r.current(at)
		for i := at + 1; i < t.first+t.count; i++ {
			if other := r.current(i); other.busy < c.busy {
				at, c = i, other
			}
		}
		c.busy += bytes / t.bytesPerSecond
		r.way = append(r.way, at)
	}
	for _, at := range r.way {
		c := &r.cables[at]
		c.latency = max(c.latency, latency)
	}
	if r.busy != nil {
		r.busy[from] += r.model.Overhead.Seconds()
		r.busy[to] += r.model.Overhead.Seconds()
	}
	return nil
}

// current is a cable in this round.
func (r *round) current(at int) *cable {
	c := &r.cables[at]
	if c.round != r.number {
		*c = cable{round: r.number}
		r.used = append(r.used, at)
	}
	return c
}

// fold has a rank combine so many bytes with others.
func (r *round) fold(rank int, bytes float64) {
	if r.model.FoldBytesPerSecond > 0 {
		r.busy[rank] += bytes / r.model.FoldBytesPerSecond
	}
}

// track is that of a link.
func (r *round) track(number int) (*track, error) {
	if number < 0 || number >= len(r.places) {
		return nil, fmt.Errorf("the route takes link %d of %d", number, len(r.places))
	}
	if at := r.places[number]; at > 0 {
		return &r.tracks[at-1], nil
	}
	l := r.model.Network.Link(number)
	if err := l.check(); err != nil {
		return nil, fmt.Errorf("link %d: %w", number, err)
	}
	t := track{l.BytesPerSecond, l.Latency.Seconds(), len(r.cables), max(l.Cables, 1)}
	r.tracks = append(r.tracks, t)
	r.cables = slices.Grow(r.cables, t.count)[:t.first+t.count]
	r.places[number] = int32(len(r.tracks))
	return &r.tracks[len(r.tracks)-1], nil
}

// seconds is how long the round takes: the slowest message, and then the processor with most to do. Each message takes
// its latency and the time of the busiest of its cables. The slowest is that of the longest latency on some cable.
func (r *round) seconds() float64 {
	longest := 0.0
	for _, at := range r.used {
		c := &r.cables[at]
		longest = max(longest, c.latency+c.busy)
	}
	processor := 0.0
	for _, b := range r.busy {
		processor = max(processor, b)
	}
	return longest + processor
}
