package gcl

import (
	"cmp"

	"gogcl.dev/internal/kernel"
)

// segmentBytes is how much of one message is on its way at a time: what the IO tiles stage together. On peer memory,
// where nothing is staged, it bounds what is taken from a peer at a time, and what a member publishes.
func (c *Comm) segmentBytes() int {
	return cmp.Or(c.options.MaxBytesPerTile, DefaultMaxBytesPerTile) * c.lane.topology.IOTiles()
}

// segment is a segment in whole elements of so many bytes.
func (c *Comm) segment(elemSize int) int {
	return max(c.segmentBytes()/elemSize, 1) * elemSize
}

// packedUnit divides every place at which packed tensors may be cut: it is the size of the widest elements.
var packedUnit = kernel.Float64.Size()

// segmentOf is segment s of a message, whether there is one, and whether another follows. Every message has a first
// one, which may be empty.
func (r *run) segmentOf(message []byte, s int) (part []byte, there, more bool) {
	lo := s * r.segment
	if s > 0 && lo >= len(message) {
		return nil, false, false
	}
	hi := min(lo+r.segment, len(message))
	return message[lo:hi], true, hi < len(message)
}
