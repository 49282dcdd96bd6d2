package gcl

import (
	"context"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// direct carries out a call on several tensors on peer memory in one pass, as shared does for one. Small ones are
// packed for one Gather. Large ones are laid open where they lie, and nothing is packed.
func (m *many) direct(ctx context.Context, c *Comm, whole *call, fingerprint transport.Call) error {
	s := &c.lane.shared
	s.setUp(c, whole, fingerprint)
	published := 0
	for _, in := range m.ins {
		published += len(in)
	}
	if roundUp(published, packAlign) <= s.memory.GatherLimit() {
		return m.gather(ctx, c, whole)
	}
	mems, err := s.memory.Meet(ctx, s.call, s.members, transport.Memory{Ins: m.ins, Outs: m.outs})
	if err != nil {
		return err
	}
	if whole.collective == schedule.AllReduce {
		m.reduceShare(c, whole, mems)
	} else {
		m.work(c, whole, mems)
	}
	err = s.memory.Part(ctx)
	clear(s.dsts) // hold on to nobody's buffers
	clear(s.srcs)
	clear(m.views)
	return err
}

// reduceShare reduces this rank's share of all tensors together, from all inputs to all outputs.
func (m *many) reduceShare(c *Comm, whole *call, mems []transport.Memory) {
	s := &c.lane.shared
	lines := 0
	for _, in := range m.ins {
		lines += roundUp(len(in), lineBytes)
	}
	lo, hi := s.share(lines, s.rank)
	stream := m.streams(len(mems))
	for t, in := range m.ins {
		first, end := max(lo, 0), min(hi, len(in)) // of this tensor
		lo, hi = lo-roundUp(len(in), lineBytes), hi-roundUp(len(in), lineBytes)
		if first >= end {
			continue
		}
		whole.dtype = m.known.dtypes[t]
		s.foldBy(c.foldOf(whole))
		s.stream = stream && address(in) != address(m.outs[t])
		for at := first; at < end; at += pieceBytes {
			if s.memory.Err() != nil {
				return
			}
			next := min(at+pieceBytes, end)
			for r := range mems {
				s.srcs[r], s.dsts[r] = mems[r].Ins[t][at:next], mems[r].Outs[t][at:next]
			}
			s.fold(s.dsts[:len(mems)], s.srcs[:len(mems)], s.by, s.stream)
		}
	}
}

// streams reports whether outputs of so many ranks are so large together that what does not take the place of an
// input is stored past the caches.
func (m *many) streams(ranks int) bool {
	written := 0
	for _, out := range m.outs {
		written += len(out) * ranks
	}
	return written >= streamBytes
}

// work is this rank's part between Meet and Part in the other collectives, tensor after tensor.
func (m *many) work(c *Comm, whole *call, mems []transport.Memory) {
	s := &c.lane.shared
	stream := m.streams(len(mems))
	for t, in := range m.ins {
		if len(in) == 0 {
			continue
		}
		m.views = m.views[:0]
		for r := range mems {
			m.views = append(m.views, transport.Memory{In: mems[r].Ins[t], Out: mems[r].Outs[t]})
		}
		one := *whole
		one.dtype, one.dst, one.src = m.known.dtypes[t], m.outs[t], in
		if reduces(whole.collective) {
			s.foldBy(c.foldOf(&one))
		}
		s.stream = stream && !one.inPlace()
		s.work(&one, m.views)
	}
}

// gather is shared.gather for several tensors: everyone publishes its inputs in one packing.
func (m *many) gather(ctx context.Context, c *Comm, whole *call) error {
	s := &c.lane.shared
	l := m.layoutToPublish()
	m.published.setUp(l, c.foldOf(whole), s.by)
	size := l.bytes()
	staged, _ := c.lane.stage(size, 0)
	mine := staged
	if whole.collective == schedule.Broadcast && s.rank != whole.root {
		mine = nil
	} else {
		for i := range l.fragments {
			f := &l.fragments[i]
			copy(mine[f.at:], m.ins[f.tensor])
		}
	}
	var combiner transport.Combiner
	if whole.collective == schedule.AllReduce {
		combiner = &m.published
	}
	all, combined, err := s.memory.Gather(ctx, s.call, s.members, mine, size, combiner)
	if err != nil {
		return err
	}
	if whole.collective == schedule.AllReduce {
		if all != nil {
			m.published.Combine(staged, all)
			combined = staged
		}
		for i := range l.fragments {
			f := &l.fragments[i]
			copy(m.outs[f.tensor], combined[f.at:])
		}
		return nil
	}
	for i := range l.fragments {
		f := &l.fragments[i]
		one := *whole
		one.dtype, one.dst = m.known.dtypes[f.tensor], m.outs[f.tensor]
		bytes := len(m.ins[f.tensor])
		for r := range all {
			s.srcs[r] = all[r][f.at : f.at+bytes]
		}
		if reduces(whole.collective) {
			s.foldBy(c.foldOf(&one))
		}
		s.take(&one, s.srcs[:len(all)], bytes)
	}
	clear(s.dsts)
	clear(s.srcs)
	return nil
}

// layoutToPublish is the layout of the inputs as they are.
func (m *many) layoutToPublish() *layout {
	p := m.known
	if !p.published.good(1) {
		m.extents = m.extents[:0]
		for t, dtype := range p.dtypes {
			m.extents = append(m.extents, extent{kernel.Type(dtype), len(m.ins[t]) / dtype.Size()})
		}
		p.published.keep(m.layouts.of(m.extents, 1, 0))
	}
	return p.published.layout
}
