package gcl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// Send sends data to one rank of the group, which calls [Recv] for it. It returns when data may be changed again: the
// receiver has taken it, or the transport. The other ranks have no part.
//
// Messages from one rank to another, in one group and on one connection, are matched in the order in which both sides
// call; there are no tags. Each carries its dtype, its length and its number: where the receiver expects another, both
// get ErrMismatch, the sender from its next call if it has returned. A call with bad arguments takes a number too.
// Calls take the connection's turn, as collectives do, and go before or after those of their replica in program order.
//
// Two ranks that both send to each other first may wait for each other: that is an error on both, ErrMismatch, and no
// hang, or it succeeds, as the transport has room. [SendRecv] does both at once. A rank does not send to itself but by
// SendRecv. A message may be of any length, and none is copied more often than a collective copies. Options do not
// matter. In steady state nothing is allocated.
func Send[T tensor.Element](ctx context.Context, c *Comm, data []T, to int) error {
	return c.do(ctx, &call{moves: wire.Send, to: to, from: rounds.None, dtype: tensor.DTypeOf[T](),
		src: tensor.Bytes(data), srcLen: len(data)})
}

// Recv receives into dst what one rank of the group sends: see [Send]. dst has the length of what is sent. After an
// error it holds anything.
func Recv[T tensor.Element](ctx context.Context, c *Comm, dst []T, from int) error {
	return c.do(ctx, &call{moves: wire.Recv, to: rounds.None, from: from, dtype: tensor.DTypeOf[T](),
		dst: tensor.Bytes(dst), dstLen: len(dst)})
}

// SendRecv is [Send] of data to one rank and [Recv] into dst from one, the same or another, at once: so ranks in a ring
// pass something on without waiting for each other. The lengths may differ. The two slices share no memory. A rank that
// is both of its own peers copies.
//
//	err := gcl.SendRecv(ctx, c, edge, (c.Rank()+1)%c.Size(), halo, (c.Rank()+c.Size()-1)%c.Size())
func SendRecv[T tensor.Element](ctx context.Context, c *Comm, data []T, to int, dst []T, from int) error {
	return c.do(ctx, &call{moves: wire.SendRecv, to: to, from: from, dtype: tensor.DTypeOf[T](),
		src: tensor.Bytes(data), dst: tensor.Bytes(dst), srcLen: len(data), dstLen: len(dst)})
}

// pairs are the labels of the messages of one Comm, by the wire.PairID of what a call sends and of what it receives,
// either of which may be 0. They are made when first used.
type pairs struct {
	mu sync.Mutex // guards by
	by map[[2]uint64]*flight.Label
}

// hasRank reports whether there is a rank in the group.
func (c *Comm) hasRank(rank int) bool { return rank >= 0 && rank < c.Size() }

// describeMessages says what a call that moves messages is: what it receives, if it does, else what it sends. A peer
// that does not exist leaves it with the group alone.
func (c *Comm) describeMessages(k *call, f *transport.Call) {
	f.Collective, f.DType, f.Count, f.Group = k.moves, uint8(k.dtype), uint64(k.srcLen), c.group.ID
	if k.moves == wire.Recv {
		f.Count = uint64(k.dstLen)
	}
	own, sends, receives := c.Replica(), k.moves != wire.Recv, k.moves != wire.Send
	if sends && !c.hasRank(k.to) || receives && !c.hasRank(k.from) { // it is refused
		f.Group = wire.PairID(c.group.ID, own, own)
		k.label = &flight.Label{Name: c.label.Name, Group: f.Group, Members: c.group.Members, Rank: c.group.Rank}
		return
	}
	var sent, received uint64 // PairIDs
	if sends {
		to := c.group.Members[k.to]
		sent, f.Root = wire.PairID(c.group.ID, own, to), wire.Peers(own, to)
		f.Group = sent
	}
	if receives {
		from := c.group.Members[k.from]
		received, f.Root = wire.PairID(c.group.ID, from, own), wire.Peers(from, own)
		f.Group = received
	}
	k.label = c.labelOfPairs(k, sent, received)
}

// labelOfPairs is the label of messages sent and received, each of which may be none: 0.
func (c *Comm) labelOfPairs(k *call, sent, received uint64) *flight.Label {
	p := c.pairs
	p.mu.Lock()
	defer p.mu.Unlock()
	key := [2]uint64{sent, received}
	l := p.by[key]
	if l != nil {
		return l
	}
	if sent != 0 {
		l = &flight.Label{Name: c.label.Name, Group: sent, Members: []int{c.Replica(), c.group.Members[k.to]}}
	}
	if received != 0 {
		l = &flight.Label{Name: c.label.Name, Group: received, Members: []int{c.group.Members[k.from], c.Replica()},
			Also: l}
	}
	if p.by == nil {
		p.by = map[[2]uint64]*flight.Label{}
	}
	p.by[key] = l
	return l
}

// numberMessages gives the messages of a call their numbers, and returns that of the call: of what it receives, if it
// does. A peer that does not exist has none.
func (c *Comm) numberMessages(k *call) (seq uint64) {
	made := c.group.made
	made.once.Do(func() {
		made.sent, made.received = make([]atomic.Uint64, c.Size()), make([]atomic.Uint64, c.Size())
	})
	if k.moves != wire.Recv && c.hasRank(k.to) {
		k.sent = made.sent[k.to].Add(1)
		seq = k.sent
	}
	if k.moves != wire.Send && c.hasRank(k.from) {
		k.received = made.received[k.from].Add(1)
		seq = k.received
	}
	return seq
}

// checkMessages looks at the arguments of a call that moves messages. Nothing has been sent.
func (c *Comm) checkMessages(k *call) error {
	sends, receives := k.moves != wire.Recv, k.moves != wire.Send
	for _, peer := range []struct {
		is   bool
		rank int
		what string
	}{{sends, k.to, "send to"}, {receives, k.from, "receive from"}} {
		if peer.is && !c.hasRank(peer.rank) {
			return fmt.Errorf("%s rank %d, which is not a rank of the group, 0 to %d", peer.what, peer.rank, c.Size()-1)
		}
	}
	toSelf, fromSelf := sends && k.to == c.Rank(), receives && k.from == c.Rank()
	switch {
	case toSelf && !receives, fromSelf && !sends:
		return fmt.Errorf("rank %d is itself the peer: want SendRecv with it as both, which copies", c.Rank())
	case toSelf != fromSelf && sends && receives:
		return fmt.Errorf("send to rank %d and receive from rank %d by rank %[3]d: want itself as both, or as neither",
			k.to, k.from, c.Rank())
	case toSelf && fromSelf && k.srcLen != k.dstLen:
		return fmt.Errorf("rank %d sends %d elements to itself and receives %d", c.Rank(), k.srcLen, k.dstLen)
	case memory.Overlap(k.dst, k.src):
		return errors.New("the slices sent and received overlap; they must lie apart")
	}
	return nil
}

// performMessages carries out a call that moves messages and has been checked.
func (c *Comm) performMessages(ctx context.Context, k *call, f *transport.Call) error {
	envelope := transport.Call{Group: c.group.ID, Collective: wire.Message}
	if k.to == c.Rank() { // and so is from
		if err := c.conn.Endpoint.Exchange(ctx, envelope, nil); err != nil { // aborted, closed, a context that is done
			return c.failed(ctx, k, f, err)
		}
		copy(k.dst, k.src)
		return c.end(nil)
	}
	m := &c.conn.moved
	*m = rounds.Messages{Envelope: envelope, To: rounds.None, From: rounds.None, Out: k.src, In: k.dst}
	own := c.Replica()
	if k.moves != wire.Recv {
		m.To = c.group.Members[k.to]
		m.Sent = c.message(own, m.To, k.sent, k.srcLen, k.dtype)
	}
	if k.moves != wire.Send {
		m.From = c.group.Members[k.from]
		m.Received = c.message(m.From, own, k.received, k.dstLen, k.dtype)
	}
	err := c.conn.Messages(ctx, m)
	m.Out, m.In = nil, nil
	if err != nil {
		return c.failed(ctx, k, f, err)
	}
	return c.end(nil)
}

// message describes a message from one replica to another, as both sides do if they agree.
func (c *Comm) message(from, to int, number uint64, elements int, dtype tensor.DType) transport.Call {
	return transport.Call{Group: wire.PairID(c.group.ID, from, to), Root: wire.Peers(from, to), Seq: number,
		Count: uint64(elements), DType: uint8(dtype), Collective: wire.Message}
}
