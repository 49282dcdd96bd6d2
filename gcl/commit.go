package gcl

import (
	"context"
	"fmt"
	"sync/atomic"

	"gogcl.dev/commgroup"
	"gogcl.dev/transport"
)

// Commit makes a step that is done by all replicas or by none. It calls f, and then one small all-reduce tells all
// whether every f has succeeded. All replicas call it, on a Comm of all of them on their first connection, in the same
// order among their calls. It allocates nothing but with its first call and after an error.
//
//	done  err           the step
//	true  nil           is done, on all replicas
//	true  ErrMembersChanged  is done, on all replicas, all of which are told so: a newcomer waits for Rejoin
//	false a *StepError  is not done, on none: the f of some replica has failed. The communicator stays usable
//	false any other     is done or not, as Rejoin tells: the all-reduce has failed on this replica
//
// f makes the new state and leaves the old one as it is, as collectives into other buffers do. Commit comes before the
// old state is given up. After an error that is not about the arguments nor a *StepError, a replica keeps both until
// Rejoin has returned: its step is done if Change.Committed is one more than the number of steps that it has seen done,
// and else not. Then it goes on with the state of Change.Committed steps, from which the new Comm counts.
//
// The members do not always know alike, since one that dies, or aborts, in the all-reduce may have given its result to
// some and not to others. Who has it knows that all have voted for the step, so that all have its new state. Of two
// members that live the numbers differ by one at most: none ends the next step without the other's vote. Where all who
// knew it are gone the step counts as not done, and what they made of it outside, as a file, is to be undone.
//
// A panic of f, or a runtime.Goexit, is a failure like an error, and goes on when the others have been told. A Commit
// or Rejoin within f is an error, and so is a Commit in several goroutines at once, and one with a Comm that is not of
// all replicas: f is not called then, and nobody is told.
func (c *Comm) Commit(ctx context.Context, f func() error) (done bool, err error) {
	if err := c.checkWhole(ctx, "Commit"); err != nil {
		return false, err
	}
	if f == nil {
		return false, newError("Commit needs a function")
	}
	s := &c.conn.steps
	if err := s.begin(committing, "Commit"); err != nil {
		return false, err
	}
	defer s.state.Store(idle)
	if err := c.makeVoter(); err != nil {
		return false, err
	}
	returned := false
	defer func() {
		if !returned { // f panics, or has called runtime.Goexit
			_, _ = s.agree(ctx, c.Replica()) // whatever comes of it, the panic goes on
		}
	}()
	own := f()
	returned = true
	s.blank = s.blank && own != nil // it has made the new state of the old one
	vote := c.Replicas() + 1
	switch endpoint, ok := c.conn.Endpoint.(transport.Rejoiner); {
	case own != nil:
		vote = c.Replica()
	case ok && endpoint.Awaited():
		vote = c.Replicas()
	}
	failed, err := s.agree(ctx, vote)
	switch {
	case own != nil:
		return false, &StepError{Replica: c.Replica(), Err: own, on: c.Replica(), told: err}
	case err != nil:
		return false, err
	case failed < c.Replicas():
		return false, &StepError{Replica: failed, on: c.Replica()}
	}
	s.made++
	if failed == c.Replicas() {
		return true, ErrMembersChanged
	}
	return true, nil
}

// StepError says that a step of Commit is not done, on any replica, since a function has failed.
type StepError struct {
	Replica int   // whose function has failed; of several, this replica, or else the lowest
	Err     error // of that function; nil on other replicas, which do not know it

	on   int   // the replica whose error this is
	told error // nil: the others know
}

func (e *StepError) words() string {
	text := fmt.Sprintf("commit: replica %d: the step is not done: ", e.on)
	if e.Err == nil {
		return text + fmt.Sprintf("the function of replica %d has failed", e.Replica)
	}
	text += "the function has failed: " + explain(e.Err)
	if e.told != nil {
		text += "; the others could not be told: " + explain(e.told)
	}
	return text
}

func (e *StepError) Error() string { return "gcl: " + e.words() }

// Unwrap returns the error of the function, and that of telling the others.
func (e *StepError) Unwrap() []error {
	var out []error
	for _, err := range []error{e.Err, e.told} {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}

// steps are those of Commit on one communicator.
type steps struct {
	state atomic.Uint32 // who has changed it from idle uses the rest
	made  uint64        // steps that this replica knows to be done
	blank bool          // it has come, and voted for no step since: it may not have the state of those
	voter *Comm         // by which the replicas vote; nil: none has been made
	vote  [1]int64
}

// The states of steps.
const (
	idle uint32 = iota
	committing
	rejoined
)

// begin changes the state from idle.
func (s *steps) begin(state uint32, what string) error {
	switch {
	case s.state.CompareAndSwap(idle, state):
		return nil
	case s.state.Load() == rejoined:
		return errorf("%s of a Comm that Rejoin has closed: %w", what, ErrClosed)
	}
	return errorf("%s within a Commit, or beside one", what)
}

// makeVoter makes the Comm by which the replicas vote, with the Trace of c. Other options of c have no say.
func (c *Comm) makeVoter() error {
	s := &c.conn.steps
	if s.voter != nil && s.voter.options.Trace == c.options.Trace {
		return nil
	}
	all, err := c.inGroup(commgroup.Group{})
	if err != nil {
		return err
	}
	if all, err = all.With(Options{Trace: c.options.Trace}); err != nil {
		return err
	}
	s.voter = all.Named("commit")
	return nil
}

// agree returns the lowest vote of all replicas. A replica votes with its number if its function has failed, and else
// with the number of replicas if it knows of a newcomer, and with one more if not.
func (s *steps) agree(ctx context.Context, vote int) (lowest int, err error) {
	s.vote[0] = int64(vote)
	if err := AllReduceInPlace(ctx, s.voter, s.vote[:], Min); err != nil {
		return 0, err
	}
	return int(s.vote[0]), nil
}
