package onepass

import (
	"context"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// alone is where an operand lies that has nothing beside it.
var alone = []pack.Fragment{{}}

// Small carries out a job of few bytes: everyone publishes its inputs, several of them in one packing, and takes what
// it needs from what the others have published. In a broadcast and a scatter the root does not even wait for the
// others.
func (s *Pass) Small(ctx context.Context, j *job.Job) error {
	// What the rank publishes, and where the result of all goes before it is the outputs.
	var src, result []byte
	fragments, combiner := alone, transport.Combiner(s)
	if len(j.Ins) == 1 {
		src, result = j.Ins[0], j.Outs[0]
		if s.contract.Deals() && s.rank != s.root {
			result, _ = s.staging.Pair(len(result)*len(s.members), 0)
		}
	} else {
		src = s.publish(j)
		result, fragments, combiner = src, j.Published.Layout().Fragments, &s.published
	}
	switch {
	case s.contract.Input == schedule.AtRoot:
		if s.rank == s.root {
			result = src
		}
		if err := s.boards.Broadcast(ctx, s.call, s.members, s.root, result); err != nil {
			return err
		}
		for i := range fragments {
			out, at := j.Outs[fragments[i].Tensor], fragments[i].At
			if s.contract.Deals() {
				at += s.rank * len(out)
			}
			copy(out, result[at:])
		}
		return nil
	case s.contract.Combines && s.contract.Output == schedule.Whole:
		all, combined, err := s.boards.Gather(ctx, s.call, s.members, src, len(src), combiner)
		if err != nil {
			return err
		}
		if all != nil {
			combiner.Combine(result, all)
			combined = result
		}
		for i := range fragments {
			copy(j.Outs[fragments[i].Tensor], combined[fragments[i].At:])
		}
		return nil
	}
	all, _, err := s.boards.Gather(ctx, s.call, s.members, src, len(src), nil)
	if err != nil || !j.Writes(s.rank) {
		return err
	}
	if len(j.Ins) == 1 {
		s.take(j.Outs[0], all, len(src))
		return nil
	}
	for i := range fragments {
		f := &fragments[i]
		bytes := len(j.Ins[f.Tensor])
		for r := range all {
			s.srcs[r] = all[r][f.At : f.At+bytes]
		}
		if s.contract.Combines {
			s.foldBy(j.Reduction.On(kernel.Type(j.DTypes[f.Tensor]), s.wide))
		}
		s.take(j.Outs[f.Tensor], s.srcs[:len(all)], bytes)
	}
	clear(s.srcs)
	return nil
}

// publish packs the inputs of several operands as they are.
func (s *Pass) publish(j *job.Job) []byte {
	if !j.Published.Good(1) {
		s.extents = s.extents[:0]
		for t, dtype := range j.DTypes {
			s.extents = append(s.extents, pack.Extent{Work: kernel.Type(dtype), Elements: j.ToPublish(t)})
		}
		j.Published.Keep(s.layouts.Of(s.extents, 1, 0))
	}
	l := j.Published.Layout()
	s.published.SetUp(l, j.Reduction.On(0, s.wide), s.by)
	size := l.Bytes()
	staged, _ := s.staging.Pair(size, 0)
	if j.Reads(s.rank) {
		for i := range l.Fragments {
			f := &l.Fragments[i]
			copy(staged[f.At:], j.Ins[f.Tensor])
		}
	}
	return staged[:size]
}

// take makes an output from the inputs that all ranks have published, size bytes each. The rank needs a part of each
// input only, or combines nothing.
func (s *Pass) take(dst []byte, all [][]byte, size int) {
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

// Combine implements transport.Combiner.
func (s *Pass) Combine(dst []byte, all [][]byte) {
	s.dsts[0] = dst
	s.fold(s.dsts[:1], all, s.by, false)
	s.dsts[0] = nil // hold on to nobody's buffer
}
