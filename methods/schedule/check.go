package schedule

import (
	"errors"
	"fmt"
)

// Report says what Examine found out about a correct schedule.
type Report struct {
	Rounds int   // of the longest program
	Sent   []int // chunks sent, by rank

	// OneOrder says that all ranks that hold an element of the result hold the same expression: the operands are
	// combined in one order, up to exchanging the two sides of an operator.
	OneOrder bool

	// RankOrder says that this order is the left fold over ranks 0, 1, 2, ...
	RankOrder bool
}

// Check reports what is wrong with a schedule, or nil. It carries out the schedule on symbols, twice, once with Output
// apart from Input and once (unless s.Apart) with Output being Input, and demands that
//   - every send meets a receive of chunks of the same sizes in the same round, and every receive a send: since
//     replicas go through their rounds in order, and a round's moves are in flight together, that leaves no deadlock,
//     even if a send completes only with its receive;
//   - in a round nothing is touched twice, but as [Round] allows, and local steps write nothing that their round
//     sends, but in the last round; no step reads what nobody wrote, or writes in vain,
//     or writes the Input;
//   - in the end every result holds what its [Contract] wants, each contribution exactly once, or with Again at least
//     once.
//
// It takes time and memory proportional to the steps of the schedule times Size/64.
func Check(s *Schedule) error {
	_, err := Examine(s)
	return err
}

// Examine is Check, and says what it learned on the way.
func Examine(s *Schedule) (Report, error) {
	if err := checkForm(s); err != nil {
		return Report{}, err
	}
	r, err := run(s, false)
	if err != nil || s.Apart {
		return r, err
	}
	inPlace, err := run(s, true)
	if err != nil {
		return Report{}, fmt.Errorf("with Output being Input: %w", err)
	}
	r.OneOrder = r.OneOrder && inPlace.OneOrder
	r.RankOrder = r.RankOrder && inPlace.RankOrder
	return r, nil
}

// maxChunks bounds what a check keeps of each rank in memory. It is four times what package methods makes.
const maxChunks = 1 << 20

// checkForm checks what can be seen without running anything.
func checkForm(s *Schedule) error {
	if s == nil {
		return errors.New("schedule: no schedule")
	}
	contract := s.Collective.Contract()
	switch {
	case !s.Collective.Valid():
		return fmt.Errorf("schedule: unknown collective %d", s.Collective)
	case s.Size < 1:
		return fmt.Errorf("schedule: size %d, want 1 or more", s.Size)
	case len(s.Programs) != s.Size:
		return fmt.Errorf("schedule: %d programs for %d ranks", len(s.Programs), s.Size)
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
	case s.Apart && contract.Output != Blocks:
		return fmt.Errorf("schedule: buffers apart in %v, which is not of blocks as an all-to-all is", s.Collective)
	}
	for rank, p := range s.Programs {
		for t, round := range p {
			for i, st := range round.Moves {
				if err := checkStep(s, rank, st, true); err != nil {
					return stepError(rank, t, "move", i, st, err)
				}
			}
			for i, st := range round.Then {
				if err := checkStep(s, rank, st, false); err != nil {
					return stepError(rank, t, "then", i, st, err)
				}
			}
		}
	}
	return nil
}

func stepError(rank, round int, part string, i int, st Step, err error) error {
	return fmt.Errorf("schedule: rank %d round %d %s %d (%v): %w", rank, round, part, i, st, err)
}

func checkStep(s *Schedule, rank int, st Step, move bool) error {
	if st.Verb > Fold {
		return errors.New("unknown verb")
	}
	talks := st.Verb <= RecvReduce
	switch {
	case talks && !move:
		return errors.New("a message stands among the moves")
	case st.Verb == Copy && move:
		return errors.New("a copy stands after the moves")
	case talks && (st.Peer < 0 || st.Peer >= s.Size || st.Peer == rank):
		return fmt.Errorf("peer %d of %d ranks", st.Peer, s.Size)
	case !talks && st.Peer != -1:
		return errors.New("a local step has peer -1")
	case st.Verb == Send && st.Dst != Span{}, st.Verb == Recv && st.Src != Span{}:
		return errors.New("one span too many")
	}
	if st.Verb != Recv {
		if err := checkSpan(s, rank, st.Src, false); err != nil {
			return err
		}
	}
	if st.Verb == Send {
		return nil
	}
	if err := checkSpan(s, rank, st.Dst, true); err != nil {
		return err
	}
	if st.Verb != Recv && !sameSizes(s, st.Src, st.Dst) {
		return errors.New("source and destination have chunks of different sizes")
	}
	return nil
}

func checkSpan(s *Schedule, rank int, sp Span, written bool) error {
	lo, hi := 0, s.Chunks
	switch contract := s.Collective.Contract(); sp.Buf {
	case Input:
		lo, hi = contract.Input.chunks(rank, s.Root, s.Size, s.Chunks)
	case Output:
		lo, hi = contract.Output.chunks(rank, s.Root, s.Size, s.Chunks)
	}
	switch {
	case sp.Buf > Scratch:
		return fmt.Errorf("unknown buffer %d", sp.Buf)
	case sp.Buf == Input && written:
		return errors.New("the input is never written")
	case lo == hi:
		return fmt.Errorf("rank %d has nothing there: in %v only the root has, rank %d", rank, s.Collective, s.Root)
	case sp.Slot < 0 || sp.Slot != 0 && sp.Buf != Scratch:
		return fmt.Errorf("slot %d", sp.Slot)
	case sp.Count < 1 || sp.First < lo || sp.First > hi-sp.Count:
		return fmt.Errorf("chunks %d to %d of %d to %d", sp.First, sp.First+sp.Count-1, lo, hi-1)
	case sp.Base < 0 || sp.Base > sp.First || sp.Base != 0 && sp.Buf != Scratch:
		return fmt.Errorf("a slot that begins with chunk %d has no chunk %d", sp.Base, sp.First)
	}
	return nil
}

// sameSizes reports whether chunk for chunk a and b have the same number of elements, whatever the length of the data.
// Chunks of one number do; where blocks are held, which are of one length, so do chunks at one place of their blocks.
func sameSizes(s *Schedule, a, b Span) bool {
	if a.Count != b.Count {
		return false
	}
	if s.Collective.Contract().Output == Blocks {
		return (a.First-b.First)%(s.Chunks/s.Size) == 0
	}
	return a.First == b.First
}
