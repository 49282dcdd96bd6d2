package methods

import (
	"fmt"

	"gogcl.dev/methods/schedule"
)

// Spec says which schedule is wanted.
type Spec struct {
	Method     Method
	Collective schedule.Collective
	Size       int // ranks in the group
	Root       int // of a Broadcast

	// Ring is the ring order: a permutation of the ranks, each linked to the next and the last to the first. Second is
	// the ring that quad_directional_ring uses beside it. Methods that need no ring ignore both.
	Ring, Second []int

	// Pieces is into how many pieces a fragment is cut where the schedule is a pipeline along a chain: a Broadcast on
	// rings, and an AllReduce with RankOrder on rings, both of which else ignore it. 0 means 1. See PipelinePieces.
	Pieces int

	// InPlace says that Output is Input. Only an AllToAll needs to be told.
	InPlace bool

	// RankOrder asks for each element to be the left fold of the inputs in the order of the ranks.
	RankOrder bool
}

// Build returns the schedule of all ranks, which is the caller's. Errors: the method Auto or one that is none, an
// unknown collective, a size below 1 or above 65536, a number of pieces below 0 or above 65536, a root or a ring that
// does not fit the size.
func Build(s Spec) (*schedule.Schedule, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	out := &schedule.Schedule{
		Collective: s.Collective,
		Size:       s.Size,
		Root:       s.Root,
		Chunks:     s.Chunks(),
		Apart:      s.Collective.Contract().Output == schedule.Blocks && !s.InPlace,
		Programs:   make([]schedule.Program, s.Size),
	}
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
	switch {
	case s.check() != nil:
		return 0
	case s.Size == 1:
		return 1
	case s.chained():
		if s.Collective == schedule.ReduceScatter {
			return s.Size
		}
		return s.pieces()
	case s.Method == SendToAll && (s.Collective == schedule.AllReduce || s.Collective == schedule.Broadcast):
		return 1
	case s.Method == RecursiveDoubling && (s.Collective == schedule.AllReduce || s.Collective == schedule.Broadcast):
		return 1
	case !s.rings():
		return s.Size
	case s.Collective == schedule.Broadcast:
		return s.fragments() * s.pieces()
	}
	return s.fragments() * s.Size
}

// maxRanks and specPieces bound lists of steps in memory. They are far beyond what is of use.
const (
	maxRanks   = 1 << 16
	specPieces = 1 << 16
)

func (s Spec) check() error {
	switch {
	case s.Method == Auto || s.Method >= numMethods:
		return fmt.Errorf("methods: %v makes no schedule", s.Method)
	case !s.Collective.Valid():
		return fmt.Errorf("methods: unknown collective %d", s.Collective)
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
	if !s.rings() {
		return nil
	}
	if err := checkRing("ring", s.Ring, s.Size); err != nil {
		return err
	}
	if s.Method == QuadDirectionalRing {
		return checkRing("second ring", s.Second, s.Size)
	}
	return nil
}

func checkRing(what string, ring []int, size int) error {
	if len(ring) != size {
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

// rings reports whether the method sends round rings.
func (s Spec) rings() bool {
	return s.Method != SendToAll && s.Method != Direct && s.Method != RecursiveDoubling
}

// chained reports whether the reduction goes along a chain of ranks, which is how rings and recursive doubling keep
// the order of the ranks.
func (s Spec) chained() bool {
	return s.RankOrder && s.Collective.Contract().Combines && s.Method != SendToAll && s.Method != Direct
}

// program is Program for a Spec that has been checked.
func (s Spec) program(rank int) schedule.Program {
	if s.Size == 1 {
		return schedule.Program{{Then: []schedule.Step{keep(0, 1)}}}
	}
	if s.Method == SendToAll || s.Method == Direct {
		return s.straight(rank)
	}
	if s.chained() {
		return s.chain(rank)
	}
	if s.Method == RecursiveDoubling {
		return s.doubling(rank)
	}
	lanes := s.lanes(rank)
	switch s.Collective {
	case schedule.AllReduce:
		return append(s.laneReduceScatter(lanes), s.laneAllGather(lanes)...)
	case schedule.ReduceScatter:
		return s.laneReduceScatter(lanes)
	case schedule.AllGather:
		return s.laneAllGather(lanes)
	case schedule.AllToAll:
		return s.laneAllToAll(lanes)
	default:
		return s.laneBroadcast(lanes)
	}
}
