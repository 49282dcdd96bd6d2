package schedule

import "fmt"

// Verb says what a Step does.
type Verb uint8

// The verbs.
const (
	Send       Verb = iota // Src goes to Peer
	Recv                   // Dst = what Peer sends
	RecvReduce             // Dst = Src op what Peer sends; Src may be Dst
	Copy                   // Dst = Src
	Fold                   // Dst = Dst op Src
)

var verbNames = [...]string{"send", "recv", "recv-reduce", "copy", "fold"}

// String returns a short name, as in "recv-reduce".
func (v Verb) String() string {
	if int(v) < len(verbNames) {
		return verbNames[v]
	}
	return fmt.Sprintf("Verb(%d)", uint8(v))
}

// Buffer names one of a replica's three buffers.
type Buffer uint8

// The buffers. Input is the caller's and is never written. Scratch is made of slots, each as large as the largest span
// that is ever put into it.
const (
	Input Buffer = iota
	Output
	Scratch
)

// Span is Count chunks, from chunk First on, in one buffer. In Scratch it lies in slot Slot, which begins with chunk
// Base: the numbers of chunks say what sizes the slot's places have. Elsewhere Slot and Base are 0.
//
// A span with a Stride is strided: its chunks come in runs of Run, and each run begins Stride chunks after the one
// before. The last run may be shorter. Numbers go round: after the last chunk comes chunk 0. See [Span.Strided].
type Span struct {
	Buf          Buffer
	Slot, Base   int
	First, Count int
	Stride, Run  int // both 0: the chunks follow each other
}

// In returns the span of n chunks of the Input from chunk f on.
func In(f, n int) Span { return Span{Buf: Input, First: f, Count: n} }

// Out returns the span of n chunks of the Output from chunk f on.
func Out(f, n int) Span { return Span{Buf: Output, First: f, Count: n} }

// Tmp returns the span of scratch slot s that begins with the slot and holds n chunks of the size of chunk f and those
// that follow.
func Tmp(s, f, n int) Span { return Part(s, f, f, n) }

// Part returns the span of n chunks from chunk f on in scratch slot s, which begins with chunk base.
func Part(s, base, f, n int) Span {
	return Span{Buf: Scratch, Slot: s, Base: base, First: f, Count: n}
}

// Step is one thing that a replica does.
type Step struct {
	Verb     Verb
	Peer     int  // rank in the group; -1 for Copy and Fold
	Src, Dst Span // each verb uses those that its comment names; the other is zero
}

// Round is what is in flight together at one replica. It needs no barrier: a replica enters its next round when its own
// steps are done.
type Round struct {
	// Moves are the sends and receives. No two touch one span, unless all only read it or they fold into it: steps with
	// one Dst that follow each other, a Recv or RecvReduce first, then RecvReduce steps whose Src is that Dst. They
	// apply in this order whatever order the messages arrive in. Behind each of them may stand a Fold step, by which
	// the replica's own operand takes its place.
	//
	// The i-th Send to a peer meets the i-th receive of that peer from this replica in the round of the same number.
	Moves []Step

	// Then are Copy and Fold steps, carried out in order once all Moves are done. None writes a chunk that it reads as
	// the operand of another, since a long one goes piece by piece. Only in the schedule's last round may they write
	// what the Moves send. In any other a receiver on peer memory may still be reading that. Output counts as Input
	// here, since the two may be the same memory.
	Then []Step
}

// Program is what one replica does.
type Program []Round

// Schedule is a collective as data: a program for each rank of a group.
type Schedule struct {
	Collective Collective
	Size       int // ranks
	Root       int // where the contract has one, else 0
	Chunks     int // a multiple of Size where they belong to ranks: see Contract.PerRank

	// Apart says that Output must not be Input. Only a collective of Blocks, and Custom, may ask for that.
	Apart bool

	// Again says that a contribution may be combined more than once, which is right for some operators only: Min, Max
	// and the logical ones.
	Again bool

	Programs []Program // by rank

	Custom *CustomContract // of the Collective Custom; else nil
}

// Contract is that of the collective. Of a Custom one it says what all ranks have in common: whether contributions are
// combined. Of nil it is the zero Contract.
func (s *Schedule) Contract() Contract {
	if s == nil {
		return Contract{}
	}
	c := s.Collective.Contract()
	if s.Custom != nil {
		c.Combines = s.Custom.Combines
	}
	return c
}

// NeedsApart reports whether Output must not be Input: the schedule asks for that, or has a CustomContract by which a
// rank's two buffers hold different chunks.
func (s *Schedule) NeedsApart() bool {
	return s != nil && (s.Apart || s.Custom != nil && !s.Custom.Alike())
}
