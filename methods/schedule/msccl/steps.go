package msccl

import (
	"slices"

	"gogcl.dev/methods/schedule"
)

// begin notes a send. Its round is that of its receive.
func (p *placer) begin(i int) {
	n := &p.nodes[i]
	m := &message{gpu: n.gpu, at: n.src.locations()}
	p.join(n.gpu, m.at)
	for _, l := range m.at {
		c := p.cell(n.gpu, l)
		c.pending = append(c.pending, m)
	}
	p.messages[n.matched] = m
}

// join copies chunks from the Input to their places in the Output if others of a message lie there, so that one span
// has all. Where Output is Input such a copy is nothing, so it may be made whatever the round sends.
func (p *placer) join(gpu int, at []location) {
	homes := p.homes(gpu, at)
	if !slices.ContainsFunc(homes, func(h home) bool { return h.buf == schedule.Output }) {
		return
	}
	for k, l := range at {
		if l.buf != output || homes[k].buf != schedule.Input {
			continue
		}
		t, to := p.cell(gpu, l).readThen, home{buf: schedule.Output, number: l.chunk}
		p.locals(gpu, t, schedule.Copy, []location{l}, []home{to}, []home{homes[k]})
	}
}

// settle takes a message from the lists of those that are pending.
func (p *placer) settle(m *message) {
	for _, l := range m.at {
		c := p.cell(m.gpu, l)
		for i, other := range c.pending {
			if other == m {
				c.pending = append(c.pending[:i:i], c.pending[i+1:]...)
				break
			}
		}
	}
}

// release copies what pending messages read of what a node overwrites.
func (p *placer) release(i int) {
	n := &p.nodes[i]
	for _, l := range n.dst.locations() {
		for _, m := range append([]*message(nil), p.cell(n.gpu, l).pending...) {
			p.keep(m)
		}
	}
}

// keep copies what a message reads into slots of its own.
func (p *placer) keep(m *message) {
	from, t := p.homes(m.gpu, m.at), 0
	for _, l := range m.at {
		t = max(t, p.cell(m.gpu, l).readThen)
	}
	for k, l := range m.at {
		p.looked(m.gpu, l)
		p.memory(m.gpu, from[k]).readThen = max(t, p.memory(m.gpu, from[k]).readThen)
	}
	m.moved = make([]home, len(from))
	runs(len(from), func(a, b int) {
		slot := p.borrow(m.gpu, t)
		for k := a; k < b; k++ {
			m.moved[k] = home{schedule.Scratch, slot, from[a].number, from[k].number}
		}
		p.local(m.gpu, t, schedule.Copy, m.moved[a], from[a], b-a)
	}, from)
	m.ready = t + 1
	p.settle(m)
}

// local adds a local step to a round.
func (p *placer) local(gpu, t int, verb schedule.Verb, dst, src home, count int) {
	r := p.round(gpu, t)
	r.then = append(r.then, schedule.Step{Verb: verb, Peer: -1, Src: src.span(count), Dst: dst.span(count)})
}

// looked notes that a chunk has been read.
func (p *placer) looked(gpu int, l location) {
	c := p.cell(gpu, l)
	c.reads--
	c.fold = nil
}

// receive puts a message into a round.
func (p *placer) receive(i int) {
	n, m := &p.nodes[i], p.messages[i]
	delete(p.messages, i)
	from, t := m.moved, m.ready
	if from == nil {
		from = p.homes(m.gpu, m.at)
		for _, l := range m.at {
			t = max(t, p.cell(m.gpu, l).readMoves)
		}
		for _, l := range m.at {
			p.looked(m.gpu, l)
		}
		p.settle(m)
	}
	t = p.arrive(n, m, from, t)
	for _, h := range from {
		s := p.memory(m.gpu, h)
		s.sent = max(s.sent, t)
	}
	p.giveBack(m.gpu, t, from)
}

// arrive is the part of receive at the receiver. The message may be sent from round t on. The result is its round.
func (p *placer) arrive(n *node, m *message, from []home, t int) int {
	at := n.dst.locations()
	if n.src == n.dst {
		if folds := p.open(n.gpu, at, from, t); folds != nil {
			for _, l := range at {
				p.cell(n.gpu, l).reads--
			}
			k := 0
			for _, f := range folds {
				count := int(f.dst.Count)
				f.links = append(f.links, p.link(n, m, from[k], f.dst, f.dst, count))
				k += count
			}
			return folds[0].round
		}
	}
	var operand []home
	if n.fold {
		operand = p.homes(n.gpu, n.src.locations())
		for _, l := range n.src.locations() {
			t = max(t, p.cell(n.gpu, l).readMoves)
			p.looked(n.gpu, l)
		}
	}
	to := make([]home, len(at))
	if n.dst.buf != passing {
		for k, l := range at {
			to[k] = p.target(n.gpu, l, from[k].number)
			t = max(t, p.memory(n.gpu, to[k]).movesMayWrite())
		}
	}
	lists := [][]home{from}
	if operand != nil {
		lists = append(lists, operand)
	}
	if n.dst.buf == passing {
		runs(len(at), func(a, b int) {
			slot := p.borrow(n.gpu, t)
			for k := a; k < b; k++ {
				to[k] = home{schedule.Scratch, slot, from[a].number, from[k].number}
			}
		}, lists...)
	}
	for k := range operand {
		s := p.memory(n.gpu, operand[k])
		s.readMoves = max(s.readMoves, t)
	}
	runs(len(at), func(a, b int) {
		dst := to[a].span(b - a)
		src := schedule.Span{}
		if operand != nil {
			src = operand[a].span(b - a)
		}
		f := &fold{round: t, dst: dst, links: []link{p.link(n, m, from[a], src, dst, b-a)}}
		r := p.round(n.gpu, t)
		r.folds = append(r.folds, f)
		for k := a; k < b; k++ {
			p.wrote(n.gpu, at[k], to[k], t, t+1)
			p.cell(n.gpu, at[k]).fold = f
			s := p.memory(n.gpu, to[k])
			s.wroteMoves = max(s.wroteMoves, t)
		}
	}, append(lists, to)...)
	return t
}

// link is a receive of a node, with its send. Without an operand src is no span.
func (p *placer) link(n *node, m *message, from home, src, dst schedule.Span, count int) link {
	st := talk(schedule.Recv, m.gpu)
	st.Dst = dst
	if n.fold {
		st.Verb, st.Src = schedule.RecvReduce, src
	}
	send := talk(schedule.Send, n.gpu)
	send.Src = from.span(count)
	return link{st, m.gpu, send}
}

// talk is a step with a peer.
func talk(verb schedule.Verb, peer int) schedule.Step {
	return schedule.Step{Verb: verb, Peer: peer}
}

// open finds the folds of one round, t or later, that wrote chunks last, each with a piece of them, if nobody has read
// the chunks since. from is where the data lies that would go on with the folds; nil: it is not cut.
func (p *placer) open(gpu int, at []location, from []home, t int) []*fold {
	var out []*fold
	for k := 0; k < len(at); {
		f := p.cell(gpu, at[k]).fold
		if f == nil || f.round < t || len(out) > 0 && f.round != out[0].round {
			return nil
		}
		count := int(f.dst.Count)
		if k+count > len(at) || p.cell(gpu, at[k]).home.span(count) != f.dst {
			return nil
		}
		for j := k + 1; j < k+count; j++ {
			if p.cell(gpu, at[j]).fold != f || !from[j-1].goesOn(from[j]) {
				return nil
			}
		}
		out = append(out, f)
		k += count
	}
	return out
}

// wrote notes what lies in a chunk from now on.
func (p *placer) wrote(gpu int, l location, to home, readThen, readMoves int) {
	c := p.cell(gpu, l)
	c.home, c.holds, c.fold = to, true, nil
	c.readThen, c.readMoves = readThen, readMoves
}

// copy puts a local copy into a round. A copy of an Input chunk to its place in the Output waits until something else
// goes there, or the end: see finish.
func (p *placer) copy(n *node) {
	src, dst := n.src.locations(), n.dst.locations()
	from := p.homes(n.gpu, src)
	if n.src == n.dst {
		for _, l := range src {
			p.looked(n.gpu, l)
		}
		return
	}
	t := 0
	for _, l := range src {
		t = max(t, p.cell(n.gpu, l).readThen)
	}
	var keepFrom, keepTo []home
	var kept []location
	for k, l := range dst {
		c := p.cell(n.gpu, src[k])
		if l.buf == output && c.holds && from[k].buf == schedule.Input && from[k].number == l.chunk {
			p.looked(n.gpu, src[k])
			p.wrote(n.gpu, l, from[k], c.readThen, c.readMoves)
			continue
		}
		p.looked(n.gpu, src[k])
		to := p.target(n.gpu, l, from[k].number)
		t = max(t, p.memory(n.gpu, to).thenMayWrite())
		keepFrom, keepTo, kept = append(keepFrom, from[k]), append(keepTo, to), append(kept, l)
	}
	p.locals(n.gpu, t, schedule.Copy, kept, keepTo, keepFrom)
}

// locals adds local steps that write chunks to a round.
func (p *placer) locals(gpu, t int, verb schedule.Verb, at []location, to, from []home) {
	runs(len(at), func(a, b int) {
		p.local(gpu, t, verb, to[a], from[a], b-a)
	}, to, from)
	for k, l := range at {
		s := p.memory(gpu, from[k])
		s.readThen = max(s.readThen, t)
		s = p.memory(gpu, to[k])
		s.wroteThen = max(s.wroteThen, t)
		p.wrote(gpu, l, to[k], t, t+1)
	}
}

// reduce puts a local fold into a round: behind the receive that wrote its place, if the operand is there.
func (p *placer) reduce(n *node) {
	src, dst := n.src.locations(), n.dst.locations()
	operand, have := p.homes(n.gpu, src), p.homes(n.gpu, dst)
	t, moves := 0, 0
	for k := range src {
		t = max(t, p.cell(n.gpu, src[k]).readThen, p.cell(n.gpu, dst[k]).readThen)
		moves = max(moves, p.cell(n.gpu, src[k]).readMoves)
	}
	if folds := p.open(n.gpu, dst, operand, moves); folds != nil && n.src != n.dst {
		behind := true // one local step behind each receive
		for _, f := range folds {
			behind = behind && f.links[len(f.links)-1].from >= 0
		}
		if behind {
			k := 0
			for _, f := range folds {
				f.links = append(f.links, link{from: -1, step: schedule.Step{Verb: schedule.Fold, Peer: -1,
					Src: operand[k].span(int(f.dst.Count)), Dst: f.dst}})
				k += int(f.dst.Count)
			}
			for k, l := range src {
				p.looked(n.gpu, l)
				p.cell(n.gpu, dst[k]).reads--
				s := p.memory(n.gpu, operand[k])
				s.readMoves = max(s.readMoves, folds[0].round)
			}
			return
		}
	}
	for k, l := range src {
		p.looked(n.gpu, l)
		p.looked(n.gpu, dst[k])
	}
	to := make([]home, len(dst))
	for k, l := range dst {
		to[k] = p.target(n.gpu, l, have[k].number)
		t = max(t, p.memory(n.gpu, to[k]).thenMayWrite())
	}
	var moved []location
	var movedTo, movedFrom []home
	for k, l := range dst {
		if have[k] != to[k] {
			moved, movedTo, movedFrom = append(moved, l), append(movedTo, to[k]), append(movedFrom, have[k])
		}
	}
	p.locals(n.gpu, t, schedule.Copy, moved, movedTo, movedFrom)
	p.locals(n.gpu, t, schedule.Fold, dst, to, operand)
}
