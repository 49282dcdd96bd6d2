package transport

import (
	"fmt"
	"slices"
)

// Checker checks batches for an endpoint: that nothing breaks a rule which can be seen without a peer, that no two
// sends to one peer share a tag, nor two receives from one peer. An endpoint keeps one, because it needs memory: so it
// allocates nothing in steady state when the batch is good. The zero value is ready. A nil Checker keeps nothing. It is
// not for concurrent use.
type Checker struct {
	seen []uint64 // by peer and direction: the tags below 64
	keys []uint64 // the others
}

// Check returns a *BatchError when the batch breaks a rule that can be seen without a peer.
func (c *Checker) Check(rank, size int, batch []Transfer) error {
	if c == nil {
		c = new(Checker)
	}
	if err := checkBatch(rank, size, batch); err != nil {
		return err
	}
	if len(batch) < 2 {
		return nil
	}
	if len(c.seen) < 2*size {
		c.seen = make([]uint64, 2*size)
	}
	twice := -1
	c.keys = c.keys[:0]
	for i := range batch {
		t := &batch[i]
		if t.Tag >= 64 {
			c.keys = append(c.keys, uint64(t.row())<<32|uint64(t.Tag))
			continue
		}
		if c.seen[t.row()]>>t.Tag&1 != 0 {
			twice = i
			break
		}
		c.seen[t.row()] |= 1 << t.Tag
	}
	for i := range batch {
		c.seen[batch[i].row()] = 0
	}
	if twice < 0 && len(c.keys) > 1 {
		slices.Sort(c.keys)
		for k, key := range c.keys[1:] {
			if key == c.keys[k] {
				twice = slices.IndexFunc(batch, func(t Transfer) bool {
					return uint64(t.row())<<32|uint64(t.Tag) == key
				})
			}
		}
	}
	if twice < 0 {
		return nil
	}
	t := &batch[twice]
	return &BatchError{Index: twice, Reason: fmt.Sprintf("tag %d is used twice: %v %d", t.Tag, t.Kind, t.Peer)}
}

// row numbers the pairs of a peer and a direction.
func (t *Transfer) row() int {
	if t.Kind == Send {
		return 2 * t.Peer
	}
	return 2*t.Peer + 1
}

// checkBatch returns a *BatchError when the batch breaks a rule that can be seen without a peer: a peer out of range or
// the endpoint itself, a tag above MaxTag, an operand of another length, a missing Fold, a Next without a fold before
// it. It allocates nothing when the batch is good.
func checkBatch(rank, size int, batch []Transfer) error {
	for i := range batch {
		if reason := checkTransfer(rank, size, batch, i); reason != "" {
			return &BatchError{Index: i, Reason: reason}
		}
	}
	return nil
}

func checkTransfer(rank, size int, batch []Transfer, i int) string {
	t := &batch[i]
	switch {
	case t.Kind > RecvFold:
		return fmt.Sprintf("unknown kind %d", t.Kind)
	case t.Peer < 0 || t.Peer >= size:
		return fmt.Sprintf("peer %d is not a replica of 0..%d", t.Peer, size-1)
	case t.Peer == rank:
		return fmt.Sprintf("peer %d is the endpoint itself", t.Peer)
	case t.Tag > MaxTag:
		return fmt.Sprintf("tag %d is greater than %d", t.Tag, MaxTag)
	case t.Kind != RecvFold && (t.Next || t.Fold != nil || len(t.With) > 0):
		return "only a RecvFold takes With, Fold and Next"
	case t.Kind != RecvFold:
		return ""
	case t.Fold == nil:
		return "a RecvFold needs a Fold"
	case !t.Next && len(t.With) != len(t.Buf), t.Next && len(t.With) != 0 && len(t.With) != len(t.Buf):
		return fmt.Sprintf("With has %d bytes, Buf %d", len(t.With), len(t.Buf))
	case !t.Next:
		return ""
	case i == 0 || batch[i-1].Kind == Send || !sameBytes(batch[i-1].Buf, t.Buf):
		return "Next needs a receive into the same Buf before it"
	}
	return ""
}

// sameBytes reports whether a and b are the same bytes of memory.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
