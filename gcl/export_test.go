package gcl

import (
	"context"

	"gogcl.dev/transport"
)

// CollectiveError is the error of a collective on a replica, made of the transport's.
func CollectiveError(ctx context.Context, call transport.Call, replica int, err error) error {
	return newCallError(ctx, nameCall(call), replica, err)
}
