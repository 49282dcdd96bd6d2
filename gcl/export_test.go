package gcl

import (
	"context"

	"gogcl.dev/transport"
)

// ManyTensors marks a collective on several tensors in the DType of a call.
const ManyTensors = manyTensors

// CollectiveError is the error of a collective on a replica, made of the transport's.
func CollectiveError(ctx context.Context, call transport.Call, replica int, err error) error {
	return newCallError(ctx, nameCall(call), replica, err)
}
