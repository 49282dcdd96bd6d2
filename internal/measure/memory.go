package measure

import "fmt"

// checkMemory asks the system for the buffers of the largest size, two for each of the replicas on this host, and gives
// them back untouched. Without this the Go runtime would end a process that is refused one, with all its stacks.
//
// The system may promise what it cannot keep. Then it ends the process that touches too much.
func (s *Settings) checkMemory(local int) error {
	largest := s.Sizes[len(s.Sizes)-1]
	padding := float64(s.N * s.elementBytes()) // at most: a size is rounded up to a whole element for each replica
	if err := reserve(2 * float64(local) * (float64(largest) + padding)); err != nil {
		return fmt.Errorf("two buffers of %s for each of %d replicas on this host: %w; want a smaller -max or -sizes, or "+
			"a smaller -n", FormatSize(largest), local, err)
	}
	return nil
}
