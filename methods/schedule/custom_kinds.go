package schedule

import (
	"fmt"
	"slices"
)

// Scan is the contract of a sum over the ranks up to one's own, or of another operator: of chunks chunks at each rank,
// rank r ends with those of ranks 0 to r combined. It can be carried out in place. Check refuses one of no ranks or
// chunks, which this is too for more than 1<<24 chunks of all ranks.
func Scan(ranks, chunks int) *CustomContract { return scan("scan", ranks, chunks, 1) }

// ExclusiveScan is Scan without the rank's own: rank r ends with those of ranks 0 to r-1 combined. Nothing comes before
// rank 0, whose Output holds no chunk.
func ExclusiveScan(ranks, chunks int) *CustomContract {
	return scan("exclusive-scan", ranks, chunks, 0)
}

// maxScanned bounds the memory of a scan's lists.
const maxScanned = 1 << 24

// scan makes a contract in which rank r wants of the ranks below r+own.
func scan(name string, ranks, chunks, own int) *CustomContract {
	if ranks < 1 || chunks < 1 || ranks > maxScanned/chunks {
		return &CustomContract{Name: name, Combines: true}
	}
	all, below := inOrder(chunks), inOrder(ranks)
	c := &CustomContract{Name: name, Combines: true, Inputs: make([][]int, ranks), Outputs: make([][]int, ranks),
		Wants: make([][][]int, ranks)}
	for rank := range ranks {
		c.Inputs[rank] = all
		if rank+own > 0 {
			c.Outputs[rank] = all
			c.Wants[rank] = slices.Repeat([][]int{below[:rank+own]}, chunks)
		}
	}
	return c
}

// inOrder lists the numbers below n.
func inOrder(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// Exchange is the contract of an exchange between neighbours: the Input of rank r has a block for each rank of to[r],
// and its Output one from each rank of from[r], in the order of these lists. Each block is a chunk, and all have one
// size; chunks are numbered by rank, and then as in to[r]. Two ranks that exchange several blocks in one direction list
// each other as often. Errors: lists of different numbers of ranks; a block that one rank lists and the other does not.
func Exchange(to, from [][]int) (*CustomContract, error) {
	if len(to) != len(from) {
		return nil, fmt.Errorf("schedule: an exchange of %d ranks that send and %d that receive", len(to), len(from))
	}
	c := &CustomContract{Name: "exchange", Inputs: make([][]int, len(to)), Outputs: make([][]int, len(to))}
	open := map[[2]int][]int{} // by sender and receiver: chunks that nobody receives yet
	chunks := 0
	for rank, list := range to {
		for _, peer := range list {
			open[[2]int{rank, peer}] = append(open[[2]int{rank, peer}], chunks)
			c.Inputs[rank] = append(c.Inputs[rank], chunks)
			chunks++
		}
	}
	for rank, list := range from {
		for _, peer := range list {
			blocks := open[[2]int{peer, rank}]
			if len(blocks) == 0 {
				return nil, fmt.Errorf("schedule: an exchange in which rank %d receives a block of rank %d, which does not "+
					"send it", rank, peer)
			}
			c.Outputs[rank] = append(c.Outputs[rank], blocks[0])
			open[[2]int{peer, rank}] = blocks[1:]
		}
	}
	for rank, list := range to {
		for _, peer := range list {
			if len(open[[2]int{rank, peer}]) > 0 {
				return nil, fmt.Errorf("schedule: an exchange in which rank %d sends a block to rank %d, which does not "+
					"receive it", rank, peer)
			}
		}
	}
	return c, nil
}

// Experts is the contract of an all-to-all of a mixture of experts, in which each rank has another number of rows for
// each: sizes[r] has, by rank, how many rows go from rank r there, and 0 is no block. An Input has the blocks by
// receiver, and an Output by sender, the rank's own among them. Chunks are numbered by sender, and then by receiver.
//
// A list that is shorter than the ranks has no rows for the others. Check refuses the contract of one that is longer.
//
// A rank with no row at all, to send or to receive, does not know how long a row is, which gcl.Execute must learn from
// the buffers of every rank: give it a row for itself.
func Experts(sizes [][]int) *CustomContract {
	if slices.ContainsFunc(sizes, func(list []int) bool { return len(list) > len(sizes) }) {
		return &CustomContract{Name: "experts"}
	}
	c := &CustomContract{Name: "experts", Inputs: make([][]int, len(sizes)), Outputs: make([][]int, len(sizes)),
		Sizes: []int{}}
	for rank, list := range sizes {
		for peer, size := range list {
			if size == 0 {
				continue
			}
			chunk := len(c.Sizes)
			c.Inputs[rank], c.Outputs[peer] = append(c.Inputs[rank], chunk), append(c.Outputs[peer], chunk)
			c.Sizes = append(c.Sizes, size)
		}
	}
	return c
}
