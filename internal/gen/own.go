package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"gogcl.dev/gcl"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// own is the operation of a call of Execute.
type own struct {
	what string
	s    *schedule.Schedule
	unit int // elements of a chunk of size 1
	cc   *schedule.CustomContract
	base *call // of a built-in collective
}

func (x *own) String() string { return fmt.Sprintf("%s unit=%d", x.what, x.unit) }

// exec draws an operation, and makes c a call of it.
func (c *call) exec(r *rand.Rand, repro bool) {
	g := c.g
	x := &own{unit: pick(r, 1, 1, 2, 5, 16, 100, 1000)}
	c.ex, c.class = x, rawBits
	d := dtypes[r.IntN(len(dtypes))]
	kinds := []string{"exchange", "experts", "builtin"}
	if !repro {
		kinds = append(kinds, "scan", "exscan", "custom", "builtin", "scan")
	}
	x.what = kinds[r.IntN(len(kinds))]
	if g == 1 && (x.what == "exscan" || x.what == "builtin") {
		x.what = "exchange"
	}
	combining := func() {
		c.class = small
		c.op = pick(r, gcl.Add, gcl.Mean, gcl.Mul, gcl.Min, gcl.Max, gcl.SquareAdd)
		var ok []tensor.DType
		for _, d := range dtypes {
			if takes(c.op, d) {
				ok = append(ok, d)
			}
		}
		d = ok[r.IntN(len(ok))]
	}
	var err error
	switch x.what {
	case "scan", "exscan":
		combining()
		chunks := 1 + r.IntN(3)
		if x.what == "scan" {
			x.cc = schedule.Scan(g, chunks)
			b := schedule.NewBuilderFor(x.cc)
			if r.IntN(2) == 0 {
				for t, h := 0, 1; h < g; t, h = t+1, 2*h {
					for rank := range g - h {
						b.Fold(t, rank, rank+h, 0, chunks)
					}
				}
			} else { // a chain, chunk by chunk
				for f := range chunks {
					for rank := range g - 1 {
						b.Fold(rank+f, rank, rank+1, f, 1)
					}
				}
			}
			x.s, err = b.Build()
		} else { // steps by hand: rank r passes on its inclusive sum and keeps what came
			x.cc = schedule.ExclusiveScan(g, chunks)
			x.s, err = exclusive(x.cc, g, chunks)
		}
	case "exchange":
		to, from := make([][]int, g), make([][]int, g)
		add := func(a, b int) { to[a], from[b] = append(to[a], b), append(from[b], a) }
		for a := range g {
			add(a, (a+1)%g)
		}
		for range r.IntN(2*g + 1) {
			add(r.IntN(g), r.IntN(g))
		}
		for a := range g {
			r.Shuffle(len(from[a]), func(i, j int) { from[a][i], from[a][j] = from[a][j], from[a][i] })
		}
		if x.cc, err = schedule.Exchange(to, from); err == nil {
			b := schedule.NewBuilderFor(x.cc)
			if r.IntN(2) == 0 {
				b.Ports(1 + r.IntN(2))
			}
			for a := range g {
				for i, f := range x.cc.Inputs[a] {
					if to[a][i] != a {
						b.Copy(0, a, to[a][i], f, 1)
					}
				}
			}
			x.s, err = b.Build()
		}
	case "experts":
		sizes := make([][]int, g)
		for a := range sizes {
			sizes[a] = make([]int, g)
			for i := range sizes[a] {
				sizes[a][i] = max(0, r.IntN(6)-2)
			}
			sizes[a][a] = max(1, sizes[a][a])
		}
		x.cc = schedule.Experts(sizes)
		b := schedule.NewBuilderFor(x.cc)
		if r.IntN(2) == 0 {
			b.Ports(1 + r.IntN(2))
		}
		f := 0
		for a := range g {
			for i, n := range sizes[a] {
				if n > 0 {
					if i != a {
						b.Copy(0, a, i, f, 1)
					}
					f++
				}
			}
		}
		x.s, err = b.Build()
	case "custom":
		combining()
		F := 1 + r.IntN(5)
		cc := &schedule.CustomContract{Name: "mine", Combines: true,
			Inputs: make([][]int, g), Outputs: make([][]int, g)}
		if r.IntN(2) == 0 {
			for range F {
				cc.Sizes = append(cc.Sizes, 1+r.IntN(3))
			}
		}
		type msg struct{ fold, from, to, f int }
		var msgs []msg
		for f := range F {
			var holders, wants []int
			for a := range g {
				if r.IntN(2) == 0 || f == 0 {
					holders = append(holders, a)
				}
				if r.IntN(2) == 0 {
					wants = append(wants, a)
				}
			}
			if len(holders) == 0 {
				holders = []int{r.IntN(g)}
			}
			if len(wants) == 0 {
				wants = []int{r.IntN(g)}
			}
			for _, a := range holders {
				cc.Inputs[a] = append(cc.Inputs[a], f)
			}
			for _, a := range wants {
				cc.Outputs[a] = append(cc.Outputs[a], f)
			}
			at := holders[r.IntN(len(holders))]
			for _, a := range holders {
				if a != at {
					msgs = append(msgs, msg{1, a, at, f})
				}
			}
			for _, a := range wants {
				if a != at {
					msgs = append(msgs, msg{0, at, a, f})
				}
			}
		}
		for a := range g {
			in, out := cc.Inputs[a], cc.Outputs[a]
			r.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
			r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		}
		b := schedule.NewBuilderFor(cc).Ports(1 + r.IntN(3))
		for _, m := range msgs {
			if m.fold == 1 {
				b.Fold(0, m.from, m.to, m.f, 1)
			} else {
				b.Copy(0, m.from, m.to, m.f, 1)
			}
		}
		x.cc = cc
		x.s, err = b.Build()
	case "builtin":
		c.builtin(r, repro)
		return
	}
	if err != nil {
		panic(fmt.Sprintf("call %x: %s: build: %v", c.id, x, err))
	}
	c.opds = []operand{{dt: d}}
}

// exclusive is an exclusive scan by hand: in round t rank t sends what it has folded, and the next keeps it.
func exclusive(cc *schedule.CustomContract, g, chunks int) (*schedule.Schedule, error) {
	s := &schedule.Schedule{Collective: schedule.Custom, Custom: cc, Size: g, Chunks: chunks, Apart: true,
		Programs: make([]schedule.Program, g)}
	for rank := range g {
		p := make(schedule.Program, g-1)
		if rank > 0 {
			p[rank-1].Moves = append(p[rank-1].Moves,
				schedule.Step{Verb: schedule.Recv, Peer: rank - 1, Dst: schedule.Out(0, chunks)})
		}
		if rank < g-1 {
			if rank == 0 {
				p[0].Moves = append(p[0].Moves,
					schedule.Step{Verb: schedule.Send, Peer: 1, Src: schedule.In(0, chunks)})
			} else { // fold the own input and what came into scratch, after the round in which it came
				p[rank-1].Then = append(p[rank-1].Then,
					schedule.Step{Verb: schedule.Copy, Peer: -1,
						Dst: schedule.Tmp(0, 0, chunks), Src: schedule.In(0, chunks)},
					schedule.Step{Verb: schedule.Fold, Peer: -1,
						Dst: schedule.Tmp(0, 0, chunks), Src: schedule.Out(0, chunks)})
				p[rank].Moves = append(p[rank].Moves,
					schedule.Step{Verb: schedule.Send, Peer: rank + 1, Src: schedule.Tmp(0, 0, chunks)})
			}
		}
		s.Programs[rank] = p
	}
	return s, nil
}

// size is how many elements the chunks of a list have.
func (x *own) size(list []int) (n int) {
	for _, f := range list {
		if x.cc.Sizes == nil {
			n++
		} else {
			n += x.cc.Sizes[f]
		}
	}
	return n * x.unit
}

// lens is lengths, for an operation.
func (x *own) lens(rank int) (src, dst, own int) {
	if x.base != nil {
		src, dst, _ = x.base.lengths(0, rank)
		return src, dst, -1
	}
	own = -1
	in, out := x.cc.Inputs[rank], x.cc.Outputs[rank]
	if !x.s.Apart && x.cc.Alike() && slices.Equal(in, out) {
		own = 0
	}
	return x.size(in), x.size(out), own
}

// want is the result of a rank.
func (x *own) want(c *call, rank int) []byte {
	if b := x.base; b != nil {
		b.once.Do(func() { // its inputs are those of c
			b.in = c.in
			if !b.k.combines() {
				return
			}
			b.red = [][]byte{b.reduce(0)}
		})
		return b.want(0, rank)
	}
	d := c.opds[0].dt
	es := size(d)
	chunk := func(rank, f int) []byte {
		at := 0
		for _, h := range x.cc.Inputs[rank] {
			n := x.size([]int{h})
			if h == f {
				return c.in[0][rank][at*es : (at+n)*es]
			}
			at += n
		}
		panic("no chunk")
	}
	var out []byte
	for place, f := range x.cc.Outputs[rank] {
		var from []int
		if x.cc.Wants != nil {
			from = x.cc.Wants[rank][place]
		} else {
			for q := range c.g {
				if slices.Contains(x.cc.Inputs[q], f) {
					from = append(from, q)
				}
			}
		}
		n := x.size([]int{f})
		res := make([]byte, n*es)
		v := make([]uint64, len(from))
		for i := range n {
			for j, q := range from {
				v[j] = get(chunk(q, f), d, i)
			}
			if !x.cc.Combines {
				set(res, d, i, v[0])
			} else {
				set(res, d, i, fold(c.op, d, c.class, v, false))
			}
		}
		out = append(out, res...)
	}
	return out
}
