package cost

import (
	"cmp"
	"container/heap"
	"fmt"
	"math"
	"slices"

	"gogcl.dev/methods/schedule"
)

// wire is a link of a plan.
type wire struct {
	from, to int32
	speed    float64 // bytes a second of all cables; may be infinite
	latency  float64 // seconds
}

// layout is a network as nodes and the links between them. Each message that the network has takes a way in it, and
// other ways may lead there too.
type layout struct {
	nodes int // the members are the first, by rank
	ranks int
	wires []wire
	out   [][]int32 // by node: its wires out
	in    [][]int32 // by node: its wires in

	// parts are partitions that the network suggests, each as the part of every node, -1 for a switch of none.
	parts func(yield func(part []int32) bool)
}

// mostRouted bounds the members of a network of a program's own.
const mostRouted = 512

// plan lays out a network. Nodes that are not members are behind the members.
func plan(n Network, members []int) (*layout, error) {
	b := &drawing{layout: layout{ranks: len(members)}, links: n}
	b.rankOf = make([]int32, n.Replicas())
	for i := range b.rankOf {
		b.rankOf[i] = -1
	}
	for rank, replica := range members {
		b.rankOf[replica] = int32(rank)
	}
	next := len(members)
	for i := range b.rankOf {
		if b.rankOf[i] < 0 {
			b.rankOf[i] = int32(next)
			next++
		}
	}
	b.nodes = next
	if of, ok := n.(machine); ok {
		n = of.Network
	}
	switch n := n.(type) {
	case *torus:
		b.torus(n)
	case *fatTree:
		b.fatTree(n)
	case *ports:
		b.ports(n)
	case *graph:
		b.graph(n)
	case Graph:
		b.graph(n.graph)
	default:
		if len(members) > mostRouted {
			return nil, fmt.Errorf("cost: a bound of %d members of a network of the program's own, want at most %d",
				len(members), mostRouted)
		}
		if err := b.routes(n, members); err != nil {
			return nil, err
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	b.out, b.in = make([][]int32, b.nodes), make([][]int32, b.nodes)
	for i, w := range b.wires {
		b.out[w.from] = append(b.out[w.from], int32(i))
		b.in[w.to] = append(b.in[w.to], int32(i))
	}
	return &b.layout, nil
}

// drawing is a layout in the making.
type drawing struct {
	layout
	links  Network
	rankOf []int32 // by replica: its node
	err    error
}

// join adds a link of the network.
func (b *drawing) join(from, to int32, number int) {
	l := b.links.Link(number)
	if err := l.Check(); err != nil {
		b.err = cmp.Or(b.err, fmt.Errorf("cost: link %d: %w", number, err))
		return
	}
	b.wires = append(b.wires, wire{from, to, l.BytesPerSecond * float64(max(l.Cables, 1)), l.Latency.Seconds()})
}

// free joins two nodes by what is no link.
func (b *drawing) free(from, to int32) {
	b.wires = append(b.wires, wire{from, to, math.Inf(1), 0})
}

// node adds a switch.
func (b *drawing) node() int32 {
	b.nodes++
	return int32(b.nodes - 1)
}

// torus has slabs of each dimension and tori of some of them. In a dimension of two places no message takes a link
// down.
func (b *drawing) torus(t *torus) {
	stride := 1
	for i, d := range t.dims {
		for at := range t.replicas {
			a := at / stride % d
			up := at + ((a+1)%d-a)*stride
			number := 2 * (at*len(t.dims) + i)
			if d > 1 {
				b.join(b.rankOf[at], b.rankOf[up], number)
			}
			if d > 2 {
				b.join(b.rankOf[up], b.rankOf[at], 2*(up*len(t.dims)+i)+1)
			}
		}
		stride *= d
	}
	b.parts = func(yield func([]int32) bool) {
		part := make([]int32, b.nodes)
		stride := 1
		for _, d := range t.dims {
			for _, width := range widths(d) {
				for at, node := range b.rankOf {
					part[node] = int32(at / stride % d / width)
				}
				if !yield(part) {
					return
				}
			}
			stride *= d
		}
		for some := 1; some < 1<<min(len(t.dims), 6); some++ {
			for at, node := range b.rankOf {
				place, stride := 0, 1
				for i, d := range t.dims {
					if some>>i&1 != 0 {
						place = place*d + at/stride%d
					}
					stride *= d
				}
				part[node] = int32(place)
			}
			if !yield(part) {
				return
			}
		}
	}
}

// widths are those of the parts into which so many places in a row are cut: powers of two, and halves.
func widths(places int) []int {
	var out []int
	for w := 1; w < places; w *= 2 {
		out = append(out, w)
	}
	if half := (places + 1) / 2; half < places && !slices.Contains(out, half) {
		out = append(out, half)
	}
	return out
}

// fatTree has the subtrees of each height.
func (b *drawing) fatTree(t *fatTree) {
	nodes := make([][]int32, len(t.levels)+1) // by height
	nodes[0] = b.rankOf
	for height := range t.levels {
		for range t.Replicas() / t.below[height+1] {
			nodes[height+1] = append(nodes[height+1], b.node())
		}
		for i, node := range nodes[height] {
			above := nodes[height+1][i/t.levels[height].Children]
			b.join(node, above, t.numbers[height]+2*i)
			b.join(above, node, t.numbers[height]+2*i+1)
		}
	}
	b.parts = func(yield func([]int32) bool) {
		part := make([]int32, b.nodes)
		for height := 1; height < len(t.levels); height++ {
			for h, level := range nodes {
				for i, node := range level {
					part[node] = -1
					if h <= height {
						part[node] = int32(i / (t.below[height] / t.below[h]))
					}
				}
			}
			if !yield(part) {
				return
			}
		}
	}
}

// ports has a switch for each domain, and of each domain one where what leaves it goes, and one where what comes to it
// comes from. With many domains these are one.
func (b *drawing) ports(p *ports) {
	const mostDomains = 64
	domains := slices.Max(p.domains) + 1
	inside, leaving, coming := make([]int32, domains), make([]int32, domains), make([]int32, domains)
	for d := range domains {
		inside[d] = b.node()
	}
	switch {
	case domains == 1:
	case domains > mostDomains:
		one := b.node()
		for d := range domains {
			leaving[d], coming[d] = one, one
		}
	default:
		for d := range domains {
			leaving[d], coming[d] = b.node(), b.node()
		}
		for from := range domains {
			for to := range domains {
				if from != to {
					b.free(leaving[from], coming[to])
				}
			}
		}
	}
	for replica, d := range p.domains {
		node := b.rankOf[replica]
		b.join(node, inside[d], portsCount*replica)
		b.join(inside[d], node, portsCount*replica+portsIn)
		if domains > 1 {
			b.join(node, leaving[d], portsCount*replica+portsGW)
			b.join(coming[d], node, portsCount*replica+portsGW+portsIn)
		}
	}
	b.parts = func(yield func([]int32) bool) {
		part := make([]int32, b.nodes)
		for node := range part {
			part[node] = -1
		}
		for replica, d := range p.domains {
			part[b.rankOf[replica]] = int32(d)
		}
		for d := range domains {
			part[inside[d]] = int32(d)
		}
		yield(part)
	}
}

func (b *drawing) graph(g *graph) {
	switches := make([]int32, len(g.edges)-g.replicas)
	for i := range switches {
		switches[i] = b.node()
	}
	nodes := append(slices.Clone(b.rankOf), switches...)
	for from, edges := range g.edges {
		for _, e := range edges {
			b.join(nodes[from], nodes[e.to], int(e.link))
		}
	}
}

// routes lays out a network of which no more is known than its routes: the end of a link is the beginning of the next
// one on some route.
func (b *drawing) routes(n Network, members []int) error {
	// The ends of links are 0, 1, 2, ..., after the nodes: two of each. Those that are one have one root.
	same := make([]int32, b.nodes)
	for i := range same {
		same[i] = int32(i)
	}
	root := func(i int32) int32 {
		for same[i] != i {
			same[i] = same[same[i]]
			i = same[i]
		}
		return i
	}
	unite := func(i, j int32) {
		i, j = root(i), root(j)
		same[max(i, j)] = min(i, j)
	}
	first := map[int]int32{} // by link: its first end
	var numbers []int
	var way []int
	for rank, from := range members {
		for other, to := range members {
			if rank == other {
				continue
			}
			var err error
			if way, err = n.Route(way[:0], from, to); err != nil {
				continue // farthest says which ranks no way connects
			}
			if len(way) == 0 { // nothing is in the message's way
				b.free(int32(rank), int32(other))
				continue
			}
			at := int32(rank)
			for _, number := range way {
				if number < 0 || number >= n.Links() {
					return fmt.Errorf("cost: from replica %d to replica %d: the route takes link %d of %d", from, to, number,
						n.Links())
				}
				end, ok := first[number]
				if !ok {
					end = int32(len(same))
					first[number] = end
					numbers = append(numbers, number)
					same = append(same, end, end+1)
				}
				unite(at, end)
				at = end + 1
			}
			unite(at, int32(other))
		}
	}
	nodes := map[int32]int32{}
	for i := range int32(b.nodes) {
		nodes[i] = i
		if one := root(i); one != i { // a link ends at both, on different routes
			b.free(i, one)
			b.free(one, i)
		}
	}
	number := func(end int32) int32 {
		end = root(end)
		if _, ok := nodes[end]; !ok {
			nodes[end] = b.node()
		}
		return nodes[end]
	}
	for _, link := range numbers {
		b.join(number(first[link]), number(first[link]+1), link)
	}
	return nil
}

// leastLatency is a latency that no message is below: of a link from a rank to another, or of one from a rank to
// anything else and one from there.
func (g *layout) leastLatency() float64 {
	direct, out, in := math.Inf(1), math.Inf(1), math.Inf(1)
	for _, w := range g.wires {
		from, to := int(w.from) < g.ranks, int(w.to) < g.ranks
		switch {
		case from && to:
			direct = min(direct, w.latency)
		case from:
			out = min(out, w.latency)
		case to:
			in = min(in, w.latency)
		}
	}
	if least := min(direct, out+in); !math.IsInf(least, 1) {
		return least
	}
	return 0
}

// mostSources bounds the ranks from which all latencies are found.
const mostSources = 256

// farthest is the longest of the least latencies between ranks of which one has data of the other. An error says that
// no way leads from one to the other.
func (g *layout) farthest(c schedule.Contract, root int) (float64, error) {
	search := newSearch(g.nodes)
	look := func(rank int, back bool) (far int, seconds float64, err error) {
		latency := search.from(g, int32(rank), back)
		for other := range g.ranks {
			if math.IsInf(latency[other], 1) {
				from, to := rank, other
				if back {
					from, to = other, rank
				}
				return 0, 0, fmt.Errorf("cost: no way leads from rank %d to rank %d", from, to)
			}
			if latency[other] > seconds {
				far, seconds = other, latency[other]
			}
		}
		return far, seconds, nil
	}
	if c.Rooted() {
		_, seconds, err := look(root, c.Output == schedule.AtRoot)
		return seconds, err
	}
	longest := 0.0
	if g.ranks <= mostSources {
		for rank := range g.ranks {
			_, seconds, err := look(rank, false)
			if err != nil {
				return 0, err
			}
			longest = max(longest, seconds)
		}
		return longest, nil
	}
	if _, _, err := look(0, true); err != nil {
		return 0, err
	}
	const tries = 8
	rank := 0
	for i := range tries {
		far, seconds, err := look(rank, false)
		if err != nil {
			return 0, err
		}
		longest = max(longest, seconds)
		rank = far
		if i%2 != 0 {
			rank = (i + 1) * g.ranks / tries % g.ranks
		}
	}
	return longest, nil
}

// search finds the least latencies from a node, as Dijkstra does.
type search struct {
	seconds []float64
	queue   []visit
}

type visit struct {
	seconds float64
	node    int32
}

func newSearch(nodes int) *search { return &search{seconds: make([]float64, nodes)} }

func (s *search) Len() int           { return len(s.queue) }
func (s *search) Less(i, j int) bool { return s.queue[i].seconds < s.queue[j].seconds }
func (s *search) Swap(i, j int)      { s.queue[i], s.queue[j] = s.queue[j], s.queue[i] }
func (s *search) Push(x any)         { s.queue = append(s.queue, x.(visit)) }
func (s *search) Pop() any {
	last := s.queue[len(s.queue)-1]
	s.queue = s.queue[:len(s.queue)-1]
	return last
}

// from returns the latencies from a node to all, or back from all, infinite where no way leads. They are its own until
// the next search.
func (s *search) from(g *layout, node int32, back bool) []float64 {
	for i := range s.seconds {
		s.seconds[i] = math.Inf(1)
	}
	s.seconds[node] = 0
	s.queue = append(s.queue[:0], visit{0, node})
	for len(s.queue) > 0 {
		v := heap.Pop(s).(visit)
		if v.seconds > s.seconds[v.node] {
			continue
		}
		next := g.out[v.node]
		if back {
			next = g.in[v.node]
		}
		for _, i := range next {
			w := &g.wires[i]
			to := w.to
			if back {
				to = w.from
			}
			if t := v.seconds + w.latency; t < s.seconds[to] {
				s.seconds[to] = t
				heap.Push(s, visit{t, to})
			}
		}
	}
	return s.seconds
}
