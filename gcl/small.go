package gcl

import (
	"context"

	"gogcl.dev/methods/schedule"
)

// small carries out a collective of few bytes: everyone publishes its input, and takes what it needs from what the
// others have published. A broadcast does not even wait for the others.
func (s *shared) small(ctx context.Context, k *call, size int) error {
	switch contract := k.collective.Contract(); {
	case contract.Input == schedule.AtRoot:
		return s.broadcast(ctx, k)
	case contract.Combines && contract.Output == schedule.Whole:
		all, combined, err := s.memory.Gather(ctx, s.call, s.members, k.src, size, s)
		switch {
		case err != nil:
			return err
		case all == nil:
			copy(k.dst, combined)
		default:
			s.Combine(k.dst, all)
		}
		return nil
	}
	all, _, err := s.memory.Gather(ctx, s.call, s.members, k.src, size, nil)
	if err != nil {
		return err
	}
	s.take(k, all, size)
	return nil
}

// take makes the output of a reduce-scatter, all-gather or all-to-all of what all ranks have published, size bytes
// each.
func (s *shared) take(k *call, all [][]byte, size int) {
	switch contract := k.collective.Contract(); {
	case contract.Combines:
		first, have := shard(size, len(k.dst), s.rank)
		for r := range all {
			s.srcs[r] = all[r][first : first+have]
		}
		s.Combine(k.dst[:have], s.srcs[:len(all)])
		clear(k.dst[have:])
	case contract.Input == schedule.Own:
		for r := range all {
			copy(k.dst[min(r*size, len(k.dst)):], all[r]) // the last ones may hold padding
		}
	case contract.Input == schedule.Blocks:
		part := size / len(all)
		for r := range all {
			copy(k.dst[r*part:(r+1)*part], all[r][s.rank*part:])
		}
	}
}

// broadcast sends the root's input, or receives it.
func (s *shared) broadcast(ctx context.Context, k *call) error {
	buf := k.dst
	if s.rank == k.root {
		buf = k.src
	}
	if err := s.memory.Broadcast(ctx, s.call, s.members, k.root, buf); err != nil {
		return err
	}
	if s.rank == k.root {
		copy(k.dst, k.src)
	}
	return nil
}

// Combine implements transport.Combiner.
func (s *shared) Combine(dst []byte, all [][]byte) {
	s.dsts[0] = dst
	s.fold(s.dsts[:1], all, s.by, false)
	s.dsts[0] = nil // hold on to nobody's buffer
}
