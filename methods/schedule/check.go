package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"
)

// Check reports what is wrong with a schedule, or nil. It carries out the schedule on symbols, twice, once with Output
// apart from Input and once (unless s.Apart) with Output being Input, and demands that
//   - every send meets a receive of chunks of the same sizes in the same round, and every receive a send: since
//     replicas go through their rounds in order, and a round's moves are in flight together, that leaves no deadlock,
//     even if a send completes only with its receive;
//   - in a round nothing is touched twice, but as [Round] allows, and local steps write nothing that their round
//     sends, but in the last round; no step reads what nobody wrote, or writes the Input;
//   - in the end every result holds what its [Contract] wants, each contribution exactly once, or with Again at least
//     once.
//
// A schedule that moves data for nothing is right: [Examine] counts that, and [Report.CheckWaste] makes it an error.
//
// An error is one line. Where a chunk is not what it should be, the lines after that have its way: which steps led to
// what is there, round by round, where the chunk is instead and since when, and what became of it. A long way is
// shortened in its middle. The schedule is carried out once more for that, after it has been refused.
//
// It takes time proportional to the chunks that the steps touch. It keeps a few bytes for each chunk of each rank, and
// for each distinct partial result. More than 384 MiB and 16 KiB for each step is an error.
//
// Where more than 64 ranks combine something, contributors are known by sums of numbers. For up to 65,536 ranks these
// accept a wrong schedule with a probability below 2^-81 (sum.go). With Again contributors are sets, of Size/8 bytes
// each. A schedule that is refused is carried out once more with sets, which say what is missing or counts twice. Where
// all ranks together have more than 65,536 chunks, that is done for one wrong chunk.
func Check(s *Schedule) error {
	e := examination{schedule: s}
	if err := e.form(); err != nil {
		return err
	}
	_, err := e.examine(s)
	return err
}

// Examine is Check, and says what it learned on the way.
func Examine(s *Schedule) (Report, error) {
	e := examination{schedule: s, reports: true}
	if err := e.form(); err != nil {
		return Report{}, err
	}
	return e.examine(s)
}

// Report is Examine.
func (s *Schedule) Report() (Report, error) { return Examine(s) }

// ExamineByRank is Examine of a schedule that need not be in memory. s says all but the programs, of which it has none.
// program makes that of a rank, and is called for each rank once, in order; what it returns is
// kept packed, in a third of its size. Errors are those of Examine and of program.
func ExamineByRank(s *Schedule, program func(rank int) (Program, error)) (Report, error) {
	switch {
	case program == nil:
		return Report{}, errors.New("schedule: no function that makes programs")
	case s != nil && len(s.Programs) > 0:
		return Report{}, fmt.Errorf("schedule: %d programs beside a function that makes them", len(s.Programs))
	case s != nil && s.Size > maxBuiltRanks:
		return Report{}, fmt.Errorf("schedule: size %d, want 1 to %d", s.Size, maxBuiltRanks)
	}
	e := examination{schedule: s, reports: true}
	programs := 0
	if s != nil {
		programs = s.Size
	}
	if err := e.header(programs); err != nil {
		return Report{}, err
	}
	from, f := &compact{programs: make([]compactProgram, s.Size)}, forms{s: s}
	for rank := range from.programs {
		p, err := program(rank)
		if err != nil {
			return Report{}, err
		}
		if err := f.program(rank, p); err != nil {
			return Report{}, err
		}
		from.programs[rank] = pack(p)
	}
	return e.examine(from)
}

// examination is how a schedule is examined.
type examination struct {
	schedule *Schedule
	fault    *chunkError // of the one chunk that matters; nil: all do
	reports  bool        // all of the Report is wanted
	sums     bool        // contributors of any number of ranks are known by their sums
	budget   int64       // bytes that the check may take besides those for the steps; 0: budgetBytes
}

// exactRanks is up to how many ranks contributors are sets in any case: those that fit a word.
const exactRanks = 64

// examine carries out programs that have been checked for their form.
func (e *examination) examine(from source) (Report, error) {
	s := e.schedule
	again := s.Again || s.Contract().Again
	if !again && (s.Size > exactRanks || e.sums) {
		r, err := e.twice(from, false, false)
		if lack := (*budgetError)(nil); err != nil && !errors.As(err, &lack) {
			return Report{}, e.traced(from, e.explain(from, err))
		}
		return r, err
	}
	r, err := e.twice(from, again, true)
	return r, e.traced(from, err)
}

// twice carries out programs with Output apart from Input, and (unless s.Apart) with Output being Input. With sums both
// go side by side, which costs least. With sets each goes by itself. So a fault is found sooner, and its text has
// values in the order in which they were made.
func (e *examination) twice(from source, again, exact bool) (Report, error) {
	s := e.schedule
	r := Report{Collective: s.Collective, Custom: s.Custom, Size: s.Size, Chunks: s.Chunks, Again: again,
		OneOrder: true, RankOrder: true}
	terms, err := e.newTerms(from, again, exact)
	if err != nil {
		return Report{}, err
	}
	machines := []*machine{e.newMachine(terms, false)}
	if e.reports {
		machines[0].tally = newTally(&r)
	}
	apart := s.NeedsApart()
	if !apart && exact {
		if err := e.finish(from, machines, &r); err != nil {
			return Report{}, err
		}
		if terms, err = e.newTerms(from, again, exact); err != nil {
			return Report{}, err
		}
		machines = nil
	}
	if !apart {
		machines = append(machines, e.newMachine(terms, true))
	}
	if err := e.finish(from, machines, &r); err != nil {
		return Report{}, err
	}
	if e.reports {
		r.Least = least(s, r.Ports)
	}
	return r, nil
}

// newTerms makes terms for programs, with the budget that machines and a tally take from too.
func (e *examination) newTerms(from source, again, exact bool) (*terms, error) {
	s := e.schedule
	budget := newBudget(cmp.Or(e.budget, budgetBytes), from.steps())
	states := int64(s.Size) * int64(s.Chunks)
	budget.take(states * int64(unsafe.Sizeof(value(0)))) // terms.leafs
	if e.reports {
		budget.take(states * int64(unsafe.Sizeof(int32(0)))) // tally.latest
	}
	if err := budget.lack(); err != nil {
		return nil, fmt.Errorf("schedule: %w", err)
	}
	return newTerms(s.Size, s.Chunks, again, exact, budget), nil
}

// finish runs machines side by side, and completes the report.
func (e *examination) finish(from source, machines []*machine, r *Report) error {
	r.Rounds = run(from, e.schedule.Size, machines)
	for _, m := range machines {
		if m.err == nil {
			m.err = m.outcome(r)
		}
		switch {
		case m.err != nil && m.inPlace:
			return &inPlaceError{m.err}
		case m.err != nil:
			return m.err
		}
	}
	return nil
}

// form checks what can be seen without running anything.
func (e *examination) form() error {
	s := e.schedule
	programs := 0
	if s != nil {
		programs = len(s.Programs)
	}
	if err := e.header(programs); err != nil {
		return err
	}
	f := forms{s: s}
	for rank, p := range s.Programs {
		if err := f.program(rank, p); err != nil {
			return err
		}
	}
	return nil
}

// header checks all but the programs, of which there are so many.
func (e *examination) header(programs int) error {
	if err := checkHeader(e.schedule, programs); err != nil {
		return err
	}
	if s := e.schedule; int64(s.Size)*int64(s.Chunks) > maxState {
		return fmt.Errorf("schedule: %d chunks on %d ranks are %d, and a check keeps %d at most", s.Chunks, s.Size,
			int64(s.Size)*int64(s.Chunks), maxState)
	}
	return nil
}

// forms checks the steps of one rank after the other, each for itself.
type forms struct {
	s    *Schedule
	rank int

	// Of a contract of a program's own:
	places [2][]int32 // see enter
	parts  []Span     // of runs
}

// program checks the steps of a rank.
func (f *forms) program(rank int, p Program) error {
	f.enter(rank)
	for t, round := range p {
		for i := range round.Moves {
			if err := f.step(&round.Moves[i], true); err != nil {
				return stepError(rank, t, "move", i, round.Moves[i], err)
			}
		}
		for i := range round.Then {
			if err := f.step(&round.Then[i], false); err != nil {
				return stepError(rank, t, "then", i, round.Then[i], err)
			}
		}
	}
	return nil
}

func stepError(rank, round int, part string, i int, st Step, err error) error {
	return &cellError{rank: rank, round: round,
		error: fmt.Errorf("schedule: rank %d round %d %s %d (%v): %w", rank, round, part, i, st, err)}
}

func (f *forms) step(st *Step, move bool) error {
	if st.Verb > Fold {
		return errors.New("unknown verb")
	}
	talks := st.Verb <= RecvReduce
	switch {
	case talks && !move:
		return errors.New("a message stands among the moves")
	case st.Verb == Copy && move:
		return errors.New("a copy stands after the moves")
	case talks && (st.Peer < 0 || st.Peer >= f.s.Size || st.Peer == f.rank):
		return fmt.Errorf("peer %d of %d ranks", st.Peer, f.s.Size)
	case !talks && st.Peer != -1:
		return errors.New("a local step has peer -1")
	case st.Verb == Send && st.Dst != Span{}, st.Verb == Recv && st.Src != Span{}:
		return errors.New("one span too many")
	}
	if st.Verb != Recv {
		if err := f.span(&st.Src, false); err != nil {
			return err
		}
	}
	if st.Verb == Send {
		return nil
	}
	if err := f.span(&st.Dst, true); err != nil {
		return err
	}
	if st.Verb != Recv && !sameSizes(f.s, &st.Src, &st.Dst) {
		return errors.New("source and destination have chunks of different sizes")
	}
	return nil
}

func (f *forms) span(sp *Span, written bool) error {
	s, rank := f.s, f.rank
	lo, hi := 0, s.Chunks
	switch contract := s.Collective.Contract(); sp.Buf {
	case Input:
		lo, hi = contract.Input.chunks(rank, s.Root, s.Size, s.Chunks)
	case Output:
		lo, hi = contract.Output.chunks(rank, s.Root, s.Size, s.Chunks)
	}
	listed := s.Custom != nil && sp.Buf != Scratch
	switch {
	case sp.Buf > Scratch:
		return fmt.Errorf("unknown buffer %d", sp.Buf)
	case sp.Buf == Input && written:
		return errors.New("the input is never written")
	case lo == hi:
		return fmt.Errorf("rank %d has nothing there: in %v only the root has, rank %d", rank, s.Collective, s.Root)
	case sp.Slot < 0 || sp.Slot != 0 && sp.Buf != Scratch:
		return fmt.Errorf("slot %d", sp.Slot)
	case sp.Slot >= maxSlots:
		return fmt.Errorf("slot %d, want 0 to %d", sp.Slot, maxSlots-1)
	case sp.Stride != 0 || sp.Run != 0:
		if sp.Base != 0 && sp.Buf != Scratch {
			return fmt.Errorf("base %d", sp.Base)
		}
		if err := checkStride(sp, lo, hi, s.Chunks); err != nil || !listed {
			return err
		}
		return f.runs(sp)
	case sp.Count < 1 || sp.First < lo || sp.First > hi-sp.Count:
		return fmt.Errorf("chunks %d to %d of %d to %d", sp.First, sp.First+sp.Count-1, lo, hi-1)
	case listed && !f.lists(sp.Buf, sp.First, sp.Count):
		return fmt.Errorf("rank %d does not have %s there, one after the other", rank,
			numbered("chunk", sp.First, sp.First+sp.Count-1))
	case sp.Base < 0 || sp.Base > sp.First || sp.Base != 0 && sp.Buf != Scratch:
		return fmt.Errorf("a slot that begins with chunk %d has no chunk %d", sp.Base, sp.First)
	}
	return nil
}

// sameSizes reports whether chunk for chunk a and b have the same number of elements, whatever the length of the data.
// Chunks of one number do; where blocks are held, which are of one length, so do chunks at one place of their blocks.
func sameSizes(s *Schedule, a, b *Span) bool {
	if a.Count != b.Count {
		return false
	}
	blocks := s.Collective.Contract().Output == Blocks
	if a.Stride != 0 || b.Stride != 0 {
		x, y := a.walk(s.Chunks), b.walk(s.Chunks)
		for range a.Count {
			f, g := x.next(), y.next()
			if f != g && (!blocks || (f-g)%(s.Chunks/s.Size) != 0) {
				return false
			}
		}
		return true
	}
	if blocks {
		return (a.First-b.First)%(s.Chunks/s.Size) == 0
	}
	return a.First == b.First
}
