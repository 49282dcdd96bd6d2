package schedule

import (
	"fmt"

	"gogcl.dev/chunks"
)

// Collective names what a schedule computes. Its [Contract] says what that is.
type Collective uint8

// The collectives.
const (
	AllReduce Collective = iota
	ReduceScatter
	AllGather
	AllToAll
	Broadcast
	Reduce
	Gather
	Scatter
	Barrier // is over on a rank when all have begun it; moves nothing
	Custom  // is a collective of a program's own: Schedule.Custom says what it is
	numCollectives
)

// row is a collective's name, with hyphens, and contract.
type row struct {
	name string
	Contract
}

// rows has a row for each collective. A row is all that there is to say about one: the checker, the executors, lengths,
// shapes and texts are made from it.
var rows = [numCollectives]row{
	AllReduce:     {"all-reduce", Contract{Input: Whole, Output: Whole, Combines: true}},
	ReduceScatter: {"reduce-scatter", Contract{Input: Whole, Output: Own, Combines: true}},
	AllGather:     {"all-gather", Contract{Input: Own, Output: Whole}},
	AllToAll:      {"all-to-all", Contract{Input: Blocks, Output: Blocks}},
	Broadcast:     {"broadcast", Contract{Input: AtRoot, Output: Whole}},
	Reduce:        {"reduce", Contract{Input: Whole, Output: AtRoot, Combines: true}},
	Gather:        {"gather", Contract{Input: Own, Output: AtRoot}},
	Scatter:       {"scatter", Contract{Input: AtRoot, Output: Own}},
	Barrier:       {"barrier", Contract{Input: Whole, Output: Whole, Combines: true, Again: true}},
	Custom:        {"custom", Contract{Input: Listed, Output: Listed}},
}

// Contract is what a collective is: which chunks a rank's two buffers hold, and which contributions each chunk of an
// Output ends with.
//
//	                input    output   combined   an output chunk comes from
//	all-reduce      Whole    Whole    yes        all ranks
//	reduce-scatter  Whole    Own      yes        all ranks
//	all-gather      Own      Whole               its owner
//	all-to-all      Blocks   Blocks              the rank of its block
//	broadcast       AtRoot   Whole               the root
//	reduce          Whole    AtRoot   yes        all ranks
//	gather          Own      AtRoot              its owner
//	scatter         AtRoot   Own                 the root
//	barrier         Whole    Whole    yes        all ranks, some perhaps again
//	custom          Listed   Listed              the ranks that a CustomContract wants
//
// Chunks are numbered through the larger of the two buffers, from 0 to Schedule.Chunks-1, and the smaller one keeps the
// numbers. So Output can always be Input. Chunks of one number have one size; in Blocks, which are of one length, so
// have chunks at one place of their blocks.
type Contract struct {
	Input, Output Holding

	// Combines says that a chunk of an Output is the combination of all ranks' chunks of its number, by an operator.
	// Otherwise it is one rank's chunk.
	Combines bool

	// Again says that a contribution may be combined more than once. A Schedule can ask for that too, for operators
	// that allow it.
	Again bool
}

// Holding says which chunks of the numbering a buffer holds.
type Holding uint8

// The holdings, over ranks that own m = Chunks/Size chunks each.
const (
	Whole Holding = iota // all chunks
	Own                  // the rank's own: rank*m to (rank+1)*m-1
	// all chunks: block i, i*m to (i+1)*m-1, goes to rank i from an Input, and came from rank i in an Output
	Blocks
	AtRoot // all chunks at the root, none elsewhere
	Listed // those that a CustomContract lists
)

// String returns the name with hyphens, as in "all-reduce".
func (c Collective) String() string {
	if c.Valid() {
		return rows[c].name
	}
	return fmt.Sprintf("Collective(%d)", uint8(c))
}

// Valid reports whether c is one of the collectives.
func (c Collective) Valid() bool { return c < numCollectives }

// Contract says what the collective is; the zero Contract if c is none. Of Custom it says no more than that a
// CustomContract does: see [Schedule.Contract].
func (c Collective) Contract() Contract {
	if c.Valid() {
		return rows[c].Contract
	}
	return Contract{}
}

// Collectives lists those that move data, in order: all but Barrier, whose buffers are empty, and Custom, which is not
// one collective.
func Collectives() []Collective {
	out := make([]Collective, Barrier)
	for i := range out {
		out[i] = Collective(i)
	}
	return out
}

// Rooted reports whether one rank, the root, has another part than the others.
func (c Contract) Rooted() bool { return c.Input == AtRoot || c.Output == AtRoot }

// Meets reports whether a rank with its result knows that all ranks have begun: not if one of them, the root, has
// another part than the others, nor if it takes a CustomContract to say that.
func (c Contract) Meets() bool { return !c.Rooted() && c.Output != Listed }

// PerRank reports whether the chunks belong to ranks, each to one, so that their number is a multiple of that of the
// ranks.
func (c Contract) PerRank() bool { return c.Input.perRank() || c.Output.perRank() }

// Deals reports whether the root's Input is dealt out in parts, one to each rank. Then only the Outputs say on all
// ranks how long the parts are.
func (c Contract) Deals() bool { return c.Input == AtRoot && c.Output == Own }

func (h Holding) perRank() bool { return h == Own || h == Blocks }

// chunks is the range of chunks, lo to hi-1, that a rank's buffer holds, of count in all.
func (h Holding) chunks(rank, root, size, count int) (lo, hi int) {
	switch {
	case h == Own:
		return rank * count / size, (rank + 1) * count / size
	case h == AtRoot && rank != root:
		return 0, 0
	}
	return 0, count
}

// source is where a chunk of a rank's Output comes from if nothing is combined: the rank, and the number that the chunk
// has in its Input. perRank is how many chunks each rank owns.
func (c Contract) source(rank, root, chunk, perRank int) (from, number int) {
	switch c.Input {
	case Own:
		return chunk / perRank, chunk
	case Blocks:
		return chunk / perRank, rank*perRank + chunk%perRank
	}
	return root, chunk
}

// BusFactor is the factor of nccl-tests for n ranks: the bytes of the larger of a rank's two buffers times it, by the
// time, is the bus bandwidth, which the slowest link must have whatever the number of ranks. It is 0 where nothing says
// how much moves: of Custom, and for n < 1. https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
func (c Contract) BusFactor(n int) float64 {
	switch {
	case n < 1 || c.Output == Listed:
		return 0
	case c.PerRank():
		return float64(n-1) / float64(n)
	case c.Rooted():
		return 1
	}
	return 2 * float64(n-1) / float64(n)
}

// Elements is the number of elements in the larger buffer, given that of an Input, over so many ranks. A product that
// an int does not hold is the caller's to refuse before.
func (c Contract) Elements(input, ranks int) int {
	if c.Input == Own {
		return input * ranks
	}
	return input
}

// Elements is the number of elements that a buffer holds, of n in the larger one, over so many ranks: all of them, or a
// rank's own ceil(n/ranks). With AtRoot it is that of the root.
func (h Holding) Elements(n, ranks int) int {
	if h == Own {
		return chunks.PerRank(n, max(ranks, 1))
	}
	return n
}
