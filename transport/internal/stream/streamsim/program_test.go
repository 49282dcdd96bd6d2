package streamsim

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"gogcl.dev/transport"
)

// op is a call of one replica: rounds of batches.
type op struct {
	call    transport.Call
	members []int
	rounds  [][]transport.Transfer
	want    [][][]byte // by round and transfer: what its Buf holds at the end, where it is the last of its chain
}

// busy reports whether the call has transfers.
func (o *op) busy() bool {
	return slices.ContainsFunc(o.rounds, func(batch []transport.Transfer) bool { return len(batch) > 0 })
}

// program is what all replicas do on one lane.
type program struct {
	n   int
	ops [][]*op // by replica

	// What a replica does otherwise than the others: see differ.
	differs  string
	odd      int
	material bool // a message finds no receiver, or a receive no message
	clear    bool // and the calls show it: somebody says in what, and not only that it has left or waits in a circle
	whole    bool // all calls are of all replicas
	rng      *rand.Rand
	seq      map[uint64]uint64 // by group
	calls    uint64
}

// shape is what a program is made of. A seed that tries one thing often finds more than one that tries all a little.
type shape uint8

const (
	anything shape = iota
	flood          // many short messages one way, few the other
	chains         // long chains of folds
	crossing       // floods, behind which messages the other way wait to be read
	sparse         // many calls in which most replicas have nothing to do
	brief          // a few messages one way, which wait where nobody reads them
	shapes
)

// newProgram makes a program for n replicas.
func newProgram(rng *rand.Rand, n int, s shape) *program {
	p := &program{n: n, ops: make([][]*op, n), rng: rng, seq: map[uint64]uint64{}, whole: rng.IntN(2) == 0}
	switch s {
	case anything:
		calls := 1 + rng.IntN(6)
		if rng.IntN(60) == 0 {
			calls = 70 + rng.IntN(30)
		}
		for range calls {
			p.mixed(p.members(), 2)
		}
	case flood:
		pair, back := rng.Perm(n)[:2], rng.IntN(2)*40
		for range 60 + rng.IntN(60) {
			messages := 1 + rng.IntN(2)
			if rng.IntN(20) == 0 {
				messages = 0
			}
			p.short(pair, messages, back)
		}
	case chains:
		for range 1 + rng.IntN(3) {
			p.chains(p.members())
		}
	case crossing:
		for range 1 + rng.IntN(2) {
			p.crossing(rng.Perm(n)[:2])
		}
	case brief:
		pair := rng.Perm(n)[:2]
		for range 1 + rng.IntN(4) {
			p.short(pair, 1+rng.IntN(3), 0)
		}
	case sparse:
		for range 15 + rng.IntN(20) {
			p.mixed(p.members(), 1)
		}
	}
	return p
}

// members are some replicas, or all, in order.
func (p *program) members() []int {
	members := p.rng.Perm(p.n)
	if !p.whole && p.rng.IntN(2) == 0 {
		members = members[:2+p.rng.IntN(p.n-1)]
	}
	slices.Sort(members)
	return members
}

// callOf is a call that is being made up: by replica, its part.
type callOf struct {
	p     *program
	parts []*op // nil: no member
	tags  map[[2]int]uint32
}

// call makes a call of the members, which comes next for each of them unless it is put elsewhere. kind tells groups of
// the same members apart.
func (p *program) call(members []int, kind uint64) *callOf {
	group := kind + 1
	for _, m := range members {
		group = group*31 + uint64(m) + 7
	}
	p.seq[group]++
	p.calls++
	call := transport.Call{Group: group, Seq: p.seq[group], Count: 1, Digest: p.calls, Method: 1,
		Collective: uint8(1 + p.rng.IntN(3))}
	c := &callOf{p: p, parts: make([]*op, p.n)}
	for _, m := range members {
		c.parts[m] = &op{call: call, members: members}
	}
	return c
}

// round begins a round of the call.
func (c *callOf) round() {
	for _, o := range c.parts {
		if o != nil {
			o.rounds, o.want = append(o.rounds, nil), append(o.want, nil)
		}
	}
	c.tags = map[[2]int]uint32{}
}

// add adds a transfer to the round.
func (o *op) add(t transport.Transfer, want []byte) {
	r := len(o.rounds) - 1
	o.rounds[r], o.want[r] = append(o.rounds[r], t), append(o.want[r], want)
}

// noise is bytes in which each word is another one.
func noise(rng *rand.Rand, size int) []byte {
	b := make([]byte, (size+7)&^7)
	x := rng.Uint64() | 1
	for at := 0; at < len(b); at += 8 {
		x *= 0x9e3779b97f4a7c15
		binary.LittleEndian.PutUint64(b[at:], x)
	}
	return b[:size]
}

// fold is neither commutative nor associative.
func fold(dst, a, b []byte) {
	for i := range dst {
		dst[i] = a[i]*31 + b[i] + 7
	}
}

// chain has messages of some replicas end in one buffer of another: the first is received or folded into the buffer,
// the others are folded, some with an operand of the receiver's before them.
func (c *callOf) chain(to, size int, froms []int) {
	rng := c.p.rng
	buf := make([]byte, size)
	acc := make([]byte, size)
	last := -1
	for _, from := range froms {
		if from == to {
			continue
		}
		x := noise(rng, size)
		key := [2]int{from, to}
		tag := c.tags[key]
		c.tags[key]++
		c.parts[from].add(transport.Transfer{Peer: to, Tag: tag, Kind: transport.Send, Buf: x}, nil)
		t := transport.Transfer{Peer: from, Tag: tag, Kind: transport.RecvFold, Buf: buf, Fold: fold, Next: last >= 0}
		switch {
		case last >= 0 && rng.IntN(3) == 0:
			t.With = noise(rng, size)
			fold(acc, acc, t.With)
			fold(acc, acc, x)
		case last >= 0:
			fold(acc, acc, x)
		case rng.IntN(2) == 0:
			t.Kind, t.Fold = transport.Recv, nil
			copy(acc, x)
		default:
			t.With = noise(rng, size)
			fold(acc, t.With, x)
		}
		c.parts[to].add(t, nil)
		last = len(c.parts[to].rounds) - 1
	}
	if last >= 0 {
		w := c.parts[to].want[last]
		w[len(w)-1] = acc
	}
}

// next has the call come next for all its members.
func (c *callOf) next() {
	for r, o := range c.parts {
		if o != nil {
			c.p.mix(o)
			c.p.ops[r] = append(c.p.ops[r], o)
		}
	}
}

// mix puts the sends and the chains of each round in any order: replicas send in different ones.
func (p *program) mix(o *op) {
	for r, batch := range o.rounds {
		var starts []int // of sends and chains
		for x, t := range batch {
			if !t.Next {
				starts = append(starts, x)
			}
		}
		var mixed []transport.Transfer
		var want [][]byte
		for _, k := range p.rng.Perm(len(starts)) {
			end := len(batch)
			if k+1 < len(starts) {
				end = starts[k+1]
			}
			mixed = append(mixed, batch[starts[k]:end]...)
			want = append(want, o.want[r][starts[k]:end]...)
		}
		o.rounds[r], o.want[r] = mixed, want
	}
}

// mixed is a call of up to 3 rounds, in each up to so many chains for each member.
func (p *program) mixed(members []int, most int) {
	rng := p.rng
	c := p.call(members, 0)
	for range 1 + rng.IntN(3) {
		c.round()
		for range rng.IntN(most * len(members)) {
			links := 1
			if rng.IntN(3) == 0 {
				links = 1 + rng.IntN(4)
			}
			froms := make([]int, links)
			for i := range froms {
				froms[i] = members[rng.IntN(len(members))]
			}
			size := []int{0, 0, 1, 63, 64, 65, 65, 200, 300, 1024}[rng.IntN(10)]
			c.chain(members[rng.IntN(len(members))], size, froms)
		}
	}
	c.next()
}

// short is a call of so many short messages from the first of two to the second, and one in so many, if that is not 0,
// the other way.
func (p *program) short(pair []int, messages, back int) {
	c := p.call(pair, 0)
	c.round()
	for range messages {
		from, to := pair[0], pair[1]
		if back > 0 && p.rng.IntN(back) == 0 {
			from, to = to, from
		}
		c.chain(to, []int{0, 0, 0, 64}[p.rng.IntN(4)], []int{from})
	}
	c.next()
}

// chains is a call in which each member folds messages of all others.
func (p *program) chains(members []int) {
	c := p.call(members, 0)
	for range 1 + p.rng.IntN(3) {
		c.round()
		for _, to := range members {
			froms := slices.Clone(members)
			p.rng.Shuffle(len(froms), func(i, j int) { froms[i], froms[j] = froms[j], froms[i] })
			c.chain(to, 600+p.rng.IntN(1500), froms)
		}
	}
	c.next()
}

// crossing is a flood from one replica to another, which sends a few messages before it reads: the first reads them
// after the flood, from pipes that hold them meanwhile.
func (p *program) crossing(pair []int) {
	few, many := 1+p.rng.IntN(3), 50+p.rng.IntN(70)
	calls := func(from, to, times int, kind uint64) (out []*callOf) {
		for range times {
			c := p.call(pair, kind)
			c.round()
			c.chain(to, p.rng.IntN(2)*64, []int{from})
			out = append(out, c)
		}
		return out
	}
	there, back := calls(pair[0], pair[1], many, 1), calls(pair[1], pair[0], few, 2)
	for _, c := range slices.Concat(there, back) {
		p.ops[pair[0]] = append(p.ops[pair[0]], c.parts[pair[0]])
	}
	for _, c := range slices.Concat(back, there) {
		p.ops[pair[1]] = append(p.ops[pair[1]], c.parts[pair[1]])
	}
}

// unread is a call in which a replica has nothing to do, and a member to whom it sends nothing from then on: a message
// to that member is read by nobody. Where there is none the call is the one given, and the member -1.
func (p *program) unread(r, otherwise int) (i, to int) {
	type place struct{ i, to int }
	var places []place
	later := map[int]bool{} // to whom it sends
	for i := len(p.ops[r]) - 1; i >= 0; i-- {
		o := p.ops[r][i]
		for _, batch := range o.rounds {
			for _, t := range batch {
				later[t.Peer] = later[t.Peer] || t.Kind == transport.Send
			}
		}
		for _, m := range o.members {
			if m != r && !o.busy() && !later[m] {
				places = append(places, place{i, m})
			}
		}
	}
	if len(places) == 0 {
		return otherwise, -1
	}
	chosen := places[p.rng.IntN(len(places))]
	return chosen.i, chosen.to
}

// differ has one replica do something else than the others.
func (p *program) differ() {
	rng := p.rng
	r := rng.IntN(p.n)
	for len(p.ops[r]) == 0 { // at least two replicas make calls
		r = (r + 1) % p.n
	}
	ops := slices.Clone(p.ops[r])
	i := rng.IntN(len(ops))
	kind, receiver := rng.IntN(7), -1
	if kind >= 5 && rng.IntN(4) > 0 {
		i, receiver = p.unread(r, i)
	}
	o := *ops[i]
	p.odd, p.material = r, o.busy()
	switch kind {
	case 0:
		p.differs, p.clear = "count", true
		o.call.Count = 2
		ops[i] = &o
	case 1:
		p.differs, p.clear = "one less", len(p.seq) == 1 && i < len(ops)-1
		ops = slices.Delete(ops, i, i+1)
	case 2:
		p.differs, p.clear = "one twice", len(p.seq) == 1 && i < len(ops)-1
		ops = slices.Insert(ops, i, ops[i])
	case 3:
		if len(ops) == 1 {
			p.material = false
			return
		}
		p.differs, p.material = "order", false
		j := (i + 1) % len(ops)
		ops[i], ops[j] = ops[j], ops[i]
	case 4: // a message longer than the receiver expects
		p.material = false
		for k, batch := range o.rounds {
			for x, t := range batch {
				if t.Kind != transport.Send || p.differs != "" {
					continue
				}
				p.differs, p.material, p.clear = "length", true, true
				o.rounds = slices.Clone(o.rounds)
				o.rounds[k] = slices.Clone(batch)
				o.rounds[k][x].Buf = append(bytes.Clone(t.Buf), 1)
			}
		}
		ops[i] = &o
	default: // a message that its receiver does not expect, in a call that is another one or not
		others := slices.DeleteFunc(slices.Clone(o.members), func(m int) bool { return m == r })
		p.differs, p.material = "surplus", true
		o.rounds, o.want = slices.Clone(o.rounds), slices.Clone(o.want)
		k := rng.IntN(len(o.rounds))
		to := others[rng.IntN(len(others))]
		if receiver >= 0 {
			to = receiver
		}
		tag := uint32(0)
		for _, t := range o.rounds[k] {
			if t.Kind == transport.Send && t.Peer == to {
				tag = max(tag, t.Tag+1)
			}
		}
		o.rounds[k] = append(slices.Clone(o.rounds[k]),
			transport.Transfer{Peer: to, Tag: tag, Kind: transport.Send, Buf: noise(rng, 1+rng.IntN(100))})
		o.want[k] = append(slices.Clone(o.want[k]), nil)
		if rng.IntN(2) == 0 {
			o.call.Count, p.clear = 2, true
		}
		ops[i] = &o
	}
	seq := map[uint64]uint64{}
	for j, o := range ops {
		c := *o
		seq[c.call.Group]++
		c.call.Seq = seq[c.call.Group]
		ops[j] = &c
	}
	p.ops[r] = ops
}
