package transport

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Rejoiner is the first endpoint of a replica, in a transport whose replicas can go on without those that are gone.
type Rejoiner interface {
	Endpoint

	// Rejoin aborts the endpoint on all replicas, if it is not aborted yet, and agrees with all that are still there on
	// who these are. Each of them has to call it: it waits for those that have not, until they do or are gone, or ctx
	// is done. A replica is gone when it has closed its endpoint, has ended, or has been silent for too long.
	//
	// All that agree get a new endpoint, and so does one newcomer that waits (Rejoined.Came): the next generation, on
	// which nothing of the last one counts: numbers of calls and Dups begin anew. They keep their order. The endpoint
	// before is to be closed, before or after the first Exchange on the new one. What is agreed is the same on all of
	// them. A replica that dies while they agree is either left out or is lost to the new endpoint, as in any call.
	//
	// note is a number of the caller's, which the others are told: see Rejoined.Notes.
	//
	// An error is one of ErrLeftBehind, *MinorityError, a *ClosedError if this replica has closed the endpoint, or the
	// cause of ctx. After it this replica is gone for the others. Rejoin is called once on an endpoint.
	Rejoin(ctx context.Context, note uint64) (*Rejoined, error)

	// Awaited reports whether a newcomer waits to be taken in, which the next Rejoin of all does, one at a time, and
	// there is room for it. The replicas do not learn of it at the same time.
	Awaited() bool
}

// Rejoined is what the replicas of a transport have agreed on, and this replica's part in it.
type Rejoined struct {
	Endpoint   Endpoint
	Generation int      // 1 is the first after the one in which the transport began
	Replicas   []int    // by number in the new endpoint, ascending: that in the last one; not of those that have come
	Notes      []uint64 // by number in the new endpoint: note of Rejoin; 0 of those that have come
	Came       []int    // numbers in the new endpoint of those that have come: they are the last
	Gone       []Gone   // by number in the last endpoint, ascending
}

// Gone is a replica that has been left out.
type Gone struct {
	Replica int       // in the last endpoint
	When    time.Time // this replica has learnt of it
	Why     error     // as this replica has learnt it
}

// ErrLeftBehind says that the other replicas hold this one for gone, and go on without it.
var ErrLeftBehind = errors.New("the other replicas hold this one for gone: they go on without it")

// MinorityError says that the replicas which are left may not go on, since others may do so without them: those are
// neither known to have ended, nor are they fewer.
type MinorityError struct {
	Left []int // replicas that are left, this one among them
	Of   int   // how many the last generation had
}

func (e *MinorityError) Error() string {
	return fmt.Sprintf("replicas %v of %d are left, and may not go on: the others may have done so without them. Want more "+
		"than half, or half and replica 0, or that this host's kernel says of all others that they have ended", e.Left,
		e.Of)
}
