package schedule

import (
	"errors"
	"fmt"
)

// checkHeader checks what a schedule says of itself.
func checkHeader(s *Schedule, programs int) error {
	if s == nil {
		return errors.New("schedule: no schedule")
	}
	contract := s.Contract()
	switch {
	case !s.Collective.Valid():
		return fmt.Errorf("schedule: unknown collective %d", s.Collective)
	case s.Size < 1:
		return fmt.Errorf("schedule: size %d, want 1 or more", s.Size)
	case programs != s.Size:
		return fmt.Errorf("schedule: %d programs for %d ranks", programs, s.Size)
	case s.Chunks < 1:
		return fmt.Errorf("schedule: %d chunks, want 1 or more", s.Chunks)
	case s.Chunks > maxChunks:
		return fmt.Errorf("schedule: %d chunks, want at most %d", s.Chunks, maxChunks)
	case contract.PerRank() && s.Chunks%s.Size != 0:
		return fmt.Errorf("schedule: %d chunks of %v are not a multiple of %d ranks", s.Chunks, s.Collective, s.Size)
	case s.Root < 0 || s.Root >= s.Size || s.Root != 0 && !contract.Rooted():
		return fmt.Errorf("schedule: root %d of %v over %d ranks", s.Root, s.Collective, s.Size)
	case s.Again && !contract.Combines:
		return fmt.Errorf("schedule: contributions that count again in %v, which combines none", s.Collective)
	case s.Apart && contract.Output != Blocks && contract.Output != Listed:
		return fmt.Errorf("schedule: buffers apart in %v, which is not of blocks as an all-to-all is", s.Collective)
	}
	return checkCustom(s)
}

// checkCustom checks that a schedule has a contract of its own if its collective wants one, for its ranks and chunks.
func checkCustom(s *Schedule) error {
	listed := s.Collective.Contract().Output == Listed
	switch c := s.Custom; {
	case c == nil && listed:
		return fmt.Errorf("schedule: a %v collective without a contract, want one in Schedule.Custom", s.Collective)
	case c == nil:
		return nil
	case !listed:
		return fmt.Errorf("schedule: %v with a contract of a program's own, want the collective %v", s.Collective, Custom)
	case len(c.Inputs) != s.Size:
		return fmt.Errorf("schedule: %s: a contract of %s, and the schedule has %d", c.title(),
			counted(len(c.Inputs), "rank"), s.Size)
	}
	if err := s.Custom.Check(); err != nil {
		return err
	}
	if n := s.Custom.Chunks(); n != s.Chunks {
		return fmt.Errorf("schedule: %s: a contract of %s, and the schedule has %d", s.Custom.title(),
			counted(n, "chunk"), s.Chunks)
	}
	return nil
}
