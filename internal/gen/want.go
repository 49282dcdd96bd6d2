package main

import (
	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// prepare makes the inputs of all ranks, and what is common to the results.
func (c *call) prepare() {
	c.once.Do(func() {
		for t, o := range c.opds {
			es := size(o.dt)
			var in [][]byte
			for rank := range c.g {
				n, _, _ := c.lengths(t, rank)
				b := make([]byte, n*es)
				for i := range n {
					set(b, o.dt, i, element(c.class, c.op, o.dt, mix(c.id, uint64(t), uint64(rank), uint64(i))))
				}
				in = append(in, b)
			}
			if c.k == mappedGather { // shards of one array, with zeros as padding
				whole := make([]byte, o.n*es)
				for i := range o.n {
					set(whole, o.dt, i, element(c.class, c.op, o.dt, mix(c.id, 99, uint64(i))))
				}
				for rank := range in {
					in[rank] = shards(whole, o.dt, c.mapping, c.g, rank)
				}
				c.red = append(c.red, whole)
			}
			c.in = append(c.in, in)
			if c.k.combines() && c.op != gcl.Local {
				c.red = append(c.red, c.reduce(t))
			}
		}
	})
}

// reduce is the reduction of the inputs of operand t.
func (c *call) reduce(t int) []byte {
	in, d := c.in[t], c.opds[t].dt
	red := make([]byte, len(in[0]))
	v := make([]uint64, c.g)
	for i := range len(red) / size(d) {
		for rank := range v {
			v[rank] = get(in[rank], d, i)
		}
		set(red, d, i, fold(c.op, d, c.class, v, true))
	}
	return red
}

// shards is what one rank has of an array that is cut by a mapping.
func shards(whole []byte, d tensor.DType, m chunks.Mapping, g, rank int) (out []byte) {
	es, at := size(d), 0
	for _, l := range m {
		per := ceil(l, g)
		piece := make([]byte, per*es)
		lo, hi := min(rank*per, l), min(rank*per+per, l)
		copy(piece, whole[(at+lo)*es:(at+hi)*es])
		out = append(out, piece...)
		at += l
	}
	return out
}

// want is the result of a rank; nil where it has none.
func (c *call) want(t, rank int) []byte {
	o := &c.opds[t]
	es := size(o.dt)
	in := c.in[t]
	var red []byte
	if c.k.combines() {
		if c.op == gcl.Local {
			red = in[rank]
		} else {
			red = c.red[t]
		}
	}
	if rank != c.root && (c.k == reduce || c.k == gather || c.k == gatherV) {
		return nil
	}
	cut := func(b []byte, off, n int) []byte { return b[off*es : (off+n)*es] }
	switch c.k {
	case allReduce, reduce:
		return red
	case reduceScatter:
		per := ceil(o.n, c.g)
		out := make([]byte, per*es)
		lo, hi := min(rank*per, o.n), min(rank*per+per, o.n)
		copy(out, red[lo*es:hi*es])
		return out
	case reduceScatterV:
		return cut(red, sum(o.counts[:rank])*o.row, o.counts[rank]*o.row)
	case mappedScatter:
		return shards(red, o.dt, c.mapping, c.g, rank)
	case mappedGather:
		return c.red[t]
	case allGather, gather, allGatherV, gatherV:
		var out []byte
		for _, b := range in {
			out = append(out, b...)
		}
		return out
	case allToAll:
		var out []byte
		for _, b := range in {
			out = append(out, cut(b, rank*o.n, o.n)...)
		}
		return out
	case allToAllV:
		var out []byte
		for a, b := range in {
			out = append(out, cut(b, sum(o.sent[a][:rank])*o.row, o.sent[a][rank]*o.row)...)
		}
		return out
	case broadcast:
		return in[c.root]
	case scatter:
		return cut(in[c.root], rank*o.n, o.n)
	case scatterV:
		return cut(in[c.root], sum(o.counts[:rank])*o.row, o.counts[rank]*o.row)
	case execute:
		return c.ex.want(c, rank)
	}
	return nil
}
