package transport

import (
	"errors"
	"fmt"
	"strings"
)

// ErrBusy says that a call was made on an endpoint that is in another one. It is a fault of the caller, found on a best
// effort; the call in progress goes on.
var ErrBusy = errors.New("another call is in progress on this endpoint")

// RoundError says where in a round something failed.
type RoundError struct {
	Replica int    // on which it failed
	Round   uint32 // Call.Round
	Kind    Kind   // with Peer: the transfer that failed
	Peer    int    // a replica, or -1 when the failure belongs to no single transfer
	Err     error  `json:"-"` // which travels beside the fields
}

func (e *RoundError) Error() string {
	if e.Peer < 0 {
		return fmt.Sprintf("replica %d round %d: %v", e.Replica, e.Round, e.Err)
	}
	return fmt.Sprintf("replica %d round %d: %v %d: %v", e.Replica, e.Round, e.Kind, e.Peer, e.Err)
}

func (e *RoundError) Unwrap() error { return e.Err }

// MismatchError says that two replicas are not in the same call.
type MismatchError struct {
	Replica, Peer int  // the replica that found it, and the one it disagrees with
	Mine, Theirs  Call // the call of Replica, and of Peer
	// MineBytes and TheirsBytes are the lengths of the two sides of one transfer, when that is what differs; else both
	// are 0.
	MineBytes, TheirsBytes int
}

func (e *MismatchError) Error() string {
	if e.Mine == e.Theirs {
		return fmt.Sprintf("message length mismatch: replica %d expects %d bytes, replica %d sends %d, in call %+v",
			e.Replica, e.MineBytes, e.Peer, e.TheirsBytes, e.Mine)
	}
	return fmt.Sprintf("call mismatch: replica %d is in %+v, replica %d in %+v", e.Replica, e.Mine, e.Peer, e.Theirs)
}

// UnmatchedError says that a replica leaves without a call that another one has made, and that could end without it: a
// Broadcast of Boards.
type UnmatchedError struct {
	Replica, Peer int  // the replica that leaves, and the one that made the call
	Theirs        Call // the call
}

func (e *UnmatchedError) Error() string {
	return fmt.Sprintf("replica %d leaves without %+v, which replica %d has made", e.Replica, e.Theirs, e.Peer)
}

// DeadlockError says that the replicas of a cycle wait for each other: Replicas[i], in Calls[i], waits for
// Replicas[i+1], and the last one for the first.
type DeadlockError struct {
	Replicas []int
	Calls    []Call
}

func (e *DeadlockError) Error() string {
	waits := make([]string, len(e.Replicas))
	for i, r := range e.Replicas {
		waits[i] = fmt.Sprintf("replica %d in %+v waits for replica %d",
			r, e.Calls[i], e.Replicas[(i+1)%len(e.Replicas)])
	}
	return "deadlock: " + strings.Join(waits, "; ")
}

// ClosedError says that a replica's endpoint was closed: the peer's, while a transfer waited for it, or the caller's
// own.
type ClosedError struct {
	Replica int // whose endpoint it was
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("replica %d has closed its endpoint", e.Replica)
}

// LostError says that the connection to a replica ended without a word: its process died, its host fell silent, or the
// network between failed. It aborts the endpoints of all who notice.
type LostError struct {
	Replica int    // that was lost
	Process string // where it ran: "pid 4711 on node1"; "" if unknown
	Err     error  `json:"-"` // what the connection said
}

func (e *LostError) Error() string { return fmt.Sprintf("%s is lost: %v", e.Name(), e.Err) }
func (e *LostError) Unwrap() error { return e.Err }

// Name is the replica with its process, if that is known: "replica 2 (pid 4711 on node1)".
func (e *LostError) Name() string {
	if e.Process == "" {
		return fmt.Sprintf("replica %d", e.Replica)
	}
	return fmt.Sprintf("replica %d (%s)", e.Replica, e.Process)
}

// AbortError is what every Exchange returns once a replica has aborted.
type AbortError struct {
	Replica int   // where it began
	Cause   error `json:"-"`
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("aborted by replica %d: %v", e.Replica, e.Cause)
}

func (e *AbortError) Unwrap() error { return e.Cause }

// LateError is the failure of a replica that failed by itself after another one had aborted. Err is the failure that it
// found. The other replica may have aborted over the same one.
type LateError struct {
	Err     error       `json:"-"`
	Aborted *AbortError `json:"-"`
}

func (e *LateError) Error() string { return fmt.Sprintf("%v (%v)", e.Err, e.Aborted) }

// Unwrap returns both.
func (e *LateError) Unwrap() []error { return []error{e.Err, e.Aborted} }

// BatchError says that a batch breaks the rules of Exchange. Nothing was sent, and the endpoint stays usable.
type BatchError struct {
	Index  int // in the batch
	Reason string
}

func (e *BatchError) Error() string {
	return fmt.Sprintf("transfer %d of the batch: %s", e.Index, e.Reason)
}
