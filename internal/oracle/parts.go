package oracle

import (
	"fmt"

	"gogcl.dev/methods/schedule"
)

// Part is a run of elements of an output, and where they come from.
type Part struct {
	From  int // a rank, whose input has the elements; or Reduced, or Zeros
	First int // the first of the elements there
	Count int // elements
}

// What Part.From names besides ranks.
const (
	Reduced = -1 // the reduction of all inputs; with Local, the rank's own input
	Zeros   = -2 // padding
)

// Parts lists the parts of a rank's output, in order, when each of n ranks calls a collective on so many elements. root
// is the rank that has the data or the result; collectives without a root ignore it. An all-to-all and a scatter take a
// multiple of n elements.
func Parts(c schedule.Collective, n, rank, root, elements int) []Part {
	switch c {
	case schedule.AllReduce:
		return []Part{{Reduced, 0, elements}}
	case schedule.ReduceScatter:
		return shard(n, rank, 0, elements)
	case schedule.AllGather:
		return fromEach(n, 0, elements)
	case schedule.AllToAll:
		if elements%n != 0 {
			panic(fmt.Sprintf("oracle: an all-to-all of %d elements among %d", elements, n))
		}
		return fromEach(n, rank*(elements/n), elements/n)
	case schedule.Broadcast:
		return []Part{{root, 0, elements}}
	case schedule.Scatter:
		if elements%n != 0 {
			panic(fmt.Sprintf("oracle: a scatter of %d elements among %d", elements, n))
		}
		return []Part{{root, rank * (elements / n), elements / n}}
	}
	if rank != root { // which alone has a result
		return nil
	}
	switch c {
	case schedule.Reduce:
		return []Part{{Reduced, 0, elements}}
	case schedule.Gather:
		return fromEach(n, 0, elements)
	}
	panic(fmt.Sprintf("oracle: no row for %v", c))
}

// shard is a rank's shard of the count elements from first on of the reduction: as long as every other rank's, with
// zeros past the end.
func shard(n, rank, first, count int) []Part {
	per := (count + n - 1) / n
	lo, hi := min(rank*per, count), min((rank+1)*per, count)
	return []Part{{Reduced, first + lo, hi - lo}, {Zeros, 0, per - (hi - lo)}}
}

// fromEach is the same elements of every rank's input, by rank.
func fromEach(n, first, count int) []Part {
	out := make([]Part, n)
	for r := range out {
		out[r] = Part{r, first, count}
	}
	return out
}

// PartsV is Parts where the part of rank r has counts[r] elements, one after the other, and nothing is padded.
func PartsV(c schedule.Collective, counts []int, rank, root int) []Part {
	first := 0
	for _, count := range counts[:rank] {
		first += count
	}
	each := make([]Part, len(counts))
	for r, count := range counts {
		each[r] = Part{r, 0, count}
	}
	switch {
	case c == schedule.ReduceScatter:
		return []Part{{Reduced, first, counts[rank]}}
	case c == schedule.Scatter:
		return []Part{{root, first, counts[rank]}}
	case c == schedule.AllGather, c == schedule.Gather && rank == root:
		return each
	case c == schedule.Gather:
		return nil
	}
	panic(fmt.Sprintf("oracle: no row for %v by counts", c))
}
