package rounds

import (
	"context"

	"gogcl.dev/transport"
)

// Messages are the one or two messages of a call of which only the peers have a part: one that is sent, one that is
// received.
//
//	round 0   a head in each direction: the sender's description of the message, and its bytes if they are few
//	round 1   the bytes, if there are more
//
// The receiver compares the description with its own before anything of the message lies in its buffer.
type Messages struct {
	// Envelope is the call as the transport compares it, with nothing in it that two messages may have apart: the two
	// of one round go between three replicas.
	Envelope transport.Call

	To, From       int            // replica ids; -1: there is none
	Sent, Received transport.Call // descriptions of the two messages, for the peers to compare
	Out, In        []byte
}

// None is where a call has no peer.
const None = -1

// headBytes is the length of a head, whatever the message. inHead bytes of a message, or fewer, travel in it.
const (
	headBytes = 128
	inHead    = headBytes - transport.CallBytes
)

// maxTransfer is how many bytes of a message are one transfer at most.
const maxTransfer = 1 << 30

// Pass carries out the messages of a call.
func (l *Runner) Pass(ctx context.Context, m *Messages) error {
	l.StartRound(0)
	batch := l.batch[:0]
	if m.To != None {
		head := transport.AppendCall(l.heads[0][:0], m.Sent)[:headBytes]
		clear(head[transport.CallBytes:])
		if len(m.Out) <= inHead {
			copy(head[transport.CallBytes:], m.Out)
		}
		batch = append(batch, transport.Transfer{Peer: m.To, Kind: transport.Send, Buf: head})
	}
	if m.From != None {
		batch = append(batch, transport.Transfer{Peer: m.From, Kind: transport.Recv, Buf: l.heads[1][:]})
	}
	if err := l.pass(ctx, m, 0, batch); err != nil {
		return err
	}
	if m.From != None {
		if err := l.compare(m); err != nil {
			return err
		}
	}
	batch = l.batch[:0]
	if m.To != None {
		batch = appendTransfers(batch, m.To, transport.Send, m.Out)
	}
	if m.From != None {
		batch = appendTransfers(batch, m.From, transport.Recv, m.In)
	}
	if len(batch) > 0 {
		l.StartRound(1)
		if err := l.pass(ctx, m, 1, batch); err != nil {
			return err
		}
	}
	l.EndRound(nil)
	return nil
}

// Rounds is how many rounds the messages take.
func (m *Messages) Rounds() int {
	if len(m.Out) > inHead || len(m.In) > inHead {
		return 2
	}
	return 1
}

// pass carries out a round of messages.
func (l *Runner) pass(ctx context.Context, m *Messages, round int, batch []transport.Transfer) error {
	m.Envelope.Round = uint32(round)
	l.batch = batch
	l.Segments(batch, 0)
	err := l.Endpoint.Exchange(ctx, m.Envelope, batch)
	clear(batch) // hold on to nobody's buffers
	return err
}

// compare looks at the description that has come, and takes what else is in the head. A difference is an error on all.
func (l *Runner) compare(m *Messages) error {
	theirs := transport.ParseCall(l.heads[1][:])
	if theirs != m.Received {
		rank := l.Endpoint.Rank()
		err := &transport.RoundError{Replica: rank, Peer: m.From, Kind: transport.Recv,
			Err: &transport.MismatchError{Replica: rank, Peer: m.From, Mine: m.Received, Theirs: theirs}}
		l.Endpoint.Abort(err)
		return err
	}
	if len(m.In) <= inHead {
		copy(m.In, l.heads[1][transport.CallBytes:])
	}
	return nil
}

// appendTransfers appends those of the bytes of a message that do not travel in its head.
func appendTransfers(batch []transport.Transfer, peer int, kind transport.Kind, buf []byte) []transport.Transfer {
	if len(buf) <= inHead {
		return batch
	}
	for tag := uint32(0); len(buf) > 0; tag++ {
		n := min(len(buf), maxTransfer)
		batch = append(batch, transport.Transfer{Peer: peer, Tag: tag, Kind: kind, Buf: buf[:n:n]})
		buf = buf[n:]
	}
	return batch
}
