package gcl

import (
	"context"

	"gogcl.dev/methods/schedule"
)

// gather carries out a small collective with one barrier: everyone publishes its input, and takes what it needs from what the others have published.
func (s *shared) gather(ctx context.Context, k *call, size int) error {
	mine := k.src
	if k.collective == schedule.Broadcast && s.rank != k.root {
		mine = nil
	}
	var combiner *shared
	if k.collective == schedule.AllReduce {
		combiner = s
	}
	all, combined, err := s.gatherBy(ctx, mine, size, combiner)
	if err != nil {
		return err
	}
	if all == nil {
		copy(k.dst, combined)
		return nil
	}
	s.take(k, all, size)
	return nil
}

// take makes the output of a collective of what all ranks have published, size bytes each.
func (s *shared) take(k *call, all [][]byte, size int) {
	switch k.collective {
	case schedule.AllReduce:
		s.Combine(k.dst, all)
	case schedule.ReduceScatter:
		first := min(s.rank*len(k.dst), size)
		have := min(len(k.dst), size-first)
		for r := range all {
			all[r] = all[r][first : first+have]
		}
		s.Combine(k.dst[:have], all)
		clear(k.dst[have:])
	case schedule.AllGather:
		for r := range all {
			copy(k.dst[min(r*size, len(k.dst)):], all[r]) // the last ones may hold padding
		}
	case schedule.AllToAll:
		part := size / len(all)
		for r := range all {
			copy(k.dst[r*part:(r+1)*part], all[r][s.rank*part:])
		}
	case schedule.Broadcast:
		copy(k.dst, all[k.root])
	}
}

func (s *shared) gatherBy(ctx context.Context, mine []byte, size int, c *shared) ([][]byte, []byte, error) {
	if c == nil {
		return s.memory.Gather(ctx, s.call, s.members, mine, size, nil)
	}
	return s.memory.Gather(ctx, s.call, s.members, mine, size, c)
}

// Combine implements transport.Combiner.
func (s *shared) Combine(dst []byte, all [][]byte) {
	s.dsts[0] = dst
	s.fold(s.dsts[:1], all, s.by, false)
}
