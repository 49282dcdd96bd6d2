package gcl

import (
	"errors"
	"fmt"

	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/transport"
)

// ipuError says on which of a replica's IPUs a collective failed.
type ipuError struct {
	ipu int
	err error // of the network of the IPUs
}

func (e *ipuError) Error() string { return e.words() }

func (e *ipuError) words() string {
	words := explain(e.Unwrap())
	round, ok := e.err.(*transport.RoundError)
	switch {
	case !ok:
		return fmt.Sprintf("IPU %d: %s", e.ipu, words)
	case round.Peer < 0:
		return fmt.Sprintf("IPU %d %s: %s", e.ipu, wire.RoundName(round.Round), words)
	}
	return fmt.Sprintf("IPU %d %s: %v IPU %d: %s", e.ipu, wire.RoundName(round.Round), round.Kind, round.Peer, words)
}

// Unwrap returns the cause, in which no number of an IPU can be taken for a replica's.
func (e *ipuError) Unwrap() error {
	if abort := ownAbort(e.err); abort != nil {
		return abort.Cause
	}
	err := withoutRound(e.err)
	if _, ok := err.(*transport.ClosedError); ok {
		return errors.New("the communicator is closed")
	}
	return err
}

// ownAbort is the abort of the IPUs' network that an error of that network tells of, or nil. It does not look into the
// cause of a context that is done: an abort in there is of the replicas.
func ownAbort(err error) *transport.AbortError {
	err = withoutRound(err)
	if abort, ok := err.(*transport.AbortError); ok {
		return abort
	}
	if late, ok := err.(*transport.LateError); ok { // of an IPU that failed after another
		return late.Aborted
	}
	return nil
}

// withoutRound is an error without the round in which it happened.
func withoutRound(err error) error {
	if round, ok := err.(*transport.RoundError); ok {
		return round.Err
	}
	return err
}
