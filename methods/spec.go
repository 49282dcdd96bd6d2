package methods

import (
	"errors"
	"fmt"

	"gogcl.dev/methods/schedule"
)

// Spec says which schedule is wanted.
type Spec struct {
	Method     Method
	Collective schedule.Collective
	Size       int // ranks in the group
	Root       int // of a collective that has one, else 0

	// Ring is the ring order: a permutation of the ranks, each linked to the next and the last to the first. Second is
	// the ring that quad_directional_ring uses beside it. Methods that need no ring ignore both.
	Ring, Second []int

	// Pieces is into how many pieces a fragment is cut where the schedule is a pipeline along a chain: a Broadcast or a
	// Reduce on rings, and an AllReduce with RankOrder on rings. Other schedules ignore it. 0 means 1. See Pipelined.
	Pieces int

	// InPlace says that Output is Input. Only an AllToAll needs to be told.
	InPlace bool

	// RankOrder asks for each element to be the left fold of the inputs in the order of the ranks. A Barrier, of whose
	// contributions some count again, has no order and ignores it.
	RankOrder bool
}

// Build returns the schedule of all ranks, which is the caller's. Errors: the methods Auto and Native, which make no
// schedules (errors.ErrUnsupported), or one that is none; an unknown collective, a size below 1 or above
// 65536, a number of pieces below 0 or above 65536, a root or a ring that does not fit the size. Of a method of
// a Generator the errors are those of Prover.Prove, the members being 0 to Size-1.
func Build(s Spec) (*schedule.Schedule, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if w, _ := s.recipe(); w.proved != nil {
		made, err := w.proved(s)
		if err != nil {
			return nil, err
		}
		return copyOf(made.Schedule), nil
	}
	out := s.header()
	out.Programs = make([]schedule.Program, s.Size)
	for rank := range out.Programs {
		out.Programs[rank] = s.program(rank)
	}
	return out, nil
}

// Program returns what one rank does: Build(s).Programs[rank], without the others. Errors are those of Build, and a
// rank that is not in the group.
func (s Spec) Program(rank int) (schedule.Program, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if rank < 0 || rank >= s.Size {
		return nil, fmt.Errorf("methods: rank %d of %d", rank, s.Size)
	}
	return s.program(rank), nil
}

// Chunks is the number of chunks that the schedule cuts its data into, 0 for a Spec that Build refuses.
func (s Spec) Chunks() int {
	if s.check() != nil {
		return 0
	}
	return s.chunks()
}

// Pipelined is s with the Pieces that are best for bytes of data in the larger buffer, over links that carry
// latencyBytes in the latency of one round. Where the schedule is no pipeline it is 0.
func (s Spec) Pipelined(bytes, latencyBytes int64) Spec {
	s.Pieces = 0
	if w := s.lookUp(s.Method.row()); w != nil && w.reach != nil {
		s.Pieces = pipelinePieces(w.reach(s.Size), bytes, latencyBytes)
	}
	return s
}

// maxRanks and specPieces bound lists of steps in memory. They are far beyond what is of use.
const (
	maxRanks   = 1 << 16
	specPieces = 1 << 16
)

func (s Spec) check() error {
	if err := s.checkForm(); err != nil {
		return err
	}
	if w, _ := s.recipe(); w.proved != nil {
		_, err := w.proved(s)
		return err
	}
	return nil
}

// checkForm is check without asking a Generator.
func (s Spec) checkForm() error {
	r := s.Method.row()
	switch {
	case r == nil:
		return fmt.Errorf("methods: %v makes no schedule", s.Method)
	case r.recipes == nil:
		return fmt.Errorf("methods: %v makes no schedule, since %s: %w", s.Method, r.unscheduled,
			errors.ErrUnsupported)
	}
	if err := s.checkNumbers(); err != nil {
		return err
	}
	if _, err := s.recipe(); err != nil {
		return err
	}
	if r.rings > 0 {
		if err := checkRing("ring", s.Ring, s.Size); err != nil {
			return err
		}
	}
	if r.rings > 1 {
		if err := checkRing("second ring", s.Second, s.Size); err != nil {
			return err
		}
	}
	return nil
}

// checkNumbers looks at what has nothing to do with the method.
func (s Spec) checkNumbers() error {
	switch {
	case !s.Collective.Valid():
		return fmt.Errorf("methods: unknown collective %d", s.Collective)
	case s.Collective == schedule.Custom:
		return fmt.Errorf("methods: a collective of a program's own, which methods do not know: gcl's Comm.Execute runs "+
			"its schedule: %w", errors.ErrUnsupported)
	case s.Size < 1:
		return fmt.Errorf("methods: group of %d ranks, want 1 or more", s.Size)
	case s.Size > maxRanks:
		return fmt.Errorf("methods: group of %d ranks, want at most %d", s.Size, maxRanks)
	case s.Root < 0 || s.Root >= s.Size || s.Root != 0 && !s.Collective.Contract().Rooted():
		return fmt.Errorf("methods: root %d of %v over %d ranks", s.Root, s.Collective, s.Size)
	case s.Pieces < 0:
		return fmt.Errorf("methods: %d pieces, want 1 or more, or 0 for 1", s.Pieces)
	case s.Pieces > specPieces:
		return fmt.Errorf("methods: %d pieces, want at most %d", s.Pieces, specPieces)
	}
	return nil
}

func checkRing(what string, ring []int, size int) error {
	switch {
	case len(ring) == 0:
		return fmt.Errorf("methods: no %s for a group of %d ranks: want the ranks in the order of their links, such as 0, 1, "+
			"2 and so on", what, size)
	case len(ring) != size:
		return fmt.Errorf("methods: %s of %d ranks for a group of %d", what, len(ring), size)
	}
	seen := make([]bool, size)
	for _, r := range ring {
		if r < 0 || r >= size || seen[r] {
			return fmt.Errorf("methods: %s %v is not a permutation of 0 to %d", what, ring, size-1)
		}
		seen[r] = true
	}
	return nil
}

func (s Spec) pieces() int { return max(s.Pieces, 1) }

// recipe is how the schedule is made, or an error that is errors.ErrUnsupported.
func (s *Spec) recipe() (*recipe, error) {
	if w := s.lookUp(s.Method.row()); w != nil {
		return w, nil
	}
	if s.Method.row() == nil {
		return nil, fmt.Errorf("methods: %v makes no schedule", s.Method)
	}
	return nil, fmt.Errorf("methods: %v has no way to carry out %v: %w", s.Method, s.Collective, errors.ErrUnsupported)
}

// lookUp finds how the schedule is made in a row, which may be nil, or returns nil. Calls by messages come here.
func (s *Spec) lookUp(r *row) *recipe {
	if r == nil {
		return nil
	}
	of := r.recipes
	if r.inOrder != nil && s.inOrder() {
		of = r.inOrder
	}
	return of.of(s.Collective)
}

// of is how a collective is carried out, or nil.
func (w recipes) of(c schedule.Collective) *recipe {
	if int(c) >= len(w) || w[c].program == nil {
		return nil
	}
	return &w[c]
}

// inOrder reports whether each element must be the left fold of the inputs in the order of the ranks.
func (s *Spec) inOrder() bool {
	return s.RankOrder && inRankOrder(s.Collective)
}

// inRankOrder reports whether a collective can be asked to combine in the order of the ranks.
func inRankOrder(c schedule.Collective) bool {
	contract := c.Contract()
	return contract.Combines && !contract.Again
}

// chunks is Chunks for a Spec that has been checked.
func (s Spec) chunks() int {
	if s.Size == 1 {
		return 1
	}
	w, _ := s.recipe()
	return w.chunks(s)
}

// program is Program for a Spec that has been checked.
func (s Spec) program(rank int) schedule.Program {
	if s.Size == 1 {
		return schedule.Program{{Then: []schedule.Step{keep(0, 1)}}}
	}
	w, _ := s.recipe()
	return w.program(s, rank)
}
