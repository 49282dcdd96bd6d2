package rendezvous

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gogcl.dev/transport/internal/handshake"
)

// roll is who has come, as replica 0 knows it.
type roll struct {
	size      int
	at        string // where the others come to
	arrived   []*arrival
	missing   int
	limit     time.Time // when the wait ends; zero: never
	started   time.Time
	strangers strangers
	came      func(rank int) // Config.came
}

// arrival is a replica that has come.
type arrival struct {
	here
	rank int
	from string // where it is
}

// newRoll makes a roll with replica 0 on it.
func newRoll(ctx context.Context, c Config, at, self string, blob []byte) *roll {
	r := &roll{size: c.Size, at: at, arrived: make([]*arrival, c.Size), missing: c.Size - 1, started: time.Now(),
		came: c.came}
	r.arrived[0] = &arrival{rank: 0, from: self, here: here{size: c.Size, blob: blob, left: timeLeft(ctx)}}
	r.bring(timeLeft(ctx))
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
	if a.size != r.size {
		return &Error{Kind: WrongSize, Replicas: []int{0, a.rank}, Reason: fmt.Sprintf(
			"replica %d believes in %d replicas, replica 0 in %d: start all with the same size (replica %d is %s)",
			a.rank, a.size, r.size, a.rank, a.from)}
	}
	if a.rank >= r.size {
		return &Error{Kind: WrongSize, Replicas: []int{a.rank}, Reason: fmt.Sprintf(
			"replica %d has come to a job of %d replicas: ranks are from 0 to %d (it is %s)",
			a.rank, r.size, r.size-1, a.from)}
	}
	if first := r.arrived[a.rank]; first != nil {
		return duplicate(a.rank, first.from, a.from)
	}
	r.arrived[a.rank] = a
	r.missing--
	r.bring(a.left)
	if r.came != nil {
		r.came(a.rank)
	}
	return nil
}

// refuse notes a stranger.
func (r *roll) refuse(from string, err error) {
	r.strangers.add(from, err)
	if r.came != nil {
		r.came(-1)
	}
}

func duplicate(rank int, first, second string) *Error {
	return &Error{Kind: Duplicate, Replicas: []int{rank}, Reason: fmt.Sprintf(
		"two processes are replica %d: %s, and %s: give each process a rank of its own", rank, first, second)}
}

// blobs are those of all ranks, once all have come.
func (r *roll) blobs() [][]byte {
	blobs := make([][]byte, r.size)
	for rank, a := range r.arrived {
		blobs[rank] = a.blob
	}
	return blobs
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

// timeOver is the error at the end of the time: some have not come, or late have not said that they have the table.
func (r *roll) timeOver(late []int) *Error {
	after := time.Since(r.started).Round(100 * time.Millisecond)
	if absent := r.absent(); len(absent) > 0 {
		return &Error{Kind: Missing, Replicas: absent, Err: context.DeadlineExceeded, Reason: fmt.Sprintf(
			"%s %s not come to %s in %v: start them, or see why they ended or cannot reach it%s",
			replicas(absent, r.size), verb(absent), r.at, after, r.strangers.text())}
	}
	return &Error{Kind: Missing, Replicas: late, Err: context.DeadlineExceeded, Reason: fmt.Sprintf(
		"%s %s come to %s but not answered in %v: see why%s",
		replicas(late, r.size), verb(late), r.at, after, r.strangers.text())}
}

// ended is the error when replica 0's context has ended.
func (r *roll) ended(ctx context.Context, late []int) *Error {
	if ctx.Err() == context.DeadlineExceeded {
		return r.timeOver(late)
	}
	missing := ""
	if absent := r.absent(); len(absent) > 0 {
		missing = fmt.Sprintf("; %s had not come%s", replicas(absent, r.size), r.strangers.text())
	}
	return gaveUp(ctx, 0, missing)
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
