package rts

import (
	"context"
	"errors"
	"fmt"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/rts/checkpoint"
)

// Copies keeps copies of a model's shards in the memory of the replicas of a job, so that those that are left when some
// die go on: see gcl.Rejoin. Each replica has a copy of its own shards, and of those of one other replica: the next, or
// one on another host where there is one. All copies are of the same step.
//
//	copies := &rts.Copies{Every: 10}
//	for {
//		session, step := ...                       // a program of c.Replicas() replicas
//		meta, err := copies.Restore(ctx, c, session, position, step)
//		if meta != nil { ... }                     // go on from the position that it says
//		for err == nil && ... {
//			done, err = copies.Commit(ctx, func() error { ... }) // a run of the session
//			if done { ... }                        // the next position
//		}
//		session.Close()
//		c, change, err = gcl.Rejoin(ctx, c)        // after an error
//	}
//
// After deaths all go back to the step that was copied last, Every steps at most, and the shards are cut anew for the
// replicas that are left. For a newcomer a copy is made before, and none goes back. From there everything has the bits
// of a job of as many replicas that has loaded a checkpoint of that step. Where a replica and the one that keeps its
// copy are gone, Restore returns a *checkpoint.LostError.
//
// A replica's copies take four times the memory of its shards: two of its own and two of another's, since a copy stays
// until the next is complete on all. With Sharding.Over 1, or replicas that have the same shards, nothing is sent, and
// it is twice. Restore takes memory for the shards that a replica needs from others.
type Copies struct {
	Every int // committed steps from copy to copy, 1 or more

	// Hold has newcomers wait, and Commit go on without them. It may change between calls, on all replicas alike. A
	// Rejoin after a death takes a newcomer in all the same.
	Hold bool

	memory checkpoint.Memory
	comm   *gcl.Comm // of Restore; nil: Restore comes next
	beside *gcl.Comm // a Dup of that, for copies
	of     *gcl.Comm
	meta   func() (map[string]string, error)
	since  int  // committed steps since the last copy
	called bool // a newcomer waits, and has been waiting since the last committed step
}

// Restore comes first, and after every Rejoin. All replicas of c call it, with a session of c's Job, whose program has
// the same tensors whatever the number of replicas. It gives the tensors their values in the newest copy that the
// replicas have between them, and returns the strings that were kept with it. Where nobody has a copy it leaves the
// state as it is, and returns nil. When it returns, a copy of the state is complete on all replicas. A replica that has
// no copies, since it is new, takes part like the others.
//
// meta returns strings that say where the training is, as checkpoint.Save takes them, the same on all replicas. It is
// called when a copy is made, in Commit and, where nobody has a copy, in Restore.
//
// Errors: those of Checkpoint; an Every below 1, and a session of another Comm, which send nothing; and those of
// checkpoint.Memory.Restore. After a *checkpoint.LostError load the last checkpoint, and call Restore again.
func (k *Copies) Restore(ctx context.Context, c *gcl.Comm, session *ir.Session,
	meta func() (map[string]string, error), of ...Checkpointed) (map[string]string, error) {
	switch {
	case k == nil || ctx == nil || c == nil || meta == nil:
		return nil, errors.New("rts: restore copies: want Copies, a context, a Comm and a function for the strings")
	case k.Every < 1:
		return nil, fmt.Errorf("rts: restore copies: Every is %d, want 1 step from copy to copy or more", k.Every)
	}
	k.comm = nil
	if _, job := session.Job(); job != collective.Job(c) {
		return nil, errors.New("rts: restore copies: want a session of the Comm's Job, by collective.WithComm")
	}
	tensors, err := Checkpoint(session, of...)
	if err != nil {
		return nil, err
	}
	out, err := k.memory.Restore(ctx, collective.Job(c), carryBy(c), tensors, meta)
	if err != nil {
		return nil, fmt.Errorf("rts: %w", err)
	}
	if k.beside == nil || k.of != c {
		if k.beside, err = c.Dup(ctx); err != nil {
			return nil, fmt.Errorf("rts: restore copies: %w", err)
		}
		k.of = c
	}
	k.comm, k.meta, k.since, k.called = c, meta, 0, false
	return out, nil
}

// Commit is gcl.Comm.Commit of a step, which changes the tensors in place. Where Every steps have been committed since
// the last copy, it begins a copy of the tensors as they are before f. Shards are copied within the replica at once;
// to the other replica they go beside f. Commit waits for that before it says that f has succeeded.
//
// Where a newcomer waits, and there is no Hold, Commit does not call f: it copies the tensors as they are, and returns
// false and gcl.ErrMembersChanged on all replicas. Call Rejoin and Restore, which go on from there: nothing is lost.
//
// Unless done is true the tensors hold anything: call Rejoin, which replicas whose f has failed may do too, and
// Restore. An error of f aborts the communicator, since the others may wait for this replica in a run of the session.
func (k *Copies) Commit(ctx context.Context, f func() error) (done bool, err error) {
	switch {
	case k == nil || ctx == nil || f == nil:
		return false, errors.New("rts: commit: want Copies, a context and a function")
	case k.comm == nil:
		return false, errors.New("rts: commit: call Restore first, as after each Rejoin")
	}
	c, called := k.comm, k.called && !k.Hold
	due := called || k.since >= k.Every
	k.comm = nil
	if called {
		f = func() error { return nil }
	}
	done, err = c.Commit(ctx, func() (err error) {
		failed := errors.New("the function of a step has panicked")
		defer func() {
			if failed != nil { // the others may wait for this replica in a run, or for its copy
				c.Abort(failed)
			}
		}()
		err = k.step(ctx, due, f)
		failed = err
		return err
	})
	if !done {
		return false, err
	}
	k.since++
	if due {
		k.since = 1
		k.memory.Complete()
	}
	if called {
		return false, gcl.ErrMembersChanged
	}
	k.comm, k.called = c, errors.Is(err, gcl.ErrMembersChanged)
	return true, nil
}

// step calls f, beside a copy where one is due.
func (k *Copies) step(ctx context.Context, due bool, f func() error) error {
	if !due {
		return f()
	}
	if err := k.memory.Copy(ctx, k.meta); err != nil {
		return err
	}
	copied := k.beside.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
		return k.memory.Send(ctx, carryBy(c))
	})
	if err := f(); err != nil {
		return err
	}
	return copied.Wait()
}

// Bytes is how much memory the copies take on this replica now.
func (k *Copies) Bytes() int {
	if k == nil {
		return 0
	}
	return k.memory.Bytes()
}

// carryBy sends messages on a Comm.
func carryBy(c *gcl.Comm) checkpoint.Carry {
	return func(ctx context.Context, messages []checkpoint.Message) error {
		for _, m := range messages {
			var err error
			switch {
			case m.Recv == nil:
				err = gcl.Send(ctx, c, m.Send, m.To)
			case m.Send == nil:
				err = gcl.Recv(ctx, c, m.Recv, m.From)
			default:
				err = gcl.SendRecv(ctx, c, m.Send, m.To, m.Recv, m.From)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}
