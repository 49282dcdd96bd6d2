package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// visit is Meet of any replica but the host.
func visit(ctx context.Context, c Config, s store) (Met, error) {
	defer s.leave(ctx)
	v := &visiting{c: c, store: s}
	blob, own := c.blob(s.site().local)
	if own == nil && ctx.Err() != nil { // nobody has heard of it: it does not speak for all
		return Met{}, v.outOfTime(ctx)
	}
	decided, err := false, error(nil)
	if own == nil {
		if err := s.put(sheet{Step: stepHere, Here: c.here(ctx, blob)}); err != nil {
			return Met{}, err
		}
		if decided, err = v.follow(ctx); !decided {
			own = v.outOfTime(ctx)
		}
	}
	// A replica that does not go on says so, and goes on if the job has begun with it. At the end of its time it hears
	// from the host who is missing, as all do.
	if own != nil {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.linger)
		defer cancel()
		_ = s.put(failing(own))
		if decided, err = v.follow(ending); !decided || err != nil && own.Kind == GaveUp {
			err = own
		}
	}
	if err != nil {
		return Met{}, err
	}
	return Met{Blobs: v.table.Blobs, Local: s.site().local}, nil
}

// visiting is what a visitor has heard.
type visiting struct {
	c         Config
	store     store
	host      *entry // that table is from
	table     table  // once there is one
	strangers strangers
}

// follow answers the host. It returns when the host has decided that the job begins, or why it cannot be, or when ctx
// ends before.
func (v *visiting) follow(ctx context.Context) (decided bool, err error) {
	for {
		fresh, err := v.store.list()
		switch {
		case errors.Is(err, errRemoved):
			return true, late(v.c.Rank, v.store.site().where)
		case err != nil:
			return true, fmt.Errorf("replica %d cannot read %s: %w", v.c.Rank, v.store.site().where, err)
		}
		for _, e := range fresh {
			if decided, err := v.read(ctx, e); decided || err != nil {
				return true, err
			}
		}
		v.c.speaker.waits(func() string {
			return fmt.Sprintf("replica %d waits at %s for the others, of which replica %d knows who is missing", v.c.Rank,
				v.store.site().where, v.c.host)
		})
		if !v.store.wait(ctx, v.c.speaker.left(time.Hour)) {
			return false, nil
		}
	}
}

// read takes the news of an entry. The error ends the meeting.
func (v *visiting) read(ctx context.Context, e *entry) (begun bool, err error) {
	said, ended := v.store.get(e)
	switch isIn := said.Table.has(v.c.Rank, v.c.nonce) && len(said.Table.Blobs) == v.c.Size; {
	case e.rank == nobody:
		v.strangers.add(e.from, ended)
		if v.c.came != nil {
			v.c.came(nobody)
		}
	case v.host != nil && e != v.host: // another host, of a job that cannot be
	case said.Step == stepFailed:
		return false, said.Failed
	case said.Step == stepBegin && v.host != nil:
		return true, nil
	case said.Step == stepBegin, said.Step == stepTable && !isIn:
		return false, late(v.c.Rank, v.store.site().where)
	case ended != nil && v.host == nil && v.store.again(ctx): // the host may not have heard of this replica
	case ended != nil:
		return false, hostGone(v.c.host, v.store.site().where, ended)
	case said.Step == stepTable && v.host == nil:
		v.host, v.table = e, said.Table
		return false, v.store.put(sheet{Step: stepGot})
	}
	return false, nil
}

// late is the error of a process without which the job has begun.
func late(rank int, at string) *Error {
	return &Error{Kind: Late, Replicas: []int{rank}, Reason: fmt.Sprintf(
		"replica %d has come late to %s: all ranks had come, the job has begun without you: "+
			"is this process started twice, or of another job with the same name?", rank, at)}
}

// hostGone is the error when the host ends in the middle.
func hostGone(host int, at string, why error) *Error {
	return &Error{Kind: Gone, Replicas: []int{host}, Err: why, Reason: fmt.Sprintf(
		"replica %d at %s is gone in the middle of the rendezvous (%v): see why its process ended", host, at, why)}
}

// outOfTime is the error of a visitor whose own context has ended.
func (v *visiting) outOfTime(ctx context.Context) *Error {
	more := v.strangers.text()
	if ctx.Err() == context.DeadlineExceeded {
		more = v.store.unmet() + more
	}
	return outOfTime(ctx, v.c, v.store.site().where, more)
}

// outOfTime is that of any process but the host, with more to say.
func outOfTime(ctx context.Context, c Config, at, more string) *Error {
	e := gaveUp(ctx, c.Rank, more)
	if ctx.Err() == context.DeadlineExceeded {
		e.Kind, e.Replicas, e.Err = Missing, []int{c.host}, context.DeadlineExceeded
		e.Reason = fmt.Sprintf("replica %d has not met replica %d of %d at %s in time%s",
			c.Rank, c.host, c.Size, at, more)
	}
	return e
}
