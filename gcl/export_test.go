package gcl

import (
	"context"

	"gogcl.dev/commgroup"
	"gogcl.dev/transport"
)

// What tests of peer memory must exceed, in bytes.
const (
	PieceBytes  = pieceBytes
	StreamBytes = streamBytes
)

// Streamed reports whether c's latest collective in one pass over peer memory stored its results past the caches.
func Streamed(c *Comm) bool { return c.lane.shared.stream }

// GroupID is what a transport.Call has for a replica's group when so many are divided as g says.
func GroupID(g commgroup.Group, replicas, replica int) uint64 {
	l, err := g.Resolve(replicas)
	if err != nil {
		panic(err)
	}
	return groupID(l, replica)
}

// GroupName is how an error names a group.
func GroupName(id uint64) string { return groupName(id) }

// CollectiveError is the error of a collective on a replica, made of the transport's.
func CollectiveError(ctx context.Context, call transport.Call, replica int, err error) error {
	return newCallError(ctx, nameCall(call), replica, err)
}
