package carry

import (
	"context"

	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
)

// small carries out a job on one operand of few bytes: everyone publishes its input, and takes what it needs from what
// the others have published. In a broadcast and a scatter the root does not even wait for the others.
func (s *shared) small(ctx context.Context, w *Way, j *Job) error {
	dst, src := j.Outs[0], j.Ins[0]
	switch {
	case s.contract.Deals():
		if s.rank != s.root {
			src, _ = w.Carrier.stage(len(dst)*len(s.members), 0)
		}
		if err := s.boards.Broadcast(ctx, s.call, s.members, s.root, src); err != nil {
			return err
		}
		copy(dst, src[s.rank*len(dst):])
		return nil
	case s.contract.Input == schedule.AtRoot:
		return s.broadcast(ctx, dst, src)
	case s.contract.Combines && s.contract.Output == schedule.Whole:
		all, combined, err := s.boards.Gather(ctx, s.call, s.members, src, len(src), s)
		switch {
		case err != nil:
			return err
		case all == nil:
			copy(dst, combined)
		default:
			s.Combine(dst, all)
		}
		return nil
	}
	all, _, err := s.boards.Gather(ctx, s.call, s.members, src, len(src), nil)
	if err != nil {
		return err
	}
	if j.Writes(s.rank) {
		s.take(dst, all, len(src))
	}
	return nil
}

// small is shared.small for another number of operands: everyone publishes its inputs in one packing.
func (m *packed) small(ctx context.Context, w *Way, j *Job) error {
	s := &w.Carrier.shared
	l := m.layoutToPublish(j)
	m.published.SetUp(l, w.foldOf(&j.Ask, 0), s.by)
	size := l.Bytes()
	staged, _ := w.Carrier.stage(size, 0)
	staged = staged[:size]
	if j.Reads(s.rank) {
		for i := range l.Fragments {
			f := &l.Fragments[i]
			copy(staged[f.At:], j.Ins[f.Tensor])
		}
	}
	switch {
	case s.contract.Input == schedule.AtRoot:
		if err := s.boards.Broadcast(ctx, s.call, s.members, s.root, staged); err != nil {
			return err
		}
		if s.contract.Deals() {
			for i := range l.Fragments {
				f := &l.Fragments[i]
				out := j.Outs[f.Tensor]
				copy(out, staged[f.At+s.rank*len(out):])
			}
			return nil
		}
		j.unpackPublished(l, staged)
		return nil
	case s.contract.Combines && s.contract.Output == schedule.Whole:
		all, combined, err := s.boards.Gather(ctx, s.call, s.members, staged, size, &m.published)
		if err != nil {
			return err
		}
		if all != nil {
			m.published.Combine(staged, all)
			combined = staged
		}
		j.unpackPublished(l, combined)
		return nil
	}
	all, _, err := s.boards.Gather(ctx, s.call, s.members, staged, size, nil)
	if err != nil {
		return err
	}
	if !j.Writes(s.rank) {
		return nil
	}
	for i := range l.Fragments {
		f := &l.Fragments[i]
		bytes := len(j.Ins[f.Tensor])
		for r := range all {
			s.srcs[r] = all[r][f.At : f.At+bytes]
		}
		if s.contract.Combines {
			s.foldBy(w.foldOf(&j.Ask, kernel.Type(j.DTypes[f.Tensor])))
		}
		s.take(j.Outs[f.Tensor], s.srcs[:len(all)], bytes)
	}
	clear(s.dsts)
	clear(s.srcs)
	return nil
}

// unpackPublished fills the outputs from a packing of whole tensors.
func (j *Job) unpackPublished(l *pack.Layout, src []byte) {
	for i := range l.Fragments {
		f := &l.Fragments[i]
		copy(j.Outs[f.Tensor], src[f.At:])
	}
}

// layoutToPublish is the layout of the inputs as they are.
func (m *packed) layoutToPublish(j *Job) *pack.Layout {
	if !j.Published.good(1) {
		m.extents = m.extents[:0]
		for t, dtype := range j.DTypes {
			m.extents = append(m.extents, pack.Extent{Work: kernel.Type(dtype), Elements: j.toPublish(t)})
		}
		j.Published.keep(m.layouts.Of(m.extents, 1, 0))
	}
	return j.Published.layout
}

// take makes an output from the inputs that all ranks have published, size bytes each. The rank needs a part of each
// input only, or combines nothing.
func (s *shared) take(dst []byte, all [][]byte, size int) {
	switch {
	case s.contract.Combines && s.contract.Output == schedule.AtRoot:
		s.Combine(dst, all)
	case s.contract.Combines:
		first, have := shard(size, len(dst), s.rank)
		for r := range all {
			s.srcs[r] = all[r][first : first+have]
		}
		s.Combine(dst[:have], s.srcs[:len(all)])
		clear(dst[have:])
	case s.contract.Input == schedule.Own:
		for r := range all {
			copy(dst[min(r*size, len(dst)):], all[r]) // the last ones may hold padding
		}
	case s.contract.Input == schedule.Blocks:
		part := size / len(all)
		for r := range all {
			copy(dst[r*part:(r+1)*part], all[r][s.rank*part:])
		}
	}
}

// broadcast sends the root's input, or receives it.
func (s *shared) broadcast(ctx context.Context, dst, src []byte) error {
	buf := dst
	if s.rank == s.root {
		buf = src
	}
	if err := s.boards.Broadcast(ctx, s.call, s.members, s.root, buf); err != nil {
		return err
	}
	if s.rank == s.root {
		copy(dst, src)
	}
	return nil
}

// Combine implements transport.Combiner.
func (s *shared) Combine(dst []byte, all [][]byte) {
	s.dsts[0] = dst
	s.fold(s.dsts[:1], all, s.by, false)
	s.dsts[0] = nil // hold on to nobody's buffer
}
