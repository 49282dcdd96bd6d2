package msccl

import (
	"container/heap"

	"gogcl.dev/methods/schedule"
)

// home is where the data of a chunk lies in the schedule.
type home struct {
	buf    schedule.Buffer
	slot   int
	base   int // of the slot
	number int
}

// goesOn reports whether b lies behind a, so that one span has both.
func (a home) goesOn(b home) bool {
	return a.buf == b.buf && a.slot == b.slot && a.base == b.base && a.number+1 == b.number
}

// span is count chunks from a home on.
func (a home) span(count int) schedule.Span {
	switch a.buf {
	case schedule.Input:
		return schedule.In(a.number, count)
	case schedule.Output:
		return schedule.Out(a.number, count)
	}
	return schedule.Part(a.slot, a.base, a.number, count)
}

// cell is what is known of a chunk of the format.
type cell struct {
	home      home
	holds     bool  // something was written, or lies there from the beginning
	readMoves int   // the first round in which moves may read it
	readThen  int   // the first round in which local steps may read it
	fold      *fold // the fold that wrote it, if nobody has read it since
	reads     int   // those to come
	pending   []*message
}

// memory is a chunk's room in the schedule: the last rounds in which it was used, -1 for none.
type memory struct {
	sent, readMoves, readThen, wroteMoves, wroteThen int
}

// address is a chunk of memory. Input and Output are one buffer, unless they are apart.
type address struct {
	buf         schedule.Buffer
	slot, chunk int
}

// fold is steps of a round with one destination: a receive, and those that go on with it.
type fold struct {
	round int
	dst   schedule.Span
	links []link
}

// link is a step of a fold, and the send that it meets.
type link struct {
	step schedule.Step
	from int           // -1: a local step
	send schedule.Step // of from
}

// message is a send that has begun and whose receive has no round yet.
type message struct {
	gpu   int
	at    []location
	moved []home // copies in scratch, if the places have been overwritten
	ready int    // the first round in which the copies may be sent
}

// round is what a rank does in one.
type round struct {
	folds []*fold
	then  []schedule.Step
}

// loan is a slot for data on its way.
type loan struct {
	slot int
	free int // the first round in which it may be written again
}

// rank is the state of one.
type rank struct {
	cells   map[location]*cell
	memory  map[address]*memory
	rounds  []round
	regions []region

	slots  int              // in use
	slotOf map[location]int // by what is in them: the first chunk of a region, a chunk; chunk -1 of input or output
	loans  []loan
	lowest map[int]int // by slot whose base is not settled: the lowest number there
}

// placer puts the nodes of a graph into rounds.
type placer struct {
	*graph
	contract schedule.Contract
	ranks    []rank
	messages map[int]*message // by the receive's node
}

// place makes the schedule of a graph. It is an error if that has too many rounds.
func place(g *graph) (*schedule.Schedule, error) {
	p := &placer{graph: g, contract: g.collective.Contract(), messages: map[int]*message{}}
	for _, regions := range g.regions() {
		p.ranks = append(p.ranks, rank{cells: map[location]*cell{}, memory: map[address]*memory{}, regions: regions,
			slotOf: map[location]int{}, lowest: map[int]int{}})
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		for k := range n.src.count {
			p.cell(n.gpu, location{n.src.buf, n.src.first + k}).reads++
		}
		if n.fold && n.local() {
			for _, l := range n.dst.locations() {
				p.cell(n.gpu, l).reads++
			}
		}
	}
	p.run()
	return p.schedule()
}

// byOrder is a heap of nodes.
type byOrder struct{ nodes, at []int }

func (h *byOrder) Len() int           { return len(h.nodes) }
func (h *byOrder) Less(i, j int) bool { return h.at[h.nodes[i]] < h.at[h.nodes[j]] }
func (h *byOrder) Swap(i, j int)      { h.nodes[i], h.nodes[j] = h.nodes[j], h.nodes[i] }
func (h *byOrder) Push(x any)         { h.nodes = append(h.nodes, x.(int)) }
func (h *byOrder) Pop() any {
	last := len(h.nodes) - 1
	x := h.nodes[last]
	h.nodes = h.nodes[:last]
	return x
}

// run places one node after the other. A node that overwrites what a send has yet to read waits as long as there are
// others. If there are none, the data is copied for the send.
func (p *placer) run() {
	after, waits := p.after(), p.waits()
	ready, late := &byOrder{at: p.at}, &byOrder{at: p.at}
	for i, n := range waits {
		if n == 0 {
			heap.Push(ready, i)
		}
	}
	for ready.Len()+late.Len() > 0 {
		var i int
		if ready.Len() > 0 {
			if i = heap.Pop(ready).(int); p.blocked(i) {
				heap.Push(late, i)
				continue
			}
		} else {
			i = heap.Pop(late).(int)
			p.release(i)
		}
		placed := p.node(i)
		for _, next := range after[i] {
			if waits[next]--; waits[next] == 0 {
				heap.Push(ready, next)
			}
		}
		if placed && late.Len() > 0 { // a message is no longer pending: nodes that were late may not be
			ready.nodes = append(ready.nodes, late.nodes...)
			late.nodes = late.nodes[:0]
			heap.Init(ready)
		}
	}
}

// blocked reports whether a node overwrites what a pending message reads.
func (p *placer) blocked(i int) bool {
	n := &p.nodes[i]
	for k := range n.dst.count {
		if len(p.cell(n.gpu, location{n.dst.buf, n.dst.first + k}).pending) > 0 {
			return true
		}
	}
	return false
}

// node puts a node into a round. It reports whether that has ended a message.
func (p *placer) node(i int) bool {
	n := &p.nodes[i]
	switch {
	case n.sends:
		p.begin(i)
	case n.receives:
		p.receive(i)
		return true
	case n.dst.count > 0 && n.fold:
		p.reduce(n)
	case n.dst.count > 0:
		p.copy(n)
	}
	return false
}

// cell is the state of a chunk.
func (p *placer) cell(gpu int, l location) *cell {
	r := &p.ranks[gpu]
	if c := r.cells[l]; c != nil {
		return c
	}
	c := p.initial(gpu, l)
	r.cells[l] = &c
	return &c
}

// initial is the state of a chunk in the beginning.
func (p *placer) initial(gpu int, l location) cell {
	if lo, hi := p.own(gpu, p.contract.Input); l.buf == input && l.chunk >= lo && l.chunk < hi {
		return cell{home: home{buf: schedule.Input, number: l.chunk}, holds: true}
	}
	return cell{}
}

// own is the range of chunks of a buffer of a gpu.
func (p *placer) own(gpu int, h schedule.Holding) (lo, hi int) {
	if h == schedule.Own {
		m := p.chunks / len(p.gpus)
		return gpu * m, (gpu + 1) * m
	}
	return 0, p.chunks
}

// locations lists the chunks of an area.
func (a area) locations() []location {
	out := make([]location, a.count)
	for k := range out {
		out[k] = location{a.buf, a.first + k}
	}
	return out
}

// homes is where chunks lie. Those that were never written have the home that they would be written to, so that the
// checker says what is wrong.
func (p *placer) homes(gpu int, at []location) []home {
	out := make([]home, len(at))
	for k, l := range at {
		if c := p.cell(gpu, l); c.holds {
			out[k] = c.home
		} else {
			out[k] = p.target(gpu, l, l.chunk%p.chunks)
		}
	}
	return out
}

// target is where a chunk goes that is written now. number is that of the data.
func (p *placer) target(gpu int, l location, number int) home {
	r := &p.ranks[gpu]
	switch l.buf {
	case scratch:
		in := regionOf(r.regions, l.chunk)
		if in.together {
			slot := p.slot(gpu, location{scratch, in.first})
			return home{schedule.Scratch, slot, in.base, in.base + l.chunk - in.first}
		}
		return home{schedule.Scratch, p.slot(gpu, l), number, number}
	case input:
		if lo, hi := p.own(gpu, p.contract.Output); p.inPlace && l.chunk >= lo && l.chunk < hi {
			return home{buf: schedule.Output, number: l.chunk}
		}
	case output:
		// The Output may be the Input, so it is not written before the last look at that.
		if p.apart {
			return home{buf: schedule.Output, number: l.chunk}
		}
		if c := p.cell(gpu, l); c.holds && c.home.buf == schedule.Scratch {
			return c.home
		}
		before := p.cell(gpu, location{input, l.chunk})
		if !before.holds || before.home.buf != schedule.Input || before.reads == 0 {
			return home{buf: schedule.Output, number: l.chunk}
		}
	}
	slot := p.slot(gpu, location{l.buf, -1})
	if low, ok := r.lowest[slot]; !ok || l.chunk < low {
		r.lowest[slot] = l.chunk
	}
	return home{schedule.Scratch, slot, 0, l.chunk}
}

// slot is the number of a slot, by what it is for.
func (p *placer) slot(gpu int, of location) int {
	r := &p.ranks[gpu]
	if n, ok := r.slotOf[of]; ok {
		return n
	}
	r.slotOf[of] = r.slots
	r.slots++
	return r.slots - 1
}

// borrow finds a slot for n chunks that is free in a round, and keeps it.
func (p *placer) borrow(gpu, t int) int {
	r := &p.ranks[gpu]
	const taken = int(^uint(0) >> 1)
	for i := range r.loans {
		if r.loans[i].free <= t {
			r.loans[i].free = taken
			return r.loans[i].slot
		}
	}
	r.loans = append(r.loans, loan{r.slots, taken})
	r.slots++
	return r.slots - 1
}

// giveBack frees borrowed slots after a round. Other slots stay.
func (p *placer) giveBack(gpu, t int, homes []home) {
	for _, h := range homes {
		for i, l := range p.ranks[gpu].loans {
			if h.buf == schedule.Scratch && h.slot == l.slot {
				p.ranks[gpu].loans[i].free = t + 1
			}
		}
	}
}

// address is the room for a chunk.
func (p *placer) address(h home) address {
	a := address{h.buf, h.slot, h.number - h.base}
	if h.buf != schedule.Scratch && !p.apart {
		a.buf = schedule.Output
	}
	return a
}

// memory is the state of the room for a chunk.
func (p *placer) memory(gpu int, h home) *memory {
	a := p.address(h)
	m := p.ranks[gpu].memory[a]
	if m == nil {
		m = &memory{-1, -1, -1, -1, -1}
		p.ranks[gpu].memory[a] = m
	}
	return m
}

// movesMayWrite is the first round in which moves may write to a place.
func (m *memory) movesMayWrite() int {
	return max(m.sent, m.readMoves, m.readThen, m.wroteMoves, m.wroteThen) + 1
}

// thenMayWrite is the first round in which local steps may, behind those that the round has.
func (m *memory) thenMayWrite() int {
	return max(m.sent+1, m.readMoves, m.readThen, m.wroteMoves, m.wroteThen)
}

// round is a round of a rank, which grows as far as it is needed.
func (p *placer) round(gpu, t int) *round {
	r := &p.ranks[gpu]
	for t >= len(r.rounds) {
		r.rounds = append(r.rounds, round{})
	}
	return &r.rounds[t]
}

// runs cuts chunks into pieces that lie together in all lists of homes, and calls do with the places where each begins
// and ends.
func runs(n int, do func(from, to int), lists ...[]home) {
	for from := 0; from < n; {
		to := from + 1
		for to < n {
			together := true
			for _, homes := range lists {
				together = together && homes[to-1].goesOn(homes[to])
			}
			if !together {
				break
			}
			to++
		}
		do(from, to)
		from = to
	}
}
