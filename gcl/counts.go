package gcl

import (
	"errors"
	"fmt"

	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods/schedule"
)

// counts are the lengths of parts as a ...V form is given them. The zero value: the call has none, and all parts are
// equal.
type counts struct {
	given    bool
	ranks    []int // by rank: the length of its part, or in an all-to-all of the part that goes to it
	received []int // of an all-to-all, by rank: the length of the part that comes from it; else nil
	unit     int   // elements of 1 in a count: of a slice 1, of a tensor a row
}

// byCounts are counts of elements.
func byCounts(ranks, received []int) counts { return counts{true, ranks, received, 1} }

// countsOf are the counts in the lists of a call of a collective: one list, or of an all-to-all those sent and
// received.
func countsOf(collective schedule.Collective, lists [][]int) (counts, error) {
	contract := collective.Contract()
	switch want := 1 + int(bit(contract.Input == schedule.Blocks)); {
	case !contract.PerRank():
		return counts{}, fmt.Errorf("%s takes no counts: its ranks have no parts", wire.WithArticle(collective))
	case len(lists) != want:
		return counts{}, fmt.Errorf("%d lists of counts, want %s", len(lists),
			[...]string{1: "one", 2: "two: of what is sent and of what is received"}[want])
	case want == 2:
		return byCounts(lists[0], lists[1]), nil
	}
	return byCounts(lists[0], nil), nil
}

// total is the elements of the larger buffer, or 0 of an all-to-all, where it differs between ranks. Of counts that are
// about to be refused it is any number.
func (n *counts) total(collective schedule.Collective) (sum uint64) {
	if collective.Contract().Input == schedule.Blocks {
		return 0
	}
	for _, count := range n.ranks {
		sum += uint64(count) * uint64(n.unit)
	}
	return sum
}

// bounds says where the parts lie, in memory that parts has as far as that goes.
func (n *counts) bounds(parts *pack.Parts, collective schedule.Collective, ranks, elemSize int) (err error) {
	name, blocks := "counts", collective.Contract().Input == schedule.Blocks
	if blocks {
		name = "counts sent"
	}
	if parts.Bounds, err = n.boundsOf(parts.Bounds, n.ranks, name, ranks, elemSize); err != nil {
		return err
	}
	if blocks {
		parts.Out, err = n.boundsOf(parts.Out, n.received, "counts received", ranks, elemSize)
	}
	return err
}

// boundsOf is bounds of one list, which errors call name.
func (n *counts) boundsOf(into, list []int, name string, ranks, elemSize int) ([]int, error) {
	if len(list) != ranks {
		return into, fmt.Errorf("%d %s, want %d: one for each rank", len(list), name, ranks)
	}
	into = append(into[:0], 0)
	sum, most := 0, maxBytes/elemSize
	for rank, count := range list {
		switch {
		case count < 0:
			return into, fmt.Errorf("%d in the %s of rank %d, want 0 or more", count, name, rank)
		case n.unit > 0 && count > (most-sum)/n.unit:
			return into, fmt.Errorf("the %s take more than %d bytes together, the most that a buffer may have", name,
				int64(maxBytes))
		}
		sum += count * n.unit
		into = append(into, sum)
	}
	return into, nil
}

// checkWithCounts is checkCall of a call with counts, whose parts lie in memory of the connection.
func (c *Comm) checkWithCounts(k *call) (n int, err error) {
	k.useParts(&c.conn.parts)
	n, err = c.checkCall(k)
	keepParts(&c.conn.parts, &k.parts)
	return n, err
}

// useParts has the parts of a call lie in memory that other calls have used.
func (k *call) useParts(spare *pack.Parts) {
	k.parts.Bounds = spare.Bounds
	if k.counts.received != nil {
		k.parts.Out = spare.Out
	}
}

// keepParts keeps the memory of parts for useParts.
func keepParts(spare, parts *pack.Parts) {
	spare.Bounds = parts.Bounds
	if parts.Out != nil {
		spare.Out = parts.Out
	}
}

// checkCounts looks at the counts of a call and at the lengths of its buffers, and says where its parts lie, in memory
// that k.parts has. It returns the elements of the larger buffer. A buffer that does not count on this rank may be
// missing, and is left out of the call.
func (c *Comm) checkCounts(k *call) (n int, err error) {
	if err := k.counts.bounds(&k.parts, k.Collective, c.Size(), k.dtype.Size()); err != nil {
		return 0, err
	}
	contract, size, rank := k.Collective.Contract(), c.Size(), c.Rank()
	n = k.parts.Bounds[size]
	if contract.Input == schedule.Blocks {
		return max(n, k.parts.Out[size]), k.checkBlocks(size, rank)
	}
	if err := k.checkBuffer("input", "read", contract.Input, k.srcLen, rank); err != nil {
		return 0, err
	}
	if err := k.checkBuffer("destination", "written", contract.Output, k.dstLen, rank); err != nil {
		return 0, err
	}
	c.leaveOutMissing(k)
	return n, nil
}

// checkBuffer looks at the length of one buffer of a rank. Of a buffer that counts at the root alone errors say that
// only the root's is used.
func (k *call) checkBuffer(name, used string, holding schedule.Holding, have, rank int) error {
	lo, hi := k.parts.Own(rank)
	all := k.parts.Bounds[len(k.parts.Bounds)-1]
	switch {
	case holding == schedule.Own && have != hi-lo:
		return fmt.Errorf("the %s has %d elements, want %d: the count of rank %d", name, have, hi-lo, rank)
	case holding == schedule.Own || have == all:
		return nil
	case holding != schedule.AtRoot || rank == k.Root:
		return fmt.Errorf("the %s has %d elements, want %d: the sum of the counts", name, have, all)
	case have != 0:
		return fmt.Errorf("the %s has %d elements, want none or %d: only the root's is %s", name, have, all, used)
	}
	return nil
}

// checkBlocks looks at the lengths of an all-to-all's buffers, and at the part that a rank has for itself.
func (k *call) checkBlocks(size, rank int) error {
	sent, received := k.counts.ranks, k.counts.received
	switch in, out := k.parts.Bounds[size], k.parts.Out[size]; {
	case k.srcLen != in:
		return fmt.Errorf("the input has %d elements, want %d: the sum of the counts sent", k.srcLen, in)
	case k.dstLen != out:
		return fmt.Errorf("the destination has %d elements, want %d: the sum of the counts received", k.dstLen, out)
	case sent[rank] != received[rank]:
		return fmt.Errorf("rank %d sends itself %d elements and receives %d from itself", rank, sent[rank]*k.counts.unit,
			received[rank]*k.counts.unit)
	}
	return nil
}

// checkInPlace refuses an all-to-all by counts in place whose parts would have to change their lengths there.
func (k *call) checkInPlace() error {
	if !memory.Overlap(k.dst, k.src) {
		return nil
	}
	for rank, n := range k.counts.ranks {
		if k.counts.received[rank] != n {
			return fmt.Errorf("in place an all-to-all receives as much from each rank as it sends to it: %d elements go to "+
				"rank %d, %d come from it", n*k.counts.unit, rank, k.counts.received[rank]*k.counts.unit)
		}
	}
	return nil
}

// resultLength is how many elements the result of a call by counts has on this rank, of an input of k.srcLen. It is 0
// where the counts or the input are refused: nobody makes memory of a length that was never right.
func (c *Comm) resultLength(k *call) int {
	if k.counts.bounds(&k.parts, k.Collective, c.Size(), k.dtype.Size()) != nil {
		return 0
	}
	contract, all, rank := k.Collective.Contract(), k.parts.Bounds[c.Size()], c.Rank()
	switch {
	case contract.Input == schedule.Blocks && k.srcLen == all:
		return k.parts.Out[c.Size()]
	case contract.Input == schedule.Blocks, !k.Writes(rank),
		k.checkBuffer("input", "read", contract.Input, k.srcLen, rank) != nil:
		return 0
	case contract.Output == schedule.Own:
		lo, hi := k.parts.Own(rank)
		return hi - lo
	}
	return all
}

// errMixed is what an operand with counts gets beside others without, and the other way round.
var errMixed = errors.New("a Batch has counts for all of its operands or for none")
