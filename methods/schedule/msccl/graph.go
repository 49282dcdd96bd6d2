package msccl

import (
	"fmt"
	"strings"

	"gogcl.dev/methods/schedule"
)

// node is a step, or one half of a step that receives and sends.
type node struct {
	gpu, block, step int
	receives, sends  bool
	peer             int // of a receive or a send; -1: the node is local, or nothing
	fold             bool
	src, dst         area // count 0: the node has none

	before  [3]int // the node before it in its block, the one it depends on, and a receive's send; -1: none
	matched int    // a send's receive
}

// local reports whether the node is a step within a gpu.
func (n *node) local() bool { return !n.receives && !n.sends }

// graph has the steps of a file in an order in which they can happen.
type graph struct {
	*algorithm
	nodes []node
	order []int // of nodes
	at    []int // the place of a node in order

	seen  []int // scratch of search: by node, the number of the search that has seen it
	turn  int
	queue []int
	known []answer // by node: what ordered has found out last
}

// newGraph finds out what waits for what, and checks that the steps have an order that is free of races.
func newGraph(a *algorithm) (*graph, error) {
	g := &graph{algorithm: a}
	first := make([][][]int, len(a.gpus)) // by gpu, block and step: the first node of a step
	for rank := range a.gpus {
		passed := 0
		blocks := a.gpus[rank].blocks
		first[rank] = make([][]int, len(blocks))
		for b := range blocks {
			for s := range blocks[b].steps {
				first[rank][b] = append(first[rank][b], len(g.nodes))
				g.add(rank, b, s, &blocks[b], &passed)
			}
		}
	}
	if err := g.depend(first); err != nil {
		return nil, err
	}
	if err := g.match(); err != nil {
		return nil, err
	}
	if err := g.sort(); err != nil {
		return nil, err
	}
	return g, g.races()
}

// add makes the nodes of a step. passed counts the chunks that have passed through the gpu.
func (g *graph) add(rank, b, s int, in *block, passed *int) {
	st := &in.steps[s]
	n := node{gpu: rank, block: b, step: s, peer: -1, before: [3]int{-1, -1, -1}, matched: -1}
	n.receives, n.fold = st.kind.receives, st.kind.receives && st.kind.src || st.kind.name == "re"
	if st.kind.src {
		n.src = g.area(rank, st.src)
	}
	if st.kind.dst {
		n.dst = g.area(rank, st.dst)
	}
	if s > 0 {
		n.before[0] = len(g.nodes) - 1
	}
	if !st.kind.receives {
		n.sends = st.kind.sends
		if n.sends {
			n.peer = in.send
		}
		g.nodes = append(g.nodes, n)
		return
	}
	n.peer = in.recv
	if st.kind.sends && !st.kind.dst {
		n.dst = area{passing, *passed, n.src.count}
		*passed += n.src.count
	}
	g.nodes = append(g.nodes, n)
	if st.kind.sends {
		g.nodes = append(g.nodes, node{gpu: rank, block: b, step: s, sends: true, peer: in.send, src: n.dst,
			before: [3]int{len(g.nodes) - 1, -1, -1}, matched: -1})
	}
}

// area numbers the chunks of input and output as the schedule does. Where the two are one memory, both are input.
func (g *graph) area(rank int, a area) area {
	a.first += g.offset(rank, a.buf)
	if a.buf == output && g.inPlace {
		a.buf = input
	}
	return a
}

// offset is the number that chunk 0 of a buffer has in the schedule.
func (g *graph) offset(rank int, buf byte) int {
	contract := g.collective.Contract()
	if buf == input && contract.Input == schedule.Own || buf == output && contract.Output == schedule.Own {
		return rank * g.chunks / len(g.gpus)
	}
	return 0
}

// depend resolves depid and deps.
func (g *graph) depend(first [][][]int) error {
	for rank, gpu := range g.gpus {
		for b, block := range gpu.blocks {
			for s, st := range block.steps {
				if st.depBlock < 0 {
					continue
				}
				at := where{st.line, rank, b, s}
				if st.depBlock >= len(gpu.blocks) {
					return at.errorf("depid=\"%d\", and the gpu has %d thread blocks", st.depBlock, len(gpu.blocks))
				}
				steps := gpu.blocks[st.depBlock].steps
				if st.depStep >= len(steps) {
					return at.errorf("deps=\"%d\", and thread block %d has %d steps", st.depStep, st.depBlock,
						len(steps))
				}
				if !steps[st.depStep].hasDep {
					return at.errorf("a dependency on step %d of thread block %d, which has hasdep=\"0\" and so never "+
						"says that it is done; want hasdep=\"1\"", st.depStep, st.depBlock)
				}
				on := first[rank][st.depBlock][st.depStep]
				if steps[st.depStep].kind.receives && steps[st.depStep].kind.sends {
					on++
				}
				g.nodes[first[rank][b][s]].before[1] = on
			}
		}
	}
	return nil
}

// match pairs sends with receives.
func (g *graph) match() error {
	type connection struct{ from, to, channel int }
	type side struct {
		block int
		nodes []int
	}
	sends, receives := map[connection]*side{}, map[connection]*side{}
	var all []connection
	note := func(sides map[connection]*side, c connection, i int, what string) error {
		n := g.nodes[i]
		if sides[c] == nil {
			sides[c] = &side{block: n.block}
			all = append(all, c)
		}
		if sides[c].block != n.block {
			return g.where(i).errorf("thread block %d %s gpu %d over channel %d too, want one thread block for that",
				sides[c].block, what, n.peer, c.channel)
		}
		sides[c].nodes = append(sides[c].nodes, i)
		return nil
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		channel := g.gpus[n.gpu].blocks[n.block].channel
		var err error
		switch {
		case n.receives:
			err = note(receives, connection{n.peer, n.gpu, channel}, i, "receives from")
		case n.sends:
			err = note(sends, connection{n.gpu, n.peer, channel}, i, "sends to")
		}
		if err != nil {
			return err
		}
	}
	for _, c := range all {
		var from, to []int
		if sends[c] != nil {
			from = sends[c].nodes
		}
		if receives[c] != nil {
			to = receives[c].nodes
		}
		for k := range max(len(from), len(to)) {
			switch {
			case k >= len(to):
				return g.where(from[k]).errorf("a send without a receive: gpu %d receives %d times from gpu %d over channel "+
					"%d, and this is send %d", c.to, len(to), c.from, c.channel, k+1)
			case k >= len(from):
				return g.where(to[k]).errorf("a receive without a send: gpu %d sends %d times to gpu %d over channel %d, "+
					"and this is receive %d", c.from, len(from), c.to, c.channel, k+1)
			}
			s, r := &g.nodes[from[k]], &g.nodes[to[k]]
			if s.src.count != r.dst.count {
				return g.where(to[k]).errorf("receives cnt=\"%d\", and %s, whose receive it is, sends cnt=\"%d\"",
					r.dst.count, g.where(from[k]).name(), s.src.count)
			}
			s.matched, r.before[2] = to[k], from[k]
		}
	}
	return nil
}

// where is the step of a node.
func (g *graph) where(i int) where {
	n := &g.nodes[i]
	return where{g.gpus[n.gpu].blocks[n.block].steps[n.step].line, n.gpu, n.block, n.step}
}

// after lists, for each node, those that wait for it.
func (g *graph) after() [][]int {
	out := make([][]int, len(g.nodes))
	for i := range g.nodes {
		for _, b := range g.nodes[i].before {
			if b >= 0 {
				out[b] = append(out[b], i)
			}
		}
	}
	return out
}

// waits is the number of nodes that each node waits for.
func (g *graph) waits() []int {
	out := make([]int, len(g.nodes))
	for i := range g.nodes {
		for _, b := range g.nodes[i].before {
			if b >= 0 {
				out[i]++
			}
		}
	}
	return out
}

// sort puts the nodes into an order in which they can happen.
func (g *graph) sort() error {
	after, waits := g.after(), g.waits()
	for i, n := range waits {
		if n == 0 {
			g.order = append(g.order, i)
		}
	}
	for k := 0; k < len(g.order); k++ {
		for _, i := range after[g.order[k]] {
			if waits[i]--; waits[i] == 0 {
				g.order = append(g.order, i)
			}
		}
	}
	if len(g.order) < len(g.nodes) {
		return g.circle(waits)
	}
	g.at = make([]int, len(g.nodes))
	for k, i := range g.order {
		g.at[i] = k
	}
	return nil
}

// circle is the error of nodes that wait for each other.
func (g *graph) circle(waits []int) error {
	i := 0
	for waits[i] == 0 {
		i++
	}
	met := map[int]bool{}
	blocker := func(i int) int {
		for _, b := range g.nodes[i].before {
			if b >= 0 && waits[b] > 0 {
				return b
			}
		}
		return -1 // no node that still waits lacks one
	}
	for !met[i] {
		met[i] = true
		i = blocker(i)
	}
	const most = 8
	var names []string
	begin := i
	for i = blocker(begin); i != begin && len(names) < most; i = blocker(i) {
		if name := g.where(i).name(); len(names) == 0 || names[len(names)-1] != name {
			names = append(names, name)
		}
	}
	if i != begin {
		names = append(names, "others")
	}
	own := g.where(begin).name()
	if len(names) == 0 || names[len(names)-1] != own {
		names = append(names, own)
	}
	return g.where(begin).errorf("deadlock: it waits for %s", strings.Join(names, ", which waits for "))
}

// location is a chunk of a gpu.
type location struct {
	buf   byte
	chunk int
}

// races finds two nodes that use a chunk, one of which writes it, in an order that nothing settles.
func (g *graph) races() error {
	type history struct {
		writer  int
		readers []int
	}
	used := make([]map[location]*history, len(g.gpus))
	for i := range used {
		used[i] = map[location]*history{}
	}
	for _, i := range g.order {
		n := &g.nodes[i]
		use := func(a area, writes bool) error {
			for k := range a.count {
				l := location{a.buf, a.first + k}
				h := used[n.gpu][l]
				if h == nil {
					h = &history{writer: -1}
					used[n.gpu][l] = h
				}
				earlier := []int{h.writer}
				if writes {
					earlier = append(earlier, h.readers...)
				}
				for _, e := range earlier {
					if e >= 0 && e != i && !g.ordered(e, i) {
						return g.where(i).errorf("it and thread block %d step %d both use chunk %s, one of them writes it, "+
							"and nothing says which is first; want a dependency (depid, deps)", g.nodes[e].block,
							g.nodes[e].step, g.chunk(n.gpu, l))
					}
				}
				if writes {
					h.writer, h.readers = i, h.readers[:0]
				} else {
					h.readers = append(h.readers, i)
				}
			}
			return nil
		}
		if err := use(n.src, false); err != nil {
			return err
		}
		if err := use(n.dst, true); err != nil {
			return err
		}
	}
	return nil
}

// chunk is a chunk's name in the format.
func (g *graph) chunk(rank int, l location) string {
	if g.inPlace && g.offset(rank, l.buf) > 0 {
		l.buf = output // the larger of the two, which are one memory
	}
	return fmt.Sprintf("%c[%d]", l.buf, l.chunk-g.offset(rank, l.buf))
}

// answer is whether a node is over before node other-1 begins; of an other of 0 it is none.
type answer struct {
	other int
	yes   bool
}

// ordered reports whether node a is over before node b begins. Node a stands before b in the order. Two nodes may share
// thousands of chunks, so an answer is kept until a is compared with another node.
func (g *graph) ordered(a, b int) bool {
	if g.known == nil {
		g.known = make([]answer, len(g.nodes))
	}
	if g.known[a].other != b+1 {
		g.known[a] = answer{b + 1, g.search(a, b)}
	}
	return g.known[a].yes
}

// search is ordered without memory.
func (g *graph) search(a, b int) bool {
	if na, nb := &g.nodes[a], &g.nodes[b]; na.gpu == nb.gpu && na.block == nb.block {
		return true
	}
	if g.seen == nil {
		g.seen = make([]int, len(g.nodes))
	}
	g.turn++
	g.queue = append(g.queue[:0], b)
	for len(g.queue) > 0 {
		i := g.queue[len(g.queue)-1]
		g.queue = g.queue[:len(g.queue)-1]
		for _, p := range g.nodes[i].before {
			switch {
			case p == a:
				return true
			case p >= 0 && g.at[p] > g.at[a] && g.seen[p] != g.turn:
				g.seen[p] = g.turn
				g.queue = append(g.queue, p)
			}
		}
	}
	return false
}
