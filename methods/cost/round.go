package cost

import (
	"fmt"
)

// round is the traffic of one round on a network.
type round struct {
	model  Model
	places []int32   // by number of link: its place in tracks, plus one; 0: no message has taken it yet
	tracks []track   // of the links that messages have taken
	load   []float64 // by cable: seconds
	busy   []float64 // by rank: seconds of the processor. nil: processors take no time

	messages []message
	ways     []int32 // the cables of all messages, one after the other
	links    []int   // scratch: one route
}

// track is a link that a message has taken.
type track struct {
	bytesPerSecond float64
	latency        float64 // seconds
	first, cables  int32   // places in load
}

// message is one that is under way.
type message struct {
	latency    float64 // seconds
	begin, end int     // its cables in ways
}

func newRound(m Model, ranks int) *round {
	r := &round{model: m, places: make([]int32, m.Network.Links())}
	if m.Overhead > 0 || m.FoldBytesPerSecond > 0 {
		r.busy = make([]float64, ranks)
	}
	return r
}

// clear ends the round.
func (r *round) clear() {
	clear(r.load)
	clear(r.busy)
	r.messages = r.messages[:0]
	r.ways = r.ways[:0]
}

// send puts a message from one rank to another, which are replicas a and b, on its way.
func (r *round) send(from, to, a, b int, bytes float64) error {
	var err error
	if r.links, err = r.model.Network.Route(r.links[:0], a, b); err != nil {
		return err
	}
	m := message{begin: len(r.ways)}
	for _, number := range r.links {
		t, err := r.track(number)
		if err != nil {
			return fmt.Errorf("cost: from replica %d to replica %d: %w", a, b, err)
		}
		m.latency += t.latency
		cable := t.first
		for c := cable + 1; c < t.first+t.cables; c++ {
			if r.load[c] < r.load[cable] {
				cable = c
			}
		}
		r.load[cable] += bytes / t.bytesPerSecond
		r.ways = append(r.ways, cable)
	}
	m.end = len(r.ways)
	r.messages = append(r.messages, m)
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
	cables := max(l.Cables, 1)
	r.tracks = append(r.tracks, track{l.BytesPerSecond, l.Latency.Seconds(), int32(len(r.load)), int32(cables)})
	r.load = append(r.load, make([]float64, cables)...)
	r.places[number] = int32(len(r.tracks))
	return &r.tracks[len(r.tracks)-1], nil
}

// seconds is how long the round takes: the slowest message, and then the processor with most to do.
func (r *round) seconds() float64 {
	longest := 0.0
	for _, m := range r.messages {
		busy := 0.0
		for _, cable := range r.ways[m.begin:m.end] {
			busy = max(busy, r.load[cable])
		}
		longest = max(longest, m.latency+busy)
	}
	processor := 0.0
	for _, b := range r.busy {
		processor = max(processor, b)
	}
	return longest + processor
}
