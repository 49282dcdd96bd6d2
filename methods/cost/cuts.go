package cost

import (
	"math"

	"gogcl.dev/methods/schedule"
)

// These bound the work, in nodes.
const (
	mostFlows = 128  // for max-flows
	mostGrown = 1024 // for parts that grow
)

// cuts looks for the worst cut of a layout for a collective.
type cuts struct {
	g          *layout
	collective schedule.Collective
	contract   schedule.Contract
	root       int
	slope      float64 // seconds a byte of the buffer, or of a share: the worst so far
}

func newCuts(g *layout, c schedule.Collective, root int) *cuts {
	return &cuts{g: g, collective: c, contract: c.Contract(), root: root}
}

// region is a part of the nodes.
type region struct {
	ranks   int
	root    bool    // the root is among them
	out, in float64 // bytes a second of the links that lead out, and in
}

// crossing is what has to cross, in buffers or in shares, to where the far ranks are.
func (c *cuts) crossing(near int, root bool) float64 {
	far := c.g.ranks - near
	if near == 0 || far == 0 {
		return 0
	}
	switch k := c.contract; {
	case k.Rooted() && root != (k.Input == schedule.AtRoot):
		return 0 // from the root to the far ranks, or from the near ranks to the root
	case k.Input == schedule.Blocks:
		return float64(near) * float64(far)
	case k.Input == schedule.Own:
		return float64(near)
	case k.Output == schedule.Own:
		return float64(far)
	}
	return 1
}

// look takes a region into account, as either side of a cut.
func (c *cuts) look(r region) {
	c.least(c.crossing(r.ranks, r.root), r.out)
	c.least(c.crossing(c.g.ranks-r.ranks, !r.root), r.in)
}

// least is what has to cross links of a speed.
func (c *cuts) least(crossing, speed float64) {
	if crossing > 0 && speed > 0 { // farthest has found that a way leads there
		c.slope = max(c.slope, crossing/speed)
	}
}

// worst is the slope of the worst cut that it finds.
func (c *cuts) worst() float64 {
	g := c.g
	part := make([]int32, g.nodes)
	for node := range part {
		part[node] = -1
	}
	for _, width := range append(widths(g.ranks), 1) {
		for rank := range g.ranks {
			part[rank] = int32(rank / width)
		}
		c.partition(part)
	}
	if g.parts != nil {
		for part := range g.parts {
			c.partition(part)
		}
	}
	if g.nodes <= mostGrown {
		c.grow()
	}
	if g.nodes <= mostFlows {
		c.flows()
	}
	return c.slope
}

// partition takes the parts of a partition into account, and all together. Every rank is in one.
func (c *cuts) partition(part []int32) {
	regions := make([]region, len(part))
	for node, p := range part[:c.g.ranks] {
		regions[p].ranks++
		regions[p].root = regions[p].root || node == c.root
	}
	for i := range c.g.wires {
		w := &c.g.wires[i]
		from, to := part[w.from], part[w.to]
		if from == to {
			continue
		}
		if from >= 0 {
			regions[from].out += w.speed
		}
		if to >= 0 {
			regions[to].in += w.speed
		}
	}
	for _, r := range regions {
		c.look(r)
	}
	c.together(regions)
}

// together takes what leaves and enters all parts of a partition into account.
func (c *cuts) together(regions []region) {
	if c.collective != schedule.AllReduce {
		return
	}
	parts, out, in := 0, 0.0, 0.0
	for _, r := range regions {
		if r.ranks > 0 {
			parts, out, in = parts+1, out+r.out, in+r.in
		}
	}
	c.least(float64(2*(parts-1)), min(out, in))
}

// grow has each node be a part at first, and makes one of the two parts with the strongest links between them, until
// one is left.
func (c *cuts) grow() {
	g, n := c.g, c.g.nodes
	speeds := make([]float64, n*n) // from one part to another
	for _, w := range g.wires {
		speeds[int(w.from)*n+int(w.to)] += w.speed
	}
	between := func(i, j int) float64 { return speeds[i*n+j] + speeds[j*n+i] }
	parts := make([]region, n) // without ranks and links: none any more, or switches
	gone := make([]bool, n)
	nearest := make([]int, n) // by part: the one with the strongest links, the first of several
	find := func(i int) {
		parts[i].out, parts[i].in, nearest[i] = 0, 0, -1
		for j := range n {
			if j == i || gone[j] {
				continue
			}
			parts[i].out += speeds[i*n+j]
			parts[i].in += speeds[j*n+i]
			if nearest[i] < 0 || between(i, j) > between(i, nearest[i]) {
				nearest[i] = j
			}
		}
	}
	for i := range parts {
		if i < g.ranks {
			parts[i].ranks, parts[i].root = 1, i == c.root
		}
		find(i)
	}
	for left := n; left > 1; left-- {
		a := -1
		for i := range n {
			if !gone[i] && (a < 0 || between(i, nearest[i]) > between(a, nearest[a])) {
				a = i
			}
		}
		b := nearest[a]
		gone[b] = true
		parts[a].ranks, parts[a].root = parts[a].ranks+parts[b].ranks, parts[a].root || parts[b].root
		parts[b] = region{}
		for j := range n {
			if j == a || gone[j] {
				continue
			}
			speeds[a*n+j] += speeds[b*n+j]
			speeds[j*n+a] += speeds[j*n+b]
			// The links to a have become no weaker.
			if nearest[j] == b || nearest[j] != a && between(j, a) > between(j, nearest[j]) {
				nearest[j] = a
			}
		}
		find(a)
		c.look(parts[a])
		c.together(parts)
	}
}

// some are ranks that flows come from or go to.
type some uint8

const (
	everyRank some = iota
	theRoot
	theOthers
)

// maxFlows is a search for the worst cut by max-flows: see newton.
type maxFlows struct {
	sources, sinks some
	back           bool
}

// searches are those of each collective. They may miss the worst cut of an all-to-all.
var searches = [schedule.Barrier][]maxFlows{
	schedule.AllReduce:     {{theRoot, theOthers, false}, {theRoot, theOthers, true}},
	schedule.ReduceScatter: {{everyRank, everyRank, true}},
	schedule.AllGather:     {{everyRank, everyRank, false}},
	schedule.AllToAll:      {{everyRank, everyRank, false}, {everyRank, everyRank, true}},
	schedule.Broadcast:     {{theRoot, theOthers, false}},
	schedule.Reduce:        {{theRoot, theOthers, true}},
	schedule.Gather:        {{theOthers, theRoot, false}},
	schedule.Scatter:       {{theOthers, theRoot, true}},
}

// flows finds the worst cut by max-flows.
func (c *cuts) flows() {
	ranks := [...][]int{theRoot: {c.root}, theOthers: nil}
	for rank := range c.g.ranks {
		ranks[everyRank] = append(ranks[everyRank], rank)
		if rank != c.root {
			ranks[theOthers] = append(ranks[theOthers], rank)
		}
	}
	for _, s := range searches[c.collective] {
		c.newton(ranks[s.sources], ranks[s.sinks], s.back)
	}
}

// newton finds the cut, with one of the sinks on the far side, whose near side has most sources for its links out, or
// in if back: as much as each source can send to each sink at the same time, if what one sends is for all. As long as a
// max-flow from all sources to a sink does not bring as much, its cut is a worse one.
func (c *cuts) newton(sources, sinks []int, back bool) {
	f := newFlow(c.g, sources, back)
	rate := math.Inf(1) // of a source, in bytes a second
	for _, s := range sources {
		sum := 0.0
		for _, i := range f.arcsOf[s] {
			sum += f.arcs[i].speed
		}
		rate = min(rate, sum) // of the cut round one source; what is infinite at all of them is bounded below
	}
	if math.IsInf(rate, 1) || rate == 0 {
		return
	}
	rate *= 2 // so that cuts as good as that one are found too
	const close = 1 - 1e-9
	for _, sink := range sinks {
		for {
			got, near := f.run(rate, sink)
			if got >= rate*float64(len(sources))*close {
				break
			}
			r, inside := region{}, 0
			for node, is := range near[:c.g.nodes] {
				if is && node < c.g.ranks {
					r.ranks++
					r.root = r.root || node == c.root
				}
			}
			for _, s := range sources {
				if near[s] {
					inside++
				}
			}
			for _, w := range c.g.wires {
				switch {
				case near[w.from] && !near[w.to]:
					r.out += w.speed
				case near[w.to] && !near[w.from]:
					r.in += w.speed
				}
			}
			c.look(r)
			leaves := r.out
			if back {
				leaves = r.in
			}
			if next := leaves / float64(max(inside, 1)); next < rate*close {
				rate = next
			} else {
				break
			}
		}
	}
}

// flow is a layout for max-flows from several sources, by Dinic's algorithm.
type flow struct {
	sources []int
	source  int // a node more, which feeds them
	fed     int // its first arc
	speeds  []float64
	arcs    []arc
	arcsOf  [][]int32 // by node
	level   []int32
	next    []int
	queue   []int32
	near    []bool
}

// arc is one direction of a link; the next arc, or the one before if its number is odd, is the other direction.
type arc struct {
	to    int32
	speed float64 // what is left of it
}

func newFlow(g *layout, sources []int, back bool) *flow {
	f := &flow{sources: sources, source: g.nodes, arcsOf: make([][]int32, g.nodes+1), level: make([]int32, g.nodes+1),
		next: make([]int, g.nodes+1), near: make([]bool, g.nodes+1)}
	for _, w := range g.wires {
		from, to := w.from, w.to
		if back {
			from, to = to, from
		}
		f.add(from, to, w.speed)
	}
	f.fed = len(f.arcs)
	for _, s := range sources {
		f.add(int32(f.source), int32(s), 0)
	}
	f.speeds = make([]float64, len(f.arcs))
	for i, a := range f.arcs {
		f.speeds[i] = a.speed
	}
	return f
}

func (f *flow) add(from, to int32, speed float64) {
	f.arcsOf[from] = append(f.arcsOf[from], int32(len(f.arcs)))
	f.arcsOf[to] = append(f.arcsOf[to], int32(len(f.arcs)+1))
	f.arcs = append(f.arcs, arc{to, speed}, arc{from, 0})
}

// run finds the flow to a sink if each source has so much, and the nodes on the near side of its cut.
func (f *flow) run(each float64, sink int) (total float64, near []bool) {
	for i, speed := range f.speeds {
		f.arcs[i].speed = speed
	}
	for i := range f.sources {
		f.arcs[f.fed+2*i].speed = each
	}
	nothing := each * 1e-12 // so that what rounding leaves of a link is no way
	for f.levels(int32(sink), nothing) {
		clear(f.next)
		for {
			got := f.push(int32(f.source), int32(sink), math.Inf(1), nothing)
			if got <= nothing {
				break
			}
			total += got
		}
	}
	for node, level := range f.level {
		f.near[node] = level >= 0
	}
	return total, f.near
}

// levels finds how far nodes are from the source, -1 for those that are not reached, and reports whether the sink is.
func (f *flow) levels(sink int32, nothing float64) bool {
	for i := range f.level {
		f.level[i] = -1
	}
	f.level[f.source] = 0
	f.queue = append(f.queue[:0], int32(f.source))
	for at := 0; at < len(f.queue); at++ {
		node := f.queue[at]
		for _, i := range f.arcsOf[node] {
			if a := &f.arcs[i]; a.speed > nothing && f.level[a.to] < 0 {
				f.level[a.to] = f.level[node] + 1
				f.queue = append(f.queue, a.to)
			}
		}
	}
	return f.level[sink] >= 0
}

// push sends more to the sink along arcs that lead a level on.
func (f *flow) push(node, sink int32, most, nothing float64) float64 {
	if node == sink {
		return most
	}
	for ; f.next[node] < len(f.arcsOf[node]); f.next[node]++ {
		i := f.arcsOf[node][f.next[node]]
		a := &f.arcs[i]
		if a.speed <= nothing || f.level[a.to] != f.level[node]+1 {
			continue
		}
		if got := f.push(a.to, sink, min(most, a.speed), nothing); got > nothing {
			f.arcs[i].speed -= got
			f.arcs[i^1].speed += got
			return got
		}
	}
	return 0
}
