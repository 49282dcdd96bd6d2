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
		const size, rounds = 40, 20
		eps := s.connect(t, n)
		all(t, eps, func(e transport.Endpoint) error {
			in, out := make([]byte, size), make([]byte, size)
			for round := range rounds {
				seq := uint64(round + 1)
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
					var batch []transport.Transfer
					switch e.Rank() {
					case x.from:
						if x.from == 2 {
							time.Sleep(2 * time.Millisecond) // so that replica 1 looks about; it passes without
						}
						batch = append(batch, send(x.to, 0, out))
					case x.to:
						batch = append(batch, recv(x.from, 0, in))
					default:
						continue
					}
					if err := e.Exchange(background, c, batch); err != nil {
						return fmt.Errorf("round %d: group %#x: %w", round, x.group, err)
					}
				}
			}
			return nil
		})
	})
}
