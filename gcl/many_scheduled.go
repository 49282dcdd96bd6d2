package gcl

import (
	"context"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// scheduled carries out a call on several tensors by a schedule. They are packed in memory of the lane, in which input and output of the schedule are the same but in
// an all-to-all.
func (m *many) scheduled(ctx context.Context, c *Comm, whole *call, e executor, fingerprint transport.Call) error {
	perRank := whole.collective == schedule.ReduceScatter || whole.collective == schedule.AllGather
	ranks := 0
	if perRank {
		ranks = c.Size()
	}
	l := m.layoutOf(e.cut(), ranks, c.options.Reproducible && reduces(whole.collective))
	m.packing.setUp(l, kernel.Fold{Op: kernelOps[whole.operator]}, 0) // squared before, divided after

	size := l.bytes()
	in, out := c.lane.stage(size, 0)
	if out = in; whole.collective == schedule.AllToAll {
		in, out = c.lane.stage(size, size) // as its schedules need them
	}
	r := run{elemSize: 1, input: in, output: out, packed: &m.packing, call: fingerprint}
	p := packer{many: m, layout: l, rank: c.Rank(), square: reduces(whole.collective) && whole.operator == SquareAdd}
	if reduces(whole.collective) && whole.operator == Mean {
		p.by = c.Size()
	}
	from, to := l.chunkRange(0, l.chunks), l.chunkRange(0, l.chunks)
	if perRank {
		per := l.chunks / ranks
		own := l.chunkRange(c.Rank()*per, (c.Rank()+1)*per)
		if p.scattered = whole.collective == schedule.ReduceScatter; p.scattered {
			to, r.output = own, out[own.at:own.end]
		} else {
			from, r.input, p.gathers = own, in[own.at:own.end], true
		}
	}
	if whole.collective != schedule.Broadcast || c.Rank() == whole.root {
		p.pack(in, from)
	}
	if err := e.execute(ctx, r, size); err != nil {
		return err
	}
	p.unpack(out, to)
	return nil
}

// layoutOf is the layout of the tensors in the tables. With wide, 16-bit floats are packed as float32.
func (m *many) layoutOf(cut, ranks int, wide bool) *layout {
	m.extents = m.extents[:0]
	for t, dtype := range m.dtypes {
		work := kernel.Type(dtype)
		if wide && kernel.Widen(work) != nil {
			work = kernel.Float32
		}
		m.extents = append(m.extents, extent{work, m.elements[t]})
	}
	return m.layouts.of(m.extents, cut, ranks)
}

// packer moves the tensors of a call into a packing and out of it.
type packer struct {
	*many
	layout    *layout
	rank      int
	gathers   bool // an input is the rank's shard
	scattered bool // an output is the rank's shard
	square    bool // inputs are squared
	by        int  // what outputs are divided by, if it is more than 1
}

// pack fills some chunks from the inputs. 16-bit floats become float32 where the layout says so.
func (p *packer) pack(dst []byte, r chunkRange) {
	for i := range r.fragments {
		f := &r.fragments[i]
		dtype, work := kernel.Type(p.dtypes[f.tensor]), p.layout.extents[f.tensor].work
		first := 0
		if p.gathers {
			first = p.rank * p.shards[f.tensor]
		}
		src := p.ins[f.tensor][(f.lo-first)*dtype.Size() : (f.hi-first)*dtype.Size()]
		to := dst[f.at : f.at+(f.hi-f.lo)*work.Size()]
		switch {
		case work != dtype:
			kernel.Widen(dtype)(to, src)
			if p.square {
				kernel.Square(work)(to, to)
			}
		case p.square:
			kernel.Square(work)(to, src)
		default:
			kernel.Copy(to, src, false)
		}
	}
}

// unpack fills the outputs from some chunks. What of a shard is past the end of its tensor becomes zeros.
func (p *packer) unpack(src []byte, r chunkRange) {
	for i := range r.fragments {
		f := &r.fragments[i]
		dtype, work := kernel.Type(p.dtypes[f.tensor]), p.layout.extents[f.tensor].work
		first := 0
		if p.scattered {
			first = p.rank * p.shards[f.tensor]
		}
		dst := p.outs[f.tensor][(f.lo-first)*dtype.Size() : (f.hi-first)*dtype.Size()]
		from := src[f.at : f.at+(f.hi-f.lo)*work.Size()]
		switch {
		case work != dtype:
			if p.by > 1 {
				kernel.Divide(work)(from, from, p.by)
			}
			kernel.Narrow(dtype)(dst, from)
		case p.by > 1:
			kernel.Divide(work)(dst, from, p.by)
		default:
			kernel.Copy(dst, from, false)
		}
	}
	if !p.scattered {
		return
	}
	for t, out := range p.outs {
		have := min(max(p.elements[t]-p.rank*p.shards[t], 0), p.shards[t])
		clear(out[have*p.dtypes[t].Size():])
	}
}
