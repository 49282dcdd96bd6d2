package gcl

import (
	"context"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// onePass carries out a call on several tensors on peer memory in one pass, as shared does for one. Small ones are packed
// for one Gather or Broadcast. Large ones are laid open where they lie, and nothing is packed.
func (m *many) onePass(ctx context.Context, c *Comm, whole *call, r route, fingerprint transport.Call) error {
	s := &c.lane.shared
	s.setUp(c, whole, &fingerprint, r.method)
	c.chosenOnePass(r)
	if r.path == PathSmall {
		return m.small(ctx, c, whole)
	}
	if c.options.StageFragments {
		m.stageInputs(c, whole)
	}
	m.published.loops(c.foldOf(whole))
	s.begin(&m.published)
	for t, dtype := range m.known.dtypes {
		s.add(kernel.Type(dtype), m.outs[t], m.ins[t])
	}
	if err := s.share(ctx, transport.Memory{Ins: m.ins, Outs: m.outs}); err != nil {
		return err
	}
	for t, out := range m.outs {
		s.clearTail(out, len(m.ins[t]))
	}
	return nil
}

// small is shared.small for several tensors: everyone publishes its inputs in one packing.
func (m *many) small(ctx context.Context, c *Comm, whole *call) error {
	s := &c.lane.shared
	l := m.layoutToPublish()
	m.published.setUp(l, c.foldOf(whole), s.by)
	size := l.bytes()
	staged, _ := c.lane.stage(size, 0)
	staged = staged[:size]
	if whole.reads(s.rank) {
		for i := range l.fragments {
			f := &l.fragments[i]
			copy(staged[f.at:], m.ins[f.tensor])
		}
	}
	switch contract := whole.collective.Contract(); {
	case contract.Input == schedule.AtRoot:
		if err := s.memory.Broadcast(ctx, s.call, s.members, whole.root, staged); err != nil {
			return err
		}
		m.unpackPublished(l, staged)
		return nil
	case contract.Combines && contract.Output == schedule.Whole:
		all, combined, err := s.memory.Gather(ctx, s.call, s.members, staged, size, &m.published)
		if err != nil {
			return err
		}
		if all != nil {
			m.published.Combine(staged, all)
			combined = staged
		}
		m.unpackPublished(l, combined)
		return nil
	}
	all, _, err := s.memory.Gather(ctx, s.call, s.members, staged, size, nil)
	if err != nil {
		return err
	}
	for i := range l.fragments {
		f := &l.fragments[i]
		one := call{collective: whole.collective, operator: whole.operator, dtype: m.known.dtypes[f.tensor], dst: m.outs[f.tensor]}
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

// unpackPublished fills the outputs from a packing of whole tensors.
func (m *many) unpackPublished(l *layout, src []byte) {
	for i := range l.fragments {
		f := &l.fragments[i]
		copy(m.outs[f.tensor], src[f.at:])
	}
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
