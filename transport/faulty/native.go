package faulty

import (
	"context"
	"fmt"

	"gogcl.dev/transport"
)

// WrapNative is Wrap for endpoints that offer transport.Native: those that it returns do, too. A Collective counts as
// an Exchange, and faults strike it like one. Two members that are cut off from each other see nothing of any call that
// both are members of. It is an error if an endpoint does not offer transport.Native.
func WrapNative(eps []transport.Endpoint, seed uint64, faults ...Fault) ([]transport.Endpoint, error) {
	wrapped, err := wrap(eps, seed, faults)
	if err != nil {
		return nil, err
	}
	out := make([]transport.Endpoint, len(eps))
	for i, e := range wrapped {
		if out[i], err = withNative(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// nativeEndpoint is an endpoint with collectives of its own.
type nativeEndpoint struct {
	*endpoint
	native transport.Native
}

// withNative offers what the endpoint inside does.
func withNative(e *endpoint) (transport.Endpoint, error) {
	inside, ok := e.Endpoint.(transport.Native)
	if !ok {
		return nil, fmt.Errorf("faulty: endpoint %d is a %T, which does not offer transport.Native: use Wrap", e.Rank(),
			e.Endpoint)
	}
	return &nativeEndpoint{e, inside}, nil
}

// Dup implements transport.Endpoint.
func (n *nativeEndpoint) Dup(ctx context.Context) (transport.Endpoint, error) {
	d, err := n.dup(ctx)
	if err != nil {
		return nil, err
	}
	return withNative(d)
}

// Accepts implements transport.Native.
func (n *nativeEndpoint) Accepts(c transport.NativeCollective) error { return n.native.Accepts(c) }

// Agreement implements transport.Native.
func (n *nativeEndpoint) Agreement(members int) (rounds int) { return n.native.Agreement(members) }

// Collective implements transport.Native.
func (n *nativeEndpoint) Collective(ctx context.Context, call transport.Call, members []int,
	c transport.NativeCollective, dst, src []byte) error {
	call, err := n.struck(ctx, call, members)
	if err != nil {
		return err
	}
	return n.saw(n.native.Collective(ctx, call, members, c, dst, src))
}
