package gcl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/transport"
)

// Callers branch on these, with errors.Is. An error of a collective that is none of these, nor a *PeerError, nor an
// *UnequalError, is about its arguments: nothing was sent, and the communicator stays usable.
var (
	// ErrMismatch says that replicas do not agree on what they are doing: on the collective, operator, dtype, length,
	// root, method, options, group or order of calls. Where calls have met, or wait for each other, the text begins
	// with what differs, and has them behind it.
	ErrMismatch = newError("replicas disagree")

	// ErrAborted says that the communicator was aborted, by this replica or another. The cause is in the chain.
	ErrAborted = newError("aborted")

	// ErrClosed says that this replica's own communicator is closed.
	ErrClosed = newError("closed")
)

// worded is an error of this package. words is its text inside another error. Error has the package's name in front of
// that, where callers may see the error alone.
type worded interface {
	error
	words() string
}

// plainError is an error that is no more than its words.
type plainError struct{ error }

func newError(words string) error { return &plainError{errors.New(words)} }
func errorf(format string, arguments ...any) error {
	return &plainError{fmt.Errorf(format, arguments...)}
}
func (e *plainError) words() string { return e.error.Error() }
func (e *plainError) Error() string { return "gcl: " + e.words() }
func (e *plainError) Unwrap() error { return e.error }

// PeerError says that a peer is the reason: it has left, or the connection to it failed.
type PeerError struct {
	Replica int // the peer
	Err     error
}

func (e *PeerError) words() string {
	if lost, _ := rootIn[*transport.LostError](e.Err); lost != nil && lost.Replica == e.Replica {
		return explain(lost)
	}
	return fmt.Sprintf("peer %d: %s", e.Replica, explain(e.Err))
}
func (e *PeerError) Error() string { return "gcl: " + e.words() }

func (e *PeerError) Unwrap() error { return e.Err }

// OptionError says which option has a value that cannot be used. Option is the name of a field of Options, or a key of
// ParseOptions.
type OptionError struct {
	Option, Value string
	Reason        string

	environment bool // it is not the program that says so
}

func (e *OptionError) Error() string { return "gcl: " + e.words() }

func (e *OptionError) words() string {
	by := ""
	if e.environment {
		by = " in the environment variable " + environment
	}
	return fmt.Sprintf("option %s=%s%s: %s", e.Option, e.Value, by, e.Reason)
}

// PanicError is what Run and Work.Wait return for a function that panicked.
type PanicError struct {
	Replica int
	Value   any
	Stack   []byte

	at flight.Place
}

func (e *PanicError) recordedAt() flight.Place { return e.at }

func (e *PanicError) Error() string { return "gcl: " + e.words() }

func (e *PanicError) words() string {
	return fmt.Sprintf("replica %d: panic: %v\n\n%s", e.Replica, e.Value, e.Stack)
}

// Unwrap returns the value of the panic if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// replicaError is what Run returns: the error of one replica's function.
type replicaError struct {
	replica int
	err     error
	at      flight.Place
}

func (e *replicaError) Error() string { return "gcl: " + e.words() }
func (e *replicaError) words() string {
	if call, ok := e.err.(*callError); ok && call.replica == e.replica {
		if text := call.rooted(); text != "" { // which names the replica
			return text
		}
	}
	return fmt.Sprintf("replica %d: %s", e.replica, explain(e.err))
}
func (e *replicaError) Unwrap() error            { return e.err }
func (e *replicaError) recordedAt() flight.Place { return e.at }

// callError is the failure of one collective: what and which one, and why.
type callError struct {
	what    string // `all-reduce #3`, or `all-reduce #3 "grads"`
	replica int
	err     error
	kinds   []error // sentinels and typed errors by which the callers branch
	waits   string  // of a call that timed out: for whom, or ""
	waited  string  // of a call that has lost a replica: how long, or ""
	names   names
	at      flight.Place
}

func (e *callError) recordedAt() flight.Place { return e.at }

// newCallError is for what came of a call that was not refused.
func newCallError(ctx context.Context, what string, replica int, err error) *callError {
	e := &callError{what: what, replica: replica, err: err}
	var mismatch *transport.MismatchError
	var deadlock *transport.DeadlockError
	var unmatched *transport.UnmatchedError
	if errors.As(err, &mismatch) && !(isCall(mismatch.Mine) && isCall(mismatch.Theirs)) {
		e.kinds = append(e.kinds, &PeerError{Replica: mismatch.Peer, Err: err})
		if mismatch.Peer == replica {
			e.kinds[0] = &PeerError{Replica: mismatch.Replica, Err: err}
		}
	} else if mismatch != nil || errors.As(err, &deadlock) || errors.As(err, &unmatched) {
		e.kinds = append(e.kinds, ErrMismatch)
	}
	if abort := (*transport.AbortError)(nil); errors.As(err, &abort) {
		e.kinds = append(e.kinds, ErrAborted)
	}
	closed, round := (*transport.ClosedError)(nil), (*transport.RoundError)(nil)
	lost := (*transport.LostError)(nil)
	cancelled := ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) // whichever peer it was waiting for
	switch {
	case mismatch != nil || deadlock != nil:
	case errors.As(err, &closed) && closed.Replica == replica:
		e.kinds = append(e.kinds, ErrClosed)
	case closed != nil:
		e.kinds = append(e.kinds, &PeerError{Replica: closed.Replica, Err: err})
	case errors.As(err, &lost):
		e.kinds = append(e.kinds, &PeerError{Replica: lost.Replica, Err: err})
	case errors.As(err, &round) && round.Peer >= 0 && !cancelled:
		e.kinds = append(e.kinds, &PeerError{Replica: round.Peer, Err: err})
	}
	refused, argument := (*transport.BatchError)(nil), (*transport.ArgumentError)(nil)
	if len(e.kinds) == 0 && !errors.As(err, &refused) && !errors.As(err, &argument) &&
		!errors.Is(err, transport.ErrBusy) {
		e.kinds = append(e.kinds, ErrAborted) // by this replica itself
	}
	return e
}

func (e *callError) Error() string { return "gcl: " + e.words() }

func (e *callError) words() string {
	if text := e.rooted(); text != "" {
		return text
	}
	where := ""
	if round, ok := e.err.(*transport.RoundError); !ok || round.Replica != e.replica {
		where = fmt.Sprintf("replica %d: ", e.replica)
	}
	waits := ""
	if e.waits != "" {
		waits = ", " + e.waits
	}
	return fmt.Sprintf("%s: %s%s%s", e.what, where, e.names.explain(e.err), waits)
}

// rooted is the text of a call that has failed since a replica is lost, or since replicas disagree, which comes first;
// or "".
func (e *callError) rooted() string {
	if lost, by := rootIn[*transport.LostError](e.err); lost != nil {
		return fmt.Sprintf("%s; %s on %s", e.names.explain(lost), e.what, e.where(by))
	}
	var text string
	var calls []transport.Call
	by := -1
	if differ, at := rootIn[*transport.MismatchError](e.err); differ != nil {
		if !isCall(differ.Mine) || !isCall(differ.Theirs) {
			return ""
		}
		text, calls, by = e.names.differ(differ), []transport.Call{differ.Mine, differ.Theirs}, at
	} else if circle, at := rootIn[*transport.DeadlockError](e.err); circle != nil && isCircle(circle) {
		text, calls, by = e.names.circle(circle), circle.Calls, at
	} else {
		return ""
	}
	for _, call := range calls {
		if name := wire.Name(call); e.what == name || strings.HasPrefix(e.what, name+" ") {
			return fmt.Sprintf("%s: %s; on %s", e.what, text, e.where(by))
		}
	}
	return fmt.Sprintf("%s: %s; %s on %s", wire.Name(calls[0]), text, e.what, e.where(by))
}

// where says on which replica and in which round a call has failed, and by whom that was found if by another replica.
func (e *callError) where(by int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "replica %d", e.replica)
	if round, ok := e.err.(*transport.RoundError); ok {
		fmt.Fprintf(&b, ", %s", wire.RoundName(round.Round))
		if round.Peer >= 0 {
			fmt.Fprintf(&b, ", %v %d", round.Kind, round.Peer)
		}
	}
	if e.waited != "" {
		fmt.Fprintf(&b, ", had waited %s", e.waited)
	}
	if by != e.replica {
		fmt.Fprintf(&b, " (found by replica %d)", by)
	}
	return b.String()
}

func (e *callError) Unwrap() []error { return append(e.kinds[:len(e.kinds):len(e.kinds)], e.err) }

// explain is the text of an error for inside another. It is made of the fields of the errors of transports, with the
// numbers in their calls spelled out. The text of any other error stays as it is: words that somebody has put around a
// transport's error have its plain text in them.
func (n names) explain(err error) string {
	switch e := err.(type) {
	case nil:
		return "no cause given"
	case *replicaError:
		return fmt.Sprintf("replica %d: %s", e.replica, n.explain(e.err))
	case worded:
		return e.words()
	case *transport.AbortError:
		cause := e.Cause
		if own, ok := cause.(*replicaError); ok && own.replica == e.Replica {
			cause = own.err
		}
		// The text of an error of this package that comes from another process is one for outside.
		text := strings.TrimPrefix(n.explain(cause), "gcl: ")
		return fmt.Sprintf("aborted by replica %d: %s", e.Replica,
			strings.TrimPrefix(text, fmt.Sprintf("replica %d: ", e.Replica)))
	case *transport.LateError:
		if e.Aborted == nil {
			return n.explain(e.Err)
		}
		switch first := e.Aborted.Cause; {
		case holds(first, e.Err):
			return n.explain(e.Aborted)
		case holds(e.Err, first) || sameDisagreement(e.Err, first):
			return fmt.Sprintf("%s (found by replica %d first)", n.explain(e.Err), e.Aborted.Replica)
		}
		return fmt.Sprintf("%s (%s)", n.explain(e.Err), n.explain(e.Aborted))
	case *transport.RoundError:
		text := n.explain(e.Err)
		if closed, ok := e.Err.(*transport.ClosedError); ok && closed.Replica == e.Replica {
			text = "its communicator is closed"
		}
		if e.Peer >= 0 {
			text = fmt.Sprintf("%v %d: %s", e.Kind, e.Peer, text)
		}
		return fmt.Sprintf("replica %d %s: %s", e.Replica, wire.RoundName(e.Round), text)
	case *transport.MismatchError:
		for _, side := range []struct {
			replica int
			call    transport.Call
		}{{e.Peer, e.Theirs}, {e.Replica, e.Mine}} {
			if !isCall(side.call) {
				return fmt.Sprintf("the connection to replica %d has brought a call that there is not (collective %d, operator "+
					"%d, dtype %d): something has changed it on the way", side.replica, side.call.Collective,
					side.call.Operator, side.call.DType)
			}
		}
		return n.differ(e)
	case *transport.DeadlockError:
		return n.circle(e)
	case *transport.UnmatchedError:
		return fmt.Sprintf("replica %d leaves without %s, which replica %d has made",
			e.Replica, n.describe(e.Peer, e.Theirs), e.Peer)
	case *transport.LostError:
		return fmt.Sprintf("%s is lost: %s", e.Name(), n.explain(e.Err))
	case *transport.ClosedError:
		return fmt.Sprintf("replica %d has left: its function returned, or its communicator was closed", e.Replica)
	}
	return err.Error()
}
