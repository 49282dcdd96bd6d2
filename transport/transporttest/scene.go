package transporttest

import (
	"context"
	"fmt"
	"testing"

	"gogcl.dev/transport"
)

// The tests of what goes wrong are scenes: the replicas are in calls of some acts, something happens, and each gets an
// error. What happens is a function for all acts (cancel.go, differ.go), an act is a value (acts.go, and those of
// meetings and engines beside their tests), and so is what each replica must get (outcome.go).

// act is a kind of call in which all replicas of a group are together, one call after the other.
type act struct {
	name string
	// begin returns a replica's part.
	begin func(r *role) part
	// number is the fingerprint of the i-th call.
	number func(i int) transport.Call
	// points are the places within a call at which role.at is called: 1 to points.
	points int
	// warm has a call before those that fail, in which all are.
	warm bool
	// tries is how often it is broken off.
	tries int
}

// role is whose part it is, and in what.
type role struct {
	suite    *suite
	t        testing.TB
	endpoint transport.Endpoint
	// at is told that the part is at a point of a call. Nil: nobody is.
	at func(point int)
	// idle parts leave their buffers alone, but for what the transport does with them.
	idle bool
}

// reach says that the part is at a point.
func (r *role) reach(point int) {
	if r.at != nil {
		r.at(point)
	}
}

// part is what a replica does in an act.
type part struct {
	do   func(ctx context.Context, c transport.Call) error
	bufs [][]byte // all memory that the transport is given
	out  [][]byte // that of it which calls write
}

// begin returns a replica's part of the act.
func (s *suite) begin(t testing.TB, a act, e transport.Endpoint) part {
	return a.begin(&role{suite: s, t: t, endpoint: e})
}

// untilFails makes the calls of an act from the i-th on, until one fails, and spoils the buffers right after. Here and
// elsewhere in the suite a replica that waits for an error has no last call: one that counted its calls would leave
// before an error that is late. Where no error comes, await fails the test, and the Close after the test ends the
// calls.
func (p part) untilFails(ctx context.Context, a act, i int) error {
	defer scribble(p.bufs...)
	for ; ; i++ {
		if err := p.do(ctx, a.number(i)); err != nil {
			return err
		}
	}
}

// warmUp makes the call before those that fail, where the act has one, and waits until all have made it. It returns
// the number of the next.
func (s *suite) warmUp(a act, p part, e transport.Endpoint) (i int, err error) {
	if !a.warm {
		return 0, nil
	}
	if err := p.do(background, a.number(0)); err != nil {
		return 0, fmt.Errorf("the call before: %w", err)
	}
	_, err = s.board.gather("before", e.Rank(), e.Size(), "")
	return 1, err
}

// play has each endpoint do its part on a goroutine of its own, and the test what is beside it. Then it checks how each
// has ended.
func play(t testing.TB, eps []transport.Endpoint, part func(e transport.Endpoint) error, want outcome,
	beside ...func()) {
	t.Helper()
	for rank, err := range byRank(eps, each(t, eps, part, beside...)) {
		want(t, rank, err)
	}
}

// over is a group of tests for each of some acts.
func over(run func(*suite, *testing.T, act), acts ...act) func(*suite, *testing.T) {
	return func(s *suite, t *testing.T) {
		cases(t, "act", acts, func(t *testing.T, a act) { run(s, t, a) })
	}
}

func (a act) String() string { return a.name }

// cases calls test for each value, which is a case by its name.
func cases[T any](t *testing.T, name string, values []T, test func(t *testing.T, v T)) {
	for _, v := range values {
		t.Run(fmt.Sprintf("%s=%v", name, v), func(t *testing.T) { test(t, v) })
	}
}
