// Package dumbengine has an engine for tests of transport.Native, as dumb as can be: each member sends its input to all
// others, and works out its own result.
package dumbengine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Engine is an endpoint with collectives of its own: a transport.Native. It refuses arguments that break the rules.
type Engine struct {
	transport.Endpoint
	*Room

	busy   sync.Mutex // held by the Collective that uses the fields below
	closed bool
	parts  [][]byte // the inputs, by rank
	room   []byte
	batch  []transport.Transfer

	digests []byte // by rank: a number that stands for what its member has given
}

// Room is shared by all engines that New returns.
type Room struct {
	Refuse    func(transport.NativeCollective) error // the answer of Accepts; nil takes all
	Calls     atomic.Int64                           // calls of Collective
	Transfers atomic.Int64                           // transfers in calls of Exchange
}

// New returns engines on top of endpoints, in their order.
func New(ends []transport.Endpoint) ([]transport.Endpoint, *Room) {
	room, out := new(Room), make([]transport.Endpoint, len(ends))
	for i, e := range ends {
		out[i] = &Engine{Endpoint: e, Room: room}
	}
	return out, room
}

// Dup implements transport.Endpoint.
func (e *Engine) Dup(ctx context.Context) (transport.Endpoint, error) {
	d, err := e.Endpoint.Dup(ctx)
	if err != nil {
		return nil, err
	}
	return &Engine{Endpoint: d, Room: e.Room}, nil
}

// Close implements transport.Endpoint.
func (e *Engine) Close() error {
	err := e.Endpoint.Close() // which ends a Collective
	e.busy.Lock()
	defer e.busy.Unlock()
	e.closed = true
	return err
}

// Exchange implements transport.Endpoint.
func (e *Engine) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	e.Transfers.Add(int64(len(batch)))
	return e.Endpoint.Exchange(ctx, call, batch)
}

// Agreement implements transport.Native.
func (e *Engine) Agreement(n int) int { return 2 * (n - 1) }

// Accepts implements transport.Native.
func (e *Engine) Accepts(c transport.NativeCollective) error {
	if e.Refuse == nil {
		return nil
	}
	return e.Refuse(c)
}

// Collective implements transport.Native.
func (e *Engine) Collective(ctx context.Context, call transport.Call, members []int, c transport.NativeCollective,
	dst, src []byte) error {
	e.Calls.Add(1)
	if err := errors.Join(c.Check(e.Rank(), members, dst, src), e.Accepts(c),
		e.overlap(members, c, dst, src)); err != nil {
		return err
	}
	if !e.busy.TryLock() {
		return &transport.RoundError{Replica: e.Rank(), Round: call.Round, Peer: -1, Err: transport.ErrBusy}
	}
	defer e.busy.Unlock()
	if e.closed { // then the buffers are not touched any more
		return e.Endpoint.Exchange(ctx, call, nil)
	}
	me := slices.Index(members, e.Rank())
	e.prepare(members, me, c, src)
	own := digest(c, members)
	binary.NativeEndian.PutUint64(e.digests[8*me:], own)
	if err := e.Endpoint.Exchange(ctx, call, e.batch); err != nil {
		return err
	}
	for rank, m := range members {
		theirs := call
		if theirs.Digest = binary.NativeEndian.Uint64(e.digests[8*rank:]); theirs.Digest != own {
			call.Digest = own
			err := &transport.RoundError{Replica: e.Rank(), Round: call.Round, Peer: m,
				Err: &transport.MismatchError{Replica: e.Rank(), Peer: m, Mine: call, Theirs: theirs}}
			e.Abort(err)
			return err
		}
	}
	e.result(me, c, dst)
	return nil
}

// overlap refuses buffers that share memory in another way than the rules allow.
func (e *Engine) overlap(members []int, c transport.NativeCollective, dst, src []byte) error {
	if len(dst) == 0 || len(src) == 0 {
		return nil
	}
	at, from := uintptr(unsafe.Pointer(&dst[0])), uintptr(unsafe.Pointer(&src[0]))
	place := uintptr(slices.Index(members, e.Rank()) * min(len(dst), len(src)))
	switch {
	case at+uintptr(len(dst)) <= from, from+uintptr(len(src)) <= at:
	case len(dst) == len(src) && at == from:
	case !c.Collective.Contract().Combines && len(dst) < len(src) && at == from+place:
	case !c.Collective.Contract().Combines && len(dst) > len(src) && from == at+place:
	default:
		return fmt.Errorf("%v: the buffers overlap: %d bytes at %x and %d at %x", c, len(dst), at, len(src), from)
	}
	return nil
}

// digest mixes a collective and its members into one number.
func digest(c transport.NativeCollective, members []int) uint64 {
	h := mixed(uint64(c.Collective)<<16 | uint64(c.Operator)<<8 | uint64(c.DType))
	h = mixed(mixed(mixed(h^uint64(c.Root))^uint64(c.Size)) ^ uint64(c.Bytes))
	for _, r := range members {
		h = mixed(h ^ uint64(r))
	}
	return h
}

// mixed is the finalizer of SplitMix64.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// prepare makes room for what all members have, and the batch that brings it there. The own part is a copy, since dst
// may be src.
func (e *Engine) prepare(members []int, me int, c transport.NativeCollective, src []byte) {
	length := func(rank int) int {
		_, n := c.Lengths(rank)
		return (n + 63) &^ 63
	}
	total := 0
	for rank := range members {
		total += length(rank)
	}
	if len(e.room) < total {
		e.room = make([]byte, total)
	}
	if len(e.digests) < 8*len(members) {
		e.digests = make([]byte, 8*len(members))
	}
	e.parts, e.batch = e.parts[:0], e.batch[:0]
	room := e.room
	for rank, m := range members {
		_, n := c.Lengths(rank)
		part := room[:n:n]
		room = room[length(rank):]
		e.parts = append(e.parts, part)
		if rank == me {
			copy(part, src)
			continue
		}
		e.batch = append(e.batch, transport.Transfer{Peer: m, Kind: transport.Send, Buf: src},
			transport.Transfer{Peer: m, Kind: transport.Recv, Buf: part},
			transport.Transfer{Peer: m, Tag: 1, Kind: transport.Send, Buf: e.digests[8*me:][:8]},
			transport.Transfer{Peer: m, Tag: 1, Kind: transport.Recv, Buf: e.digests[8*rank:][:8]})
	}
}

// result works out the member's own result.
func (e *Engine) result(me int, c transport.NativeCollective, dst []byte) {
	if len(dst) == 0 {
		return
	}
	one := c.Bytes / c.Size
	if c.Collective.Contract().Combines {
		fold := kernel.Binary(kernel.Op(c.Operator), kernel.Type(c.DType))
		for _, part := range e.parts[1:] {
			fold(e.parts[0], e.parts[0], part)
		}
		if c.Collective == schedule.ReduceScatter {
			copy(dst, e.parts[0][me*one:])
			return
		}
		copy(dst, e.parts[0])
		return
	}
	switch c.Collective {
	case schedule.Broadcast:
		copy(dst, e.parts[c.Root])
	case schedule.Scatter:
		copy(dst, e.parts[c.Root][me*one:])
	case schedule.AllToAll:
		for rank, part := range e.parts {
			copy(dst[rank*one:(rank+1)*one], part[me*one:])
		}
	default: // gathers
		for rank, part := range e.parts {
			copy(dst[rank*one:], part)
		}
	}
}
