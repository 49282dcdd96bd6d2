package transport

import "context"

// Endpoint is one replica's end of a transport that connects Size replicas.
type Endpoint interface {
	// Rank is this replica's id, 0 <= Rank < Size.
	Rank() int

	// Size is the number of replicas that the transport connects.
	Size() int

	// Exchange carries out one round: all transfers of the batch, at once, in no particular order but that of the
	// folds. It returns nil when every receive has its bytes and every send has been taken: by its receiver, or into
	// the transport's own memory (see "Buffered sends"). On an error what the receive buffers hold is unspecified, and
	// the endpoint is aborted everywhere (but see BatchError and ErrBusy).
	//
	// The buffers belong to the transport until Exchange returns, and not a moment longer. A context that is done, even
	// before the call, counts as a failure of the round and aborts; an endpoint that is closed, or is in another call
	// (ErrBusy), refuses and aborts nothing. Errors are *MismatchError, *DeadlockError, *ClosedError, *AbortError, the
	// context's cause, or the transport's own, each in a *RoundError that says where.
	Exchange(ctx context.Context, call Call, batch []Transfer) error

	// Dup opens an independent lane between the same replicas. Every replica calls it, in the same order
	// relative to its other Dup calls on this endpoint; the k-th Dup of one replica meets the k-th of the others.
	// Dup never waits for another replica: what connects the ends of a lane is made when the lane is first used.
	Dup(ctx context.Context) (Endpoint, error)

	// Done is closed by the first abort, wherever it was: on any replica, on any lane. Err then says why. All lanes of
	// a replica have the same channel.
	Done() <-chan struct{}

	// Err is why Exchange would fail on this endpoint: the *AbortError or *ClosedError as far as this replica knows, or
	// nil. It costs some nanoseconds, and may be called at any time by any goroutine.
	Err() error

	// Abort makes every Exchange on every replica and every lane, now and later, fail with an *AbortError that holds
	// this replica's id and the cause. The first abort wins; later ones change nothing.
	Abort(cause error)

	// Close says that this replica takes part no more. Transfers of others that wait for it fail with a *ClosedError,
	// or with a *MismatchError where it can be told that they are in another call than this replica was at last. An
	// Exchange in progress on this endpoint fails, and Close returns when it has left its buffers. Closing the first
	// endpoint of a replica closes its Dups. Closing twice is allowed.
	//
	// The error is the *MismatchError, *UnmatchedError or *ClosedError of a message that ended without its receiver, as
	// far as Close can know and no call has told of it. Where sends are buffered, Close waits a bounded time for the
	// receivers of messages that have not been taken. The endpoint is closed even if there is an error.
	Close() error
}

// Kind says what a Transfer does.
type Kind uint8

// The kinds of transfer.
const (
	Send     Kind = iota // Buf goes to Peer
	Recv                 // Buf = what Peer sends
	RecvFold             // Buf = With op what Peer sends
)

// String returns the words used in errors: "send to", "receive from", "receive and fold from".
func (k Kind) String() string {
	switch k {
	case Send:
		return "send to"
	case Recv:
		return "receive from"
	case RecvFold:
		return "receive and fold from"
	}
	return "unknown transfer with"
}

// MaxTag is the greatest tag. It bounds what a transport keeps for one pair of replicas.
const MaxTag = 1<<16 - 1

// MaxUnread is how many messages from one replica to another, on one lane, a transport that buffers sends may hold that
// the receiver has not read. It bounds how many calls a replica can be ahead of another, and so the number of calls
// that a replica remembers to tell a message of a call gone by.
const MaxUnread = 64

// Transfer is one send or receive of a round.
//
// Several receives may fold into one buffer. The first is a Recv (Buf = arrived) or a RecvFold (Buf = With op arrived);
// those that follow it in the batch are RecvFolds with Next set and the same Buf, and are applied in this order
// whatever order they arrive in: Buf = Buf op arrived or, when With is neither empty nor Buf itself, Buf = (Buf op
// With) op arrived, which is how a replica's own operand takes its place among the others. A transport may apply a fold
// block by block, all of the chain to one block before it goes on to the next.
type Transfer struct {
	Peer int    // replica id; never the endpoint's own
	Tag  uint32 // tells the transfers of a round from one replica to another apart: 0, 1, 2, ... up to MaxTag
	Kind Kind
	Next bool   // RecvFold: goes on with the fold of the transfer before it in the batch
	Buf  []byte // sent from, or received into; may be empty
	With []byte // RecvFold: the local operand, as long as Buf; may be Buf itself

	// Fold computes dst = a op b for three slices of one length. It is called with pieces of Buf, With and the arrived
	// bytes, each starting at a multiple of 64 bytes from the start of Buf, and a multiple of 64 bytes long, except the
	// last; never with empty ones. dst may be a. What has arrived may come as a or as b, and may be the sender's own
	// memory: it is only read. Fold is called on the goroutine that called Exchange; one that panics aborts the
	// endpoint.
	Fold func(dst, a, b []byte)
}

// Call is the fingerprint of a collective: what a replica believes is going on. It travels with every transfer, and a
// receiver that expects another one fails on both sides before anything is written. What the numbers mean is
// the caller's affair; a transport compares them and prints them.
type Call struct {
	Group      uint64 // which members, on which lane
	Seq        uint64 // how many calls this lane has made over these members
	Count      uint64 // elements
	Digest     uint64 // whatever else must agree
	Root       uint32
	Round      uint32
	Collective uint8
	Operator   uint8
	DType      uint8
	Method     uint8
}

// Same reports whether two calls differ at most in their round.
func (c Call) Same(d Call) bool {
	d.Round = c.Round
	return c == d
}
