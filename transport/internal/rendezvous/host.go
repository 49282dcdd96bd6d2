package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// host is Meet of the replica that decides.
func host(ctx context.Context, c Config, s store) (Met, error) {
	blob, unable := c.blob(s.site().local)
	own := c.here(ctx, blob)
	h := &hosting{c: c, store: s, roll: newRoll(c, s, own), guests: map[*entry]*arrival{},
		told: map[int]bool{c.host: true}}
	own.Blob = nil // for those in the job only
	if err := h.put(sheet{Step: stepHere, Here: own}); err != nil {
		s.leave(ctx)
		return Met{}, err
	}
	if unable != nil {
		h.fail(unable)
	}
	h.run(ctx)
	limit := linger
	if ctx.Err() == nil {
		limit = max(limit, h.wait())
	} else {
		ctx = context.Background()
	}
	leaving, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s.leave(leaving)
	if h.failed != nil {
		return Met{}, h.failed
	}
	return Met{Blobs: h.roll.table().Blobs, Local: s.site().local}, nil
}

// hosting is a meeting at its host.
type hosting struct {
	c      Config
	store  store
	step   step // of the sheet that the host has put
	roll   *roll
	guests map[*entry]*arrival // who have come, those that end the job or are late too, as long as they are there
	told   map[int]bool        // the ranks of all who have come
	failed *Error              // what ends the job
	until  time.Time           // when the host no longer waits for those who have not heard of failed
}

func (h *hosting) put(s sheet) error {
	h.step = s.Step
	return h.store.put(s)
}

// fail ends the job, unless it has ended.
func (h *hosting) fail(why *Error) {
	if h.failed == nil {
		h.failed, h.until = why, time.Now().Add(h.c.patience)
		_ = h.put(failing(why)) // without it visitors find the host gone
	}
}

// run returns when all have the table, or with the error that ends the job in h.failed. In that case it goes on for a
// while, so that those who are about to come hear of it too.
func (h *hosting) run(ctx context.Context) {
	for {
		err := h.look()
		again := h.failed != nil
		switch {
		case h.step == stepBegin, h.failed != nil && h.absent() == 0:
			return
		case err != nil:
			h.fail(h.cannot(err))
			if again {
				return
			}
		case ctx.Err() != nil:
			h.fail(h.roll.ended(ctx))
			return
		case h.wait() <= 0:
			h.fail(h.roll.timeOver())
			return
		default:
			h.c.speaker.waits(h.waitsFor)
			h.store.wait(ctx, h.c.speaker.left(h.wait()))
		}
	}
}

// waitsFor says for whom the host waits.
func (h *hosting) waitsFor() string {
	absent := h.roll.absent()
	switch {
	case h.failed != nil:
		return fmt.Sprintf("replica %d waits a little for others, to tell them that the job cannot be: %v", h.c.host,
			h.failed)
	case len(absent) == 0:
		late := numbers(h.roll.unanswered(), "has", "have")
		return fmt.Sprintf("all %d replicas have come, and %s not answered", h.c.Size, late)
	}
	return fmt.Sprintf("%d of %d replicas have come, %s missing", h.c.Size-len(absent), h.c.Size,
		numbers(absent, "is", "are"))
}

// wait is how long the host waits for others.
func (h *hosting) wait() time.Duration {
	if h.failed != nil {
		return min(h.roll.wait(), time.Until(h.until))
	}
	return h.roll.wait()
}

// look reads what is new and answers it: by the table when all are here, and by begin when all have it. The error is
// that of the store.
func (h *hosting) look() error {
	fresh, err := h.store.list()
	if err != nil {
		return err
	}
	for _, e := range fresh {
		if failed := h.read(e); failed != nil {
			h.fail(failed)
		}
		if a := h.guests[e]; a != nil && !a.member && e.rank != nobody {
			if _, ended := h.store.get(e); ended != nil {
				delete(h.guests, e) // anybody may come and go as often as they like
			}
		}
	}
	switch {
	case h.failed != nil:
	case h.step == stepHere && h.roll.missing == 0:
		return h.put(sheet{Step: stepTable, Table: h.roll.table()})
	case h.step == stepTable && len(h.roll.unanswered()) == 0:
		return h.put(sheet{Step: stepBegin})
	}
	return nil
}

// cannot is the error when the host cannot use the store.
func (h *hosting) cannot(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: GaveUp, Replicas: []int{h.c.host}, Err: err, Reason: fmt.Sprintf(
		"replica %d has given up: it cannot use %s: %v", h.c.host, h.store.site().where, err)}
}

// absent is how many ranks have not been told that the job has failed, apart from those that made it fail.
func (h *hosting) absent() int {
	absent := 0
	for rank := range h.c.Size {
		if !h.told[rank] && !slices.Contains(h.failed.Replicas, rank) {
			absent++
		}
	}
	return absent
}

// read takes the news of an entry, and returns an error that ends the job.
func (h *hosting) read(e *entry) *Error {
	said, ended := h.store.get(e)
	a := h.guests[e]
	switch {
	case e.rank == nobody:
		h.roll.refuse(e.from, ended)
		return nil
	case a == nil:
		return h.arrive(e, said, ended)
	case h.failed != nil || !a.member: // has been told
		return nil
	case said.Step == stepFailed && said.Failed.Kind == Missing: // its time is over
		return h.roll.timeOver()
	case said.Step == stepFailed:
		return said.Failed
	case ended != nil:
		return h.roll.gone(a.rank, ended)
	case said.Step == stepGot && h.step == stepTable:
		a.got = true
	case said.Step != stepHere:
		return h.roll.gone(a.rank, errMalformed(fmt.Sprintf("sheet %d out of turn", said.Step)))
	}
	return nil
}

// arrive takes a process in. One that comes when the job has failed, or has begun without it, learns that from the
// host's sheet.
func (h *hosting) arrive(e *entry, said sheet, ended error) *Error {
	a := &arrival{here: said.Here, rank: e.rank, from: strings.TrimSpace(said.Here.Self + " " + e.from)}
	h.guests[e] = a
	if a.rank < h.c.Size {
		h.told[a.rank] = true
	}
	switch {
	case h.failed != nil || h.step != stepHere:
		return nil
	case said.Step == stepFailed && said.Failed.Kind == Missing:
		return nil // its time was over before it came
	case said.Step == stepFailed:
		return said.Failed
	case said.Step == stepTable, said.Step == stepBegin: // it is another host's, which has begun without this one
		h.failed, h.until = late(h.c.host, h.store.site().where), time.Now()
		return nil
	case said.Step != stepHere:
		h.roll.refuse(e.from, errMalformed(fmt.Sprintf("sheet %d of replica %d comes first", said.Step, e.rank)))
		return nil
	}
	if failed := h.roll.add(a); failed != nil || ended == nil {
		return failed
	}
	return h.roll.gone(a.rank, ended)
}
