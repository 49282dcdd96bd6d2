package transporttest

import (
	"fmt"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// sharedMembers has replicas in calls of groups with members in common. Numbers ascend in each group, and not from one
// group to another, also where two groups have the same members. Replica 1 waits for 2 while messages come of calls
// that it is still to make, and of groups whose numbers are smaller or greater than its last. Nobody may take them for
// calls gone by.
func (s *suite) sharedMembers(t *testing.T) {
	s.replicas(t, []int{3}, func(t *testing.T, n int) {
		all(t, s.connect(t, n), func(e transport.Endpoint) error {
			for round := range 20 {
				if err := s.sharedRound(e, uint64(round+1)); err != nil {
					return fmt.Errorf("round %d: %w", round, err)
				}
			}
			return nil
		})
	})
}

// sharedRound has a replica take its part in five calls of four groups.
func (s *suite) sharedRound(e transport.Endpoint, seq uint64) error {
	steps := []struct {
		group, seq uint64
		from, to   int
	}{
		{0xa1, 1<<63 | seq<<16, 0, 1}, // the same members in two groups
		{0xa2, seq, 0, 1},
		{0xb, 1<<40 + seq, 2, 1},
		{0xa1, 1<<63 | seq<<16 | 1, 0, 1},
		{0xa3, seq, 0, 1},
	}
	// Replica 1 waits first for the one that comes last.
	if e.Rank() == 1 {
		steps[0], steps[1], steps[2] = steps[2], steps[0], steps[1]
	}
	for _, x := range steps {
		c := call(0, 0)
		c.Group, c.Seq = x.group, x.seq
		batch := []transport.Transfer{recv(x.from, 0, make([]byte, 40))}
		switch e.Rank() {
		case x.from:
			batch[0] = send(x.to, 0, make([]byte, 40))
		case x.to:
		default:
			continue
		}
		if e.Rank() == 2 {
			s.clock.Sleep(e, 2*time.Millisecond) // so that replica 1 looks about; it passes without
		}
		if err := e.Exchange(background, c, batch); err != nil {
			return fmt.Errorf("group %#x: %w", x.group, err)
		}
	}
	return nil
}
