package faulty

import (
	"context"
	"fmt"
	"slices"

	"gogcl.dev/transport"
)

// WrapMemory is Wrap for endpoints that offer transport.PeerMemory and transport.Boards: those that it returns do, too.
// A Share, a Gather and a Broadcast count as an Exchange, and faults strike them like one. Two members that are cut off
// from each other see nothing of any call that both are members of. It is an error if an endpoint does not offer both.
func WrapMemory(eps []transport.Endpoint, seed uint64, faults ...Fault) ([]transport.Endpoint, error) {
	wrapped, err := wrap(eps, seed, faults)
	if err != nil {
		return nil, err
	}
	out := make([]transport.Endpoint, len(eps))
	for i, e := range wrapped {
		if out[i], err = withMemory(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// memoryEndpoint is an endpoint with peer memory and boards.
type memoryEndpoint struct {
	*endpoint
	memory transport.PeerMemory
	boards transport.Boards
}

// withMemory offers what the endpoint inside does.
func withMemory(e *endpoint) (transport.Endpoint, error) {
	m := &memoryEndpoint{endpoint: e}
	var memory, boards bool
	m.memory, memory = e.Endpoint.(transport.PeerMemory)
	m.boards, boards = e.Endpoint.(transport.Boards)
	if !memory || !boards {
		return nil, fmt.Errorf("faulty: endpoint %d is a %T, which does not offer both transport.PeerMemory and "+
			"transport.Boards: use Wrap", e.Rank(), e.Endpoint)
	}
	return m, nil
}

// Dup implements transport.Endpoint.
func (m *memoryEndpoint) Dup(ctx context.Context) (transport.Endpoint, error) {
	d, err := m.dup(ctx)
	if err != nil {
		return nil, err
	}
	return withMemory(d)
}

// Reaches implements transport.PeerMemory and transport.Boards.
func (m *memoryEndpoint) Reaches(members []int) bool { return m.memory.Reaches(members) }

// Share implements transport.PeerMemory.
func (m *memoryEndpoint) Share(ctx context.Context, call transport.Call, members []int, mine transport.Memory,
	rounds []int, w transport.Worker) error {
	call, err := m.struck(ctx, call, members)
	if err != nil {
		return err
	}
	open, err := m.open(ctx, call, members)
	switch {
	case err != nil:
		return m.saw(err)
	case !open:
		return transport.ErrNotShared
	}
	return m.saw(m.memory.Share(ctx, call, members, mine, rounds, w))
}

// open reports whether the buffers of all members can be laid open. Members tell each other only if a fault of the
// script hides some.
func (m *memoryEndpoint) open(ctx context.Context, call transport.Call, members []int) (bool, error) {
	k, told, mine := m.me.shares.Add(1)-1, false, byte(0)
	for _, f := range m.me.world.faults {
		if f.kind == hide {
			told = true
			if f.rank == m.Rank() && int64(f.at) == k {
				mine = 1
			}
		}
	}
	if !told {
		return true, nil
	}
	all, _, err := m.boards.Gather(ctx, call, members, []byte{mine}, 1, nil)
	return err == nil && !slices.ContainsFunc(all, func(hidden []byte) bool { return hidden[0] == 1 }), err
}

// SmallLimit implements transport.Boards.
func (m *memoryEndpoint) SmallLimit() int { return m.boards.SmallLimit() }

// Gather implements transport.Boards.
func (m *memoryEndpoint) Gather(ctx context.Context, call transport.Call, members []int, mine []byte, size int,
	c transport.Combiner) (all [][]byte, combined []byte, err error) {
	if call, err = m.struck(ctx, call, members); err != nil {
		return nil, nil, err
	}
	all, combined, err = m.boards.Gather(ctx, call, members, mine, size, c)
	return all, combined, m.saw(err)
}

// Broadcast implements transport.Boards.
func (m *memoryEndpoint) Broadcast(ctx context.Context, call transport.Call, members []int, root int,
	buf []byte) error {
	call, err := m.struck(ctx, call, members)
	if err != nil {
		return err
	}
	return m.saw(m.boards.Broadcast(ctx, call, members, root, buf))
}
