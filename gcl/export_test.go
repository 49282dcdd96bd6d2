package gcl

import (
	"context"

	"gogcl.dev/transport"
)

// What tests of peer memory must exceed, in bytes.
const (
	PieceBytes  = maxPieceBytes
	StreamBytes = streamBytes
)

// Streamed reports whether c's latest collective in one pass over peer memory stored its results past the caches.
func Streamed(c *Comm) bool { return c.lane.shared.stream }

// ManyTensors marks a collective on several tensors in the DType of a call.
const ManyTensors = manyTensors

// CollectiveError is the error of a collective on a replica, made of the transport's.
func CollectiveError(ctx context.Context, call transport.Call, replica int, err error) error {
	return newCallError(ctx, nameCall(call), replica, err)
}
