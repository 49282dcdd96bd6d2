package schedule

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// CustomContract is what a collective of a program's own is: which chunks each rank's two buffers hold, and which ranks
// contribute to each chunk of an Output. Schedule.Custom has it, beside the Collective [Custom].
//
// A chunk has one number and one size on all ranks. A buffer holds the chunks of its list one after the other, in the
// order of the list. A sum over the ranks up to one's own, of three ranks, has one chunk everywhere, and
// Combines:
//
//	rank   Inputs   Outputs   Wants
//	0      0        0         0: of rank 0
//	1      0        0         0: of ranks 0 and 1
//	2      0        0         0: of ranks 0, 1 and 2
//
// An exchange between neighbours on a line of three has a chunk for each neighbour of each rank, and combines nothing:
//
//	rank   Inputs   Outputs
//	0      0        1         chunk 0 goes from rank 0 to rank 1
//	1      1 2      0 3       chunks 1 and 2 from rank 1 to ranks 0 and 2
//	2      3        2         chunk 3 from rank 2 to rank 1
//
// [Scan], [ExclusiveScan], [Exchange] and [Experts] make some that are used often. Nobody changes a CustomContract that
// a Schedule has.
type CustomContract struct {
	// Name stands in texts and errors, as in "custom scan": letters a to z, digits and hyphens; "" is no name.
	Name string

	// Inputs and Outputs have a list for each rank: the chunks that its buffer holds, each once.
	Inputs, Outputs [][]int

	// Wants has, by rank and by place in the rank's list of Outputs, the ranks whose contributions the chunk ends with,
	// ascending: each rank's is the chunk of that number in its Input. nil: all ranks whose Input holds the chunk.
	Wants [][][]int

	// Combines says that contributions are combined, by an operator. Otherwise a chunk has one.
	Combines bool

	// Sizes has the size of each chunk, relative to the others. nil: all chunks have one size.
	Sizes []int
}

// Chunks is how many chunks there are: one more than the highest number.
func (c *CustomContract) Chunks() int {
	if c == nil {
		return 0
	}
	n := 0
	for _, lists := range [...][][]int{c.Inputs, c.Outputs} {
		for _, list := range lists {
			for _, f := range list {
				n = max(n, f+1)
			}
		}
	}
	return max(n, len(c.Sizes))
}

// Size is the relative size of a chunk; 0 of one that there is not.
func (c *CustomContract) Size(chunk int) int {
	switch {
	case c == nil || chunk < 0 || c.Sizes != nil && chunk >= len(c.Sizes):
		return 0
	case c.Sizes == nil:
		return 1
	}
	return c.Sizes[chunk]
}

// Alike reports whether no rank's Input and Output hold different chunks, or the same in another order: then the two
// may be the same memory. A buffer that holds nothing is like any other.
func (c *CustomContract) Alike() bool {
	if c == nil {
		return true
	}
	for rank := range min(len(c.Inputs), len(c.Outputs)) {
		in, out := c.Inputs[rank], c.Outputs[rank]
		if len(in) > 0 && len(out) > 0 && !slices.Equal(in, out) {
			return false
		}
	}
	return true
}

// Contributors lists the ranks whose contributions the chunk at a place of a rank's list of Outputs ends with; none if
// there is no such place. The list is the contract's, or new.
func (c *CustomContract) Contributors(rank, place int) []int {
	switch {
	case c == nil || rank < 0 || rank >= len(c.Outputs) || place < 0 || place >= len(c.Outputs[rank]):
		return nil
	case c.Wants != nil && (rank >= len(c.Wants) || place >= len(c.Wants[rank])):
		return nil
	case c.Wants != nil:
		return c.Wants[rank][place]
	}
	var out []int
	for r, list := range c.Inputs {
		if slices.Contains(list, c.Outputs[rank][place]) {
			out = append(out, r)
		}
	}
	return out
}

// holders lists, by chunk, the ranks whose Input holds it.
func (c *CustomContract) holders() [][]int {
	lists := make([][]int, c.Chunks())
	for rank, list := range c.Inputs {
		for _, f := range list {
			lists[f] = append(lists[f], rank)
		}
	}
	return lists
}

// Elements is how many elements a chunk of relative size 1 has, if a rank's buffers have input and output elements.
// Errors: a rank that the contract does not have; a buffer that is no multiple of what it holds; buffers by which the
// chunks have different lengths; a rank that holds nothing, whose buffers do not say how long chunks are.
func (c *CustomContract) Elements(rank, input, output int) (int, error) {
	switch {
	case c == nil:
		return 0, errors.New("no contract")
	case rank < 0 || rank >= len(c.Inputs) || rank >= len(c.Outputs):
		return 0, fmt.Errorf("rank %d of a contract of %d ranks", rank, len(c.Inputs))
	case input < 0 || output < 0:
		return 0, fmt.Errorf("an input of %d elements and a destination of %d", input, output)
	}
	in, out := c.total(c.Inputs[rank]), c.total(c.Outputs[rank])
	switch {
	case in == 0 && out == 0:
		return 0, fmt.Errorf("rank %d holds no chunk, so that its buffers do not say how long one is", rank)
	case in == 0:
		if input != 0 || output%out != 0 {
			return 0, fmt.Errorf("the input has %d elements and the destination %d, want none and a multiple of %d",
				input, output, out)
		}
		return output / out, nil
	case out == 0:
		if output != 0 || input%in != 0 {
			return 0, fmt.Errorf("the input has %d elements and the destination %d, want a multiple of %d and none",
				input, output, in)
		}
		return input / in, nil
	case input%in != 0:
		return 0, fmt.Errorf("the input has %d elements and the destination %d, want a multiple of %d in the input, "+
			"the sizes of its chunks", input, output, in)
	case output%out != 0 || output/out != input/in:
		return 0, fmt.Errorf("the destination has %d elements, want %d for %d of input: the chunks have sizes of %d and "+
			"of %d in all", output, input/in*out, input, out, in)
	}
	return input / in, nil
}

// total is the sizes of chunks in all; those that do not exist have none.
func (c *CustomContract) total(list []int) int {
	if c.Sizes == nil {
		return len(list)
	}
	n := 0
	for _, f := range list {
		if f >= 0 && f < len(c.Sizes) {
			n += c.Sizes[f]
		}
	}
	return n
}

// The most that the sizes of all chunks come to, so that offsets fit, and that a name has.
const (
	maxCustomTotal = math.MaxInt32
	maxCustomName  = 64
)

// Check reports what is wrong with a contract: a name that is none; other numbers of lists; a chunk that is listed
// twice, is negative or beyond 1<<20, or is nothing; a contributor that is no rank, is listed twice or out of order, or
// whose Input does not hold the chunk; a chunk without contributors, or with several where nothing is combined.
func (c *CustomContract) Check() error {
	if err := c.check(); err != nil {
		return fmt.Errorf("schedule: %s: %w", c.title(), err)
	}
	return nil
}

func (c *CustomContract) check() error {
	if c == nil {
		return errors.New("no contract")
	}
	if err := checkCustomName(c.Name); err != nil {
		return err
	}
	switch size := len(c.Inputs); {
	case size < 1:
		return errors.New("inputs of 0 ranks, want 1 or more")
	case len(c.Outputs) != size:
		return fmt.Errorf("outputs of %d ranks, and inputs of %d", len(c.Outputs), size)
	case c.Wants != nil && len(c.Wants) != size:
		return fmt.Errorf("wants of %d ranks, and inputs of %d", len(c.Wants), size)
	}
	chunks := c.Chunks()
	switch {
	case !slices.ContainsFunc(c.Outputs, func(list []int) bool { return len(list) > 0 }):
		return errors.New("no rank's output holds a chunk")
	case chunks > maxChunks:
		return fmt.Errorf("%d chunks, want at most %d", chunks, maxChunks)
	case int64(chunks)*int64(len(c.Inputs)) > maxState:
		return fmt.Errorf("%d chunks on %d ranks are %d, want %d at most", chunks, len(c.Inputs),
			int64(chunks)*int64(len(c.Inputs)), maxState)
	case c.Sizes != nil && len(c.Sizes) != chunks:
		return fmt.Errorf("%d sizes for %d chunks", len(c.Sizes), chunks)
	}
	total := 0
	for f, size := range c.Sizes {
		if size < 0 || size > maxCustomTotal-total {
			return fmt.Errorf("chunk %d has size %d, want sizes of 0 to %d in all", f, size, maxCustomTotal)
		}
		total += size
	}
	seen := make([]int, chunks)
	for rank := range c.Inputs {
		if err := c.checkList(seen, 2*rank+1, rank, "input", c.Inputs[rank]); err != nil {
			return err
		}
		if err := c.checkList(seen, 2*rank+2, rank, "output", c.Outputs[rank]); err != nil {
			return err
		}
	}
	return c.checkWants()
}

// checkCustomName refuses what is no name.
func checkCustomName(name string) error {
	for i := range len(name) {
		if b := name[i]; (b < 'a' || b > 'z') && (b < '0' || b > '9') && b != '-' {
			return fmt.Errorf("the name %s, want letters a to z, digits and hyphens", quoted(name))
		}
	}
	if len(name) > maxCustomName {
		return fmt.Errorf("the name %s of %d letters, want %d at most", quoted(name), len(name), maxCustomName)
	}
	return nil
}

// checkList checks the list of a buffer, and marks in seen that it has a chunk.
func (c *CustomContract) checkList(seen []int, mark, rank int, buffer string, list []int) error {
	for _, f := range list {
		switch {
		case f < 0 || f >= len(seen):
			return fmt.Errorf("chunk %d in the %s of rank %d, want 0 to %d", f, buffer, rank, maxChunks-1)
		case seen[f] == mark:
			return fmt.Errorf("chunk %d is in the %s of rank %d twice", f, buffer, rank)
		case c.Size(f) == 0:
			return fmt.Errorf("chunk %d in the %s of rank %d has size 0: want no chunk where there is nothing", f, buffer,
				rank)
		}
		seen[f] = mark
	}
	return nil
}

// checkWants checks the contributors. Lists that are shared are looked at once for each chunk.
func (c *CustomContract) checkWants() error {
	chunks := c.Chunks()
	holds := newBits(len(c.Inputs) * chunks)
	for rank, list := range c.Inputs {
		for _, f := range list {
			holds.set(rank*chunks + f)
		}
	}
	var holders [][]int
	if c.Wants == nil {
		holders = c.holders()
	}
	for rank, list := range c.Outputs {
		if c.Wants != nil && len(c.Wants[rank]) != len(list) {
			return fmt.Errorf("wants of %d chunks at rank %d, whose output holds %d", len(c.Wants[rank]), rank,
				len(list))
		}
		for i, f := range list {
			var from []int
			if c.Wants != nil {
				from = c.Wants[rank][i]
			} else {
				from = holders[f]
			}
			switch {
			case len(from) == 0:
				return fmt.Errorf("nobody contributes to chunk %d of the output of rank %d", f, rank)
			case len(from) > 1 && !c.Combines:
				return fmt.Errorf("ranks %s contribute to chunk %d of the output of rank %d, and nothing is combined: "+
					"want one", ranges(from), f, rank)
			}
			last := -1
			for _, r := range from {
				switch {
				case r < 0 || r >= len(c.Inputs) || r <= last:
					return fmt.Errorf("rank %d, after rank %d, contributes to chunk %d of the output of rank %d: want "+
						"ranks below %d, ascending", r, last, f, rank, len(c.Inputs))
				case !holds.has(r*chunks + f):
					return fmt.Errorf("rank %d contributes to chunk %d of the output of rank %d, and its input does not "+
						"hold it", r, f, rank)
				}
				last = r
			}
		}
	}
	return nil
}

// title is the collective with the contract's name.
func (c *CustomContract) title() string {
	if c == nil || c.Name == "" {
		return Custom.String()
	}
	return Custom.String() + " " + c.Name
}

// placeIn is where a list has n chunks from chunk f on, one after the other; -1: nowhere. Most lists begin with their
// lowest number and leave none out.
func placeIn(list []int, f, n int) int {
	if len(list) == 0 || n < 1 {
		return -1
	}
	i := f - list[0]
	if i < 0 || i >= len(list) || list[i] != f {
		i = slices.Index(list, f)
	}
	if i < 0 || n > len(list)-i {
		return -1
	}
	for k := range n {
		if list[i+k] != f+k {
			return -1
		}
	}
	return i
}

// bitset is a set of numbers.
type bitset []uint64

func newBits(n int) bitset      { return make(bitset, (n+63)/64) }
func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 == 1 }
