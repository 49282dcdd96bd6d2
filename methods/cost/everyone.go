package cost

import (
	"cmp"
	"math"
	"slices"

	"gogcl.dev/methods/schedule"
)

// everyone is what messages from every member to every other, all equally long, have links carry. A network counts them
// without looking at each, where it can: n members have n(n-1) of them, on ways of many links.
type everyone struct {
	messages []int64   // by number of link
	slowest  []float64 // seconds: the latency of the message on it with the longest way

	// above reports whether the messages so far take so long that no more need be counted.
	above func() bool
}

// counter is a Network that counts the messages of everyone by itself. from and to are the replicas that send and
// receive, each once. Without an answer it is false.
type counter interface {
	countAll(from, to []int, e *everyone) bool
}

// within is the network that does the work of one.
func within(n Network) Network {
	if m, ok := n.(machine); ok {
		return m.Network
	}
	return n
}

// toAll is how long a round takes in which places send to all others. done is false where the messages have to be
// looked at one by one: where some send and others do not, or the cables of the busiest link carry different numbers,
// and the network does not say which. Above the limit any time is as good.
func (p *trafficPrice) toAll(alike schedule.Alike, limit float64) (seconds float64, done bool, err error) {
	f, n := alike.Flows[0], p.t.Size
	if f.First != 0 || f.Every > 1 || f.Count != 0 && f.Count != n || n < 2 {
		return 0, false, nil
	}
	without := f.Without - 1 // a place, or -1
	if without >= 0 && f.Order > 0 {
		without = p.t.Orders[f.Order-1][without]
	}
	e := p.everyone
	if e == nil || without >= 0 {
		if e, err = p.countAll(without, f, limit); err != nil {
			return 0, false, err
		}
		if e.above() {
			return math.Inf(1), true, nil
		}
	}
	if without < 0 {
		p.everyone = e // an all-reduce comes twice
	}
	processors := p.processors(f, without)
	if seconds, done = p.busiest(e, f, without); !done && seconds+processors > limit {
		return math.Inf(1), true, nil
	}
	if done {
		p.sendAll(alike, without)
	}
	return seconds + processors, done, nil
}

// countAll counts the messages from all members to all but one. It may end early where those of a flow are sure to take
// longer than a limit.
func (p *trafficPrice) countAll(without int, f schedule.Flow, limit float64) (*everyone, error) {
	network := p.model.Network
	e := &everyone{messages: make([]int64, network.Links()), slowest: make([]float64, network.Links())}
	length, copies := fraction(p.bytes, f.Chunks, p.t.Chunks), int64(max(f.Messages, 1))
	e.above = func() bool {
		for number, count := range e.messages {
			if count > 0 {
				l := network.Link(number)
				cables := int64(max(l.Cables, 1))
				carried := float64(float64((count*copies+cables-1)/cables)*length) / l.BytesPerSecond
				if l.Latency.Seconds()+carried > limit {
					return true
				}
			}
		}
		return false
	}
	to := p.members
	if without >= 0 {
		to = append(append([]int(nil), to[:without]...), to[without+1:]...)
	}
	if c, ok := within(network).(counter); ok && c.countAll(p.members, to, e) {
		return e, nil
	}
	latencies := make([]float64, network.Links())
	for number := range latencies {
		latencies[number] = network.Link(number).Latency.Seconds()
	}
	var links []int
	var err error
	for _, a := range p.members {
		for _, b := range to {
			if a == b {
				continue
			}
			if links, err = network.Route(links[:0], a, b); err != nil {
				return nil, err
			}
			if err := p.network.checkWay(links, a, b); err != nil {
				return nil, err
			}
			latency := 0.0
			for _, number := range links {
				latency += latencies[number]
			}
			for _, number := range links {
				e.messages[number]++
				e.slowest[number] = max(e.slowest[number], latency)
			}
		}
	}
	return e, nil
}

// busiest is the time of the link that takes longest. It is no more than a time that this is not below, and false, if
// the cables of that link do not carry equally many messages, and the network does not say which they are.
func (p *trafficPrice) busiest(e *everyone, f schedule.Flow, without int) (seconds float64, known bool) {
	length := fraction(p.bytes, f.Chunks, p.t.Chunks)
	copies := int64(max(f.Messages, 1))
	most := 0.0 // of uneven links
	var uneven []busyLink
	for number, count := range e.messages {
		if count == 0 {
			continue
		}
		l := p.model.Network.Link(number)
		cables := int64(max(l.Cables, 1))
		count *= copies
		carried := float64(float64((count+cables-1)/cables)*length) / l.BytesPerSecond
		busy := e.slowest[number] + carried
		if count%cables == 0 {
			seconds = max(seconds, busy)
			continue
		}
		most = max(most, busy)
		uneven = append(uneven, busyLink{number, l.Latency.Seconds() + carried, busy, carried})
	}
	if most <= seconds {
		return seconds, true
	}
	slices.SortStableFunc(uneven, func(a, b busyLink) int { return cmp.Compare(b.most, a.most) })
	through, ok := within(p.model.Network).(orderer)
	for _, l := range uneven {
		switch {
		case l.most <= seconds:
			return seconds, true
		case !ok || copies > 1:
			return max(seconds, l.least), false
		}
		link := p.model.Network.Link(l.number)
		count, full := 0, e.messages[l.number]%int64(link.Cables)
		slowest := 0.0 // of the cables that carry one message more
		through.through(l.number, p.members, without, func(latency float64) {
			if int64(count%link.Cables) < full {
				slowest = max(slowest, latency)
			}
			count++
		})
		seconds = max(seconds, slowest+l.carried)
	}
	return seconds, true
}

// busyLink is a link whose time is not known for sure.
type busyLink struct {
	number      int
	least, most float64 // seconds
	carried     float64 // seconds of its bytes
}

// orderer is a Network that tells of the messages over a link, in the order in which they take its cables.
type orderer interface {
	// through calls do with the latency of each message over a link, of those from each of the members to all others
	// but the one of a rank, or -1.
	through(link int, members []int, without int, do func(latency float64))
}

// processors is how long the busiest processor works in a round from everyone to all but one.
func (p *trafficPrice) processors(f schedule.Flow, without int) float64 {
	n, copies := p.t.Size, max(f.Messages, 1)
	length := fraction(p.bytes, f.Chunks, p.t.Chunks)
	sends, receives := n-1, n-1
	if without >= 0 {
		sends = n - 2 // of all others, who receive from the one too
	}
	of := func(sends, receives int) float64 {
		w := work{messages: (sends + receives) * copies}
		if f.Fold {
			for range receives * copies { // one by one, to round as Price does
				w.folded += length
			}
		}
		return p.model.busy(w)
	}
	busy := of(sends, receives)
	if without >= 0 {
		busy = max(busy, of(n-1, 0))
	}
	return busy
}

// sendAll notes the chunks that ranks send in a round from everyone to all but one.
func (p *trafficPrice) sendAll(alike schedule.Alike, without int) {
	f := alike.Flows[0]
	for rank := range p.sent {
		to := p.t.Size - 1
		if without >= 0 && rank != without {
			to--
		}
		chunks := int64(f.Chunks) * int64(max(f.Messages, 1))
		for range to {
			p.sent[rank] = saturated(p.sent[rank], chunks*int64(alike.Times))
		}
	}
}

// countAll implements counter: what crosses the link above a node are the messages from the senders below it to the
// receivers that are not, and so back. Those that climb highest are slowest.
func (t *fatTree) countAll(from, to []int, e *everyone) bool {
	senders, receivers := t.counts(from), t.counts(to)
	up := make([]float64, len(t.levels)+1) // by height: the latency of a message that turns there
	for top := range up {
		for height := range top {
			up[top] += t.levels[height].Link.Latency.Seconds()
		}
		for height := top - 1; height >= 0; height-- {
			up[top] += t.levels[height].Link.Latency.Seconds()
		}
	}
	// highest is where the slowest of the messages between a node and those in others turns.
	highest := func(others [][]int64, height, node int) int {
		for top := len(t.levels); top > height; top-- {
			below := t.below[top-1] / t.below[height]
			if others[top][node*t.below[height]/t.below[top]] > others[top-1][node/below] {
				return top
			}
		}
		return 0
	}
	for height := range t.levels {
		for node := range senders[height] {
			s, r := senders[height][node], receivers[height][node]
			if count := s * (int64(len(to)) - r); count > 0 {
				number := t.numbers[height] + 2*node
				e.messages[number], e.slowest[number] = count, up[highest(receivers, height, node)]
			}
			if count := r * (int64(len(from)) - s); count > 0 {
				number := t.numbers[height] + 2*node + 1
				e.messages[number], e.slowest[number] = count, up[highest(senders, height, node)]
			}
		}
	}
	return true
}

// counts is how many of some replicas are below each node, by height.
func (t *fatTree) counts(replicas []int) [][]int64 {
	out := make([][]int64, len(t.below))
	for height, below := range t.below {
		out[height] = make([]int64, t.Replicas()/below)
	}
	for _, replica := range replicas {
		for height, below := range t.below {
			out[height][replica/below]++
		}
	}
	return out
}

// countAll implements counter where all replicas send to all, or to all but one: then all links of a dimension in one
// direction carry equally many messages. Of one that goes hops places in a dimension each link of its way there is one
// of hops, and the other dimensions leave as many such messages as there are replicas on other lines. Without one
// receiver the links on the ways to it carry less, and no more slowly: where each dimension and direction has a link
// that is on none, the busiest link of all is known.
func (t *torus) countAll(from, to []int, e *everyone) bool {
	if len(from) != t.replicas || len(to) < t.replicas-1 {
		return false
	}
	crossed, ok := t.crossed(from, to)
	if !ok {
		return false
	}
	for i, d := range t.dims {
		for down := range 2 {
			count, farthest := 0, 0
			for up := 1; up < d; up++ {
				hops := min(up, d-up)
				if (up > d-up) == (down == 1) {
					count, farthest = count+hops, max(farthest, hops)
				}
			}
			if count == 0 {
				continue
			}
			latency := 0.0 // link by link, to round as a message does
			for j, places := range t.dims {
				hops := places / 2
				if j == i {
					hops = farthest
				}
				for range hops {
					latency += t.links[j].Latency.Seconds()
				}
			}
			for replica := range t.replicas {
				number := (replica*len(t.dims)+i)*2 + down
				e.messages[number], e.slowest[number] = int64(count)*int64(t.replicas/d)-crossed[number], latency
			}
		}
	}
	return true
}

// crossed is how many messages to the replica that is not among the receivers each link would carry, if there is one.
// It is false if a dimension has no link in a direction that carries none of them.
func (t *torus) crossed(from, to []int) ([]int64, bool) {
	crossed := make([]int64, t.Links())
	if len(to) == t.replicas {
		return crossed, true
	}
	without := t.replicas * (t.replicas - 1) / 2 // the sum of all
	for _, replica := range to {
		without -= replica
	}
	var links []int
	for _, replica := range from {
		if replica == without {
			continue
		}
		links, _ = t.Route(links[:0], replica, without) // of ends that exist
		for _, number := range links {
			crossed[number]++
		}
	}
	clear := make([]bool, 2*len(t.dims))
	for number, n := range crossed {
		if kind := number % len(clear); n == 0 {
			clear[kind] = true
		}
	}
	return crossed, !slices.Contains(clear, false)
}

// countAll implements counter: of each sender's shortest ways, the messages over a link are those to the receivers
// behind it.
func (g *graph) countAll(from, to []int, e *everyone) bool {
	receives := make([]bool, len(g.edges))
	for _, replica := range to {
		receives[replica] = true
	}
	latencies := make([]float64, len(g.links))
	for number, l := range g.links {
		latencies[number] = l.Latency.Seconds()
	}
	search := &breadth{}
	behind := make([]int64, len(g.edges)) // receivers at a node and beyond
	far, farthest := make([]float64, len(g.edges)), make([]float64, len(g.edges))
	const lookEvery = 64
	for i, root := range from {
		if i%lookEvery == lookEvery-1 && e.above() {
			return true
		}
		by, order := g.search(root, search).by, search.found
		far[root] = 0
		for _, node := range order[1:] {
			link := by[node]
			far[node] = far[g.begins[link]] + latencies[link]
			behind[node], farthest[node] = 0, 0
		}
		reached := 0
		for i := len(order) - 1; i > 0; i-- {
			node := order[i]
			if receives[node] {
				reached++
				behind[node]++
				farthest[node] = max(farthest[node], far[node])
			}
			link := by[node]
			if before := g.begins[link]; int(before) != root {
				behind[before] += behind[node]
				farthest[before] = max(farthest[before], farthest[node])
			}
			if behind[node] > 0 {
				e.messages[link] += behind[node]
				e.slowest[link] = max(e.slowest[link], farthest[node])
			}
		}
		want := len(to)
		if receives[root] {
			want--
		}
		if reached != want {
			return false // no way leads to one of them, which a route says
		}
	}
	return true
}

// through implements orderer.
func (g *graph) through(link int, members []int, without int, do func(latency float64)) {
	latencies := make([]float64, len(g.links))
	for number, l := range g.links {
		latencies[number] = l.Latency.Seconds()
	}
	search := &breadth{}
	behind, far := make([]bool, len(g.edges)), make([]float64, len(g.edges))
	for rank, root := range members {
		by, order := g.search(root, search).by, search.found
		clear(behind)
		far[root] = 0
		for _, node := range order[1:] {
			before := g.begins[by[node]]
			far[node] = far[before] + latencies[by[node]]
			behind[node] = int(by[node]) == link || behind[before]
		}
		for d := 1; d < len(members); d++ {
			to := (rank + d) % len(members)
			if to != without && behind[members[to]] {
				do(far[members[to]])
			}
		}
	}
}

// countAll implements counter: all that a replica sends inside its domain leaves by one port, and all to others by
// another.
func (p *ports) countAll(from, to []int, e *everyone) bool {
	count := func(replicas, others []int, in int) {
		domains := map[int]int64{} // how many of the others are there
		among := make([]bool, len(p.domains))
		for _, other := range others {
			domains[p.domains[other]]++
			among[other] = true
		}
		for _, replica := range replicas {
			near := domains[p.domains[replica]]
			far := int64(len(others)) - near
			if among[replica] {
				near--
			}
			for kind, n := range map[int]int64{0: near, portsGW: far} {
				number := portsCount*replica + kind + in
				if n > 0 {
					e.messages[number] = n
					e.slowest[number] = p.links[kind].Latency.Seconds() + p.links[kind+portsIn].Latency.Seconds()
				}
			}
		}
	}
	count(from, to, 0)
	count(to, from, portsIn)
	return true
}
