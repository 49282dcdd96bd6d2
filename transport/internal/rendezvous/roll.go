package rendezvous

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gogcl.dev/transport/internal/handshake"
)

// roll is who has come, as the host knows it.
type roll struct {
	size, host int
	store      store // where the others come to
	arrived    []*arrival
	missing    int
	limit      time.Time // when the wait ends; zero: never
	started    time.Time
	strangers  strangers
	came       func(rank int) // Config.came
	speaker    *speaker
}

// arrival is a process that has come.
type arrival struct {
	here
	rank   int
	from   string // where it is
	member bool   // it is on the roll, and not the cause of an error, told of one, or late
	got    bool   // it has the table
}

// newRoll makes a roll with the host on it.
func newRoll(c Config, s store, own here) *roll {
	r := &roll{size: c.Size, host: c.host, store: s, arrived: make([]*arrival, c.Size), missing: c.Size - 1,
		started: time.Now(), came: c.came, speaker: c.speaker}
	r.arrived[c.host] = &arrival{rank: c.host, from: own.Self, here: own, member: true, got: true}
	r.bring(own.Left)
	return r
}

// bring ends the wait early enough for a replica with so much time left.
func (r *roll) bring(left time.Duration) {
	if left <= 0 {
		return
	}
	if limit := time.Now().Add(early(left)); r.limit.IsZero() || limit.Before(r.limit) {
		r.limit = limit
	}
}

// wait is the time until the limit; without one it is long.
func (r *roll) wait() time.Duration {
	if r.limit.IsZero() {
		return 24 * time.Hour
	}
	return time.Until(r.limit)
}

// add takes a replica in, or says why the job cannot be.
func (r *roll) add(a *arrival) *Error {
	if a.Size != r.size {
		return &Error{Kind: WrongSize, Replicas: []int{r.host, a.rank}, Reason: fmt.Sprintf(
			"replica %d believes in %d replicas, replica %d in %d: start all with the same size (replica %[1]d is %[5]s)",
			a.rank, a.Size, r.host, r.size, a.from)}
	}
	if a.rank >= r.size {
		return &Error{Kind: WrongSize, Replicas: []int{a.rank}, Reason: fmt.Sprintf(
			"replica %d has come to a job of %d replicas: ranks are from 0 to %d (it is %s)",
			a.rank, r.size, r.size-1, a.from)}
	}
	switch first := r.arrived[a.rank]; {
	case first == nil:
		r.missing--
	case first.Nonce == a.Nonce: // it has come again, and nobody has noticed yet that its first connection is lost
		first.member = false
	default:
		return duplicate(a.rank, first.from, a.from)
	}
	r.arrived[a.rank], a.member = a, true
	r.bring(a.Left)
	if r.came != nil {
		r.came(a.rank)
	}
	return nil
}

// refuse notes a stranger.
func (r *roll) refuse(from string, err error) {
	r.strangers.add(from, err)
	r.speaker.once(handshake.Bounded(fmt.Sprintf("somebody %s was refused: %v", from, err), maxReason))
	if r.came != nil {
		r.came(-1)
	}
}

func duplicate(rank int, first, second string) *Error {
	return &Error{Kind: Duplicate, Replicas: []int{rank}, Reason: fmt.Sprintf(
		"two processes are replica %d: %s, and %s: give each process a rank of its own", rank, first, second)}
}

// table is that of all ranks, once all have come.
func (r *roll) table() (t table) {
	for _, a := range r.arrived {
		t.Roster, t.Blobs = append(t.Roster, a.Nonce), append(t.Blobs, a.Blob)
	}
	return t
}

// absent lists the ranks that have not come.
func (r *roll) absent() []int {
	var ranks []int
	for rank, a := range r.arrived {
		if a == nil {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// unanswered lists the ranks that have not said that they have the table.
func (r *roll) unanswered() []int {
	var ranks []int
	for rank, a := range r.arrived {
		if a != nil && !a.got {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// timeOver is the error at the end of the time: some have not come, or have not said that they have the table.
func (r *roll) timeOver() *Error {
	after, at := time.Since(r.started).Round(100*time.Millisecond), r.store.site()
	if absent := r.absent(); len(absent) > 0 {
		return &Error{Kind: Missing, Replicas: absent, Err: context.DeadlineExceeded, Reason: fmt.Sprintf(
			"%s %s not come to %s in %v: start them, or see why they ended or cannot reach it (it is open to %v)%s%s",
			replicas(absent, r.size), verb(absent), at.where, after, at.guard, r.strangers.text(), r.store.unmet())}
	}
	late := r.unanswered()
	return &Error{Kind: Missing, Replicas: late, Err: context.DeadlineExceeded, Reason: fmt.Sprintf(
		"%s %s come to %s but not answered in %v: see why%s",
		replicas(late, r.size), verb(late), at.where, after, r.strangers.text())}
}

// ended is the error when the host's context has ended.
func (r *roll) ended(ctx context.Context) *Error {
	if ctx.Err() == context.DeadlineExceeded {
		return r.timeOver()
	}
	missing := ""
	if absent := r.absent(); len(absent) > 0 {
		missing = fmt.Sprintf("; %s had not come%s", replicas(absent, r.size), r.strangers.text())
	}
	return gaveUp(ctx, r.host, missing)
}

// gaveUp is the error of a replica whose context was cancelled.
func gaveUp(ctx context.Context, rank int, more string) *Error {
	cause := context.Cause(ctx)
	return &Error{Kind: GaveUp, Replicas: []int{rank}, Err: cause,
		Reason: fmt.Sprintf("replica %d has given up: %v%s", rank, cause, more)}
}

// gone is the error for a replica that has come and does not go on.
func (r *roll) gone(rank int, why error) *Error {
	return &Error{Kind: Gone, Replicas: []int{rank}, Err: why, Reason: fmt.Sprintf(
		"replica %d had come and is gone (%v): see why its process ended (it was %s)", rank, why, r.arrived[rank].from)}
}

// strangers are those who were refused. It keeps the last few.
type strangers struct {
	count int
	last  []string
}

// keptStrangers is how many strangers an error names.
const keptStrangers = 4

func (s *strangers) add(from string, err error) {
	s.count++
	text := handshake.Bounded(fmt.Sprintf("%s: %v", from, err), 400)
	if slices.Contains(s.last, text) {
		return
	}
	s.last = append(s.last, text)
	if len(s.last) > keptStrangers {
		s.last = s.last[1:]
	}
}

// text goes at the end of an error.
func (s *strangers) text() string {
	if s.count == 0 {
		return ""
	}
	return fmt.Sprintf("; %d were refused: %s", s.count, strings.Join(s.last, "; "))
}
