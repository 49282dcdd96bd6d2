package rounds

import (
	"context"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// Executor carries out a schedule: a *Plan or a *MemoryPlan.
type Executor interface {
	// Execute carries out runs of which only the caller's part is filled in, all of one call.
	Execute(ctx context.Context, runs []Run) error

	// Cut is into how many chunks the data is cut.
	Cut() int

	// Apart reports whether output and input must be different memory.
	Apart() bool

	// Length is the number of rounds.
	Length() int

	// Summary stands for the schedule of a program's own method in the fingerprint of a call.
	Summary() uint64
}

// Programs makes the programs of the ranks of a schedule.
type Programs struct {
	Spec   methods.Spec
	Proved *methods.Proved // of a program's own method; nil: the Spec makes them
}

// program makes that of a rank.
func (p *Programs) program(rank int) (schedule.Program, error) {
	if p.Proved != nil {
		return p.Proved.Programs[rank], nil
	}
	return p.Spec.Program(rank)
}

// Key is what decides on a plan, given the group.
type Key struct {
	Method     methods.Method
	Collective schedule.Collective
	Root       int
	Pieces     int
	InPlace    bool
	RankOrder  bool
	Barriers   bool
	OnMemory   bool
}
