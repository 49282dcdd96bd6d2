package rounds

import "gogcl.dev/methods"

// Given is a schedule that a call comes with, proved, as one rank of a group carries it out.
type Given struct {
	*methods.Proved
	set      *Set
	apart    bool        // the two buffers must not be the same memory
	total    int         // sizes of all chunks of a contract of a program's own
	plan     *Plan       // by messages; nil: not made yet
	onMemory *MemoryPlan // on peer memory; nil: not made yet
}

// NewGiven makes ready a schedule whose plans are those of set. apart: the two buffers must not be the same memory.
func NewGiven(proved *methods.Proved, set *Set, apart bool) *Given {
	g := &Given{Proved: proved, set: set, apart: apart}
	for f := range g.Chunks {
		g.total += g.Custom.Size(f)
	}
	return g
}

// Total is the sizes of all chunks of a contract of a program's own.
func (g *Given) Total() int { return g.total }

// OutputApart reports whether the destination must not be the input.
func (g *Given) OutputApart() bool { return g.apart }

// OnMemory finds the executor of a rank on peer memory, or makes it.
func (g *Given) OnMemory(on *Runner, rank int) (Executor, error) {
	if g.onMemory == nil {
		var err error
		if g.onMemory, err = NewMemoryPlan(on, g.set, rank); err != nil {
			return nil, err
		}
	}
	return g.onMemory, nil
}

// ByMessages finds the executor of a rank by messages, or makes it.
func (g *Given) ByMessages(on *Runner, rank int, barriers bool) (Executor, error) {
	if g.plan == nil {
		var err error
		if g.plan, err = NewPlan(on, g.set.Programs, rank, g.set.members, barriers); err != nil {
			return nil, err
		}
	}
	g.plan.barriers = barriers
	return g.plan, nil
}

// Lists are the places of chunks in the rank's buffers, once there is an executor.
func (g *Given) Lists() *Lists {
	if g.plan != nil {
		return g.plan.lists
	}
	return g.onMemory.plan.lists
}
