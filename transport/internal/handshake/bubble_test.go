package handshake

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gogcl.dev/internal/fabric"
)

// TestShakes shakes hands over connections that are late, break and are reset: docs/design/seeds.md.
func TestShakes(t *testing.T) {
	jobs := 2000
	if testing.Short() {
		jobs = 200
	}
	tally := fabric.Tally{}
	fabric.Each(t, jobs, func(t *testing.T, seed uint64) {
		s := fabric.NewScene(seed, fabric.None, fabric.Late, fabric.Break, fabric.Reset, fabric.Cut)
		l, err := s.Processes[0].Listen(t.Context(), "tcp", fmt.Sprint(s.Address(0), ":7000"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		dialer, err := s.Processes[1].Dial(ctx, "tcp", l.Addr().String())
		if err != nil && s.Trouble == fabric.Cut { // before anything was said
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		acceptor, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		o := both(dialer, acceptor, honestly, honestlyAccept)
		took := time.Since(began)
		tally.Count(s.Trouble, o.dialed != nil || o.accepted != nil, took)
		switch {
		case took > Limit:
			t.Errorf("it has taken %v", took)
		case o.dialed == nil && o.accepted != nil:
			t.Errorf("the dialer counts as accepted, and the acceptor says %v", o.accepted)
		case o.accepted == nil && o.hello != hello:
			t.Errorf("accepted %+v", o.hello)
		}
		for _, err := range []error{o.dialed, o.accepted} {
			var closed *ClosedError
			var timeout *TimeoutError
			switch {
			case err == nil:
			case s.Trouble == fabric.None, !errors.As(err, &closed) && !errors.As(err, &timeout):
				t.Errorf("%T, %v", err, err)
			}
		}
		if t.Failed() || fabric.Alone() {
			t.Logf("dialed %v, accepted %v, after %v; %v", o.dialed, o.accepted, took, s)
		}
	})
	tally.Log(t)
}
