package transport

import (
	"fmt"
	"strings"
)

// RoundError says where in a round something failed.
type RoundError struct {
	Rank  int    // the replica on which it failed
	Round uint32 // Call.Round
	Kind  Kind   // with Peer: the transfer that failed
	Peer  int    // or -1 when the failure belongs to no single transfer
	Err   error
}

func (e *RoundError) Error() string {
	if e.Peer < 0 {
		return fmt.Sprintf("replica %d round %d: %v", e.Rank, e.Round, e.Err)
	}
	return fmt.Sprintf("replica %d round %d: %v %d: %v", e.Rank, e.Round, e.Kind, e.Peer, e.Err)
}

func (e *RoundError) Unwrap() error { return e.Err }

// MismatchError says that two replicas are not in the same call.
type MismatchError struct {
	Rank, Peer   int  // the replica that found it, and the one it disagrees with
	Mine, Theirs Call // the call of Rank, and of Peer
	// MineBytes and TheirsBytes are the lengths of the two sides of one transfer, when that is what differs; else both
	// are 0.
	MineBytes, TheirsBytes int
}

func (e *MismatchError) Error() string {
	if e.Mine == e.Theirs {
		return fmt.Sprintf("message length mismatch: replica %d expects %d bytes, replica %d sends %d, in call %+v",
			e.Rank, e.MineBytes, e.Peer, e.TheirsBytes, e.Mine)
	}
	return fmt.Sprintf("call mismatch: replica %d is in %+v, replica %d in %+v", e.Rank, e.Mine, e.Peer, e.Theirs)
}

// DeadlockError says that the replicas of a cycle wait for each other: Ranks[i], in Calls[i], waits for
// Ranks[i+1], and the last one for the first.
type DeadlockError struct {
	Ranks []int
	Calls []Call
}

func (e *DeadlockError) Error() string {
	var b strings.Builder
	b.WriteString("deadlock: ")
	for i, r := range e.Ranks {
		fmt.Fprintf(&b, "replica %d in %+v waits for replica %d; ", r, e.Calls[i], e.Ranks[(i+1)%len(e.Ranks)])
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// ClosedError says that a replica's endpoint was closed: the peer's, while a transfer waited for it, or the caller's own.
type ClosedError struct {
	Rank int // whose endpoint it was
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("replica %d has closed its endpoint", e.Rank)
}

// AbortError is what every Exchange returns once a replica has aborted.
type AbortError struct {
	Rank  int // where it began
	Cause error
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("aborted by replica %d: %v", e.Rank, e.Cause)
}

func (e *AbortError) Unwrap() error { return e.Cause }

// BatchError says that a batch breaks the rules of Exchange. Nothing was sent, and the endpoint stays usable.
type BatchError struct {
	Index  int // in the batch
	Reason string
}

func (e *BatchError) Error() string {
	return fmt.Sprintf("transfer %d of the batch: %s", e.Index, e.Reason)
}

// CheckBatch returns a *BatchError when the batch breaks a rule that can be seen without a peer: a peer out of range or the
// endpoint itself, a tag above MaxTag, an operand of another length, a missing Fold, a Next without a fold before it.
// Every transport calls it first. It allocates nothing when the batch is good.
func CheckBatch(rank, size int, batch []Transfer) error {
	for i := range batch {
		if reason := checkTransfer(rank, size, batch, i); reason != "" {
			return &BatchError{Index: i, Reason: reason}
		}
	}
	return nil
}

func checkTransfer(rank, size int, batch []Transfer, i int) string {
	t := &batch[i]
	switch {
	case t.Kind > RecvFold:
		return fmt.Sprintf("unknown kind %d", t.Kind)
	case t.Peer < 0 || t.Peer >= size:
		return fmt.Sprintf("peer %d is not a replica of 0..%d", t.Peer, size-1)
	case t.Peer == rank:
		return fmt.Sprintf("peer %d is the endpoint itself", t.Peer)
	case t.Tag > MaxTag:
		return fmt.Sprintf("tag %d is greater than %d", t.Tag, MaxTag)
	case t.Kind != RecvFold && (t.Next || t.Fold != nil || len(t.With) > 0):
		return "only a RecvFold takes With, Fold and Next"
	case t.Kind != RecvFold:
		return ""
	case t.Fold == nil:
		return "a RecvFold needs a Fold"
	case !t.Next && len(t.With) != len(t.Buf), t.Next && len(t.With) != 0 && len(t.With) != len(t.Buf):
		return fmt.Sprintf("With has %d bytes, Buf %d", len(t.With), len(t.Buf))
	case !t.Next:
		return ""
	case i == 0 || batch[i-1].Kind == Send || !sameBytes(batch[i-1].Buf, t.Buf):
		return "Next needs a receive into the same Buf before it"
	}
	return ""
}

// sameBytes reports whether a and b are the same bytes of memory.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
