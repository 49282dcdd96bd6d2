package gcl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/transport"
)

// TestLostTexts: whom a call has lost, and why, comes first, then the call and where it stood. Whatever has passed the
// error on, no replica is named twice. An error that is about something else keeps its form.
func TestLostTexts(t *testing.T) {
	lost := func(replica int, process string) error {
		return &transport.LostError{Replica: replica, Process: process,
			Err: errors.New("its process has ended without closing its communicator")}
	}
	two := lost(2, "pid 14657 on node1")
	round := func(peer int, err error) error {
		return &transport.RoundError{Replica: 0, Round: 3, Kind: transport.Recv, Peer: peer, Err: err}
	}
	aborted := func(by int, err error) *transport.AbortError { return &transport.AbortError{Replica: by, Cause: err} }
	late := func(err error, by int, cause error) error {
		return &transport.LateError{Err: err, Aborted: aborted(by, cause)}
	}
	const (
		who   = "gcl: replica 2 (pid 14657 on node1) is lost: its process has ended without closing its communicator"
		where = `; all-reduce #7 "grads" on replica 0`
	)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"found in the call": {round(2, two), who + where + ", round 3, receive from 2, had waited 1.2s"},
		"of nobody known": {round(-1, lost(2, "")), "gcl: replica 2 is lost: its process has ended without closing " +
			"its communicator" + where + ", round 3, had waited 1.2s"},
		"heard of":              {round(-1, aborted(1, two)), who + where + ", round 3, had waited 1.2s (found by replica 1)"},
		"found beside the call": {round(-1, aborted(0, two)), who + where + ", round 3, had waited 1.2s"},
		"found by two": {round(2, late(two, 1, lost(2, ""))),
			who + where + ", round 3, receive from 2, had waited 1.2s (found by replica 1)"},
		"the cause of a context": {
			round(2, late(newCallError(t.Context(), "communicator", 0, aborted(0, two)), 0, two)),
			who + where + ", round 3, receive from 2, had waited 1.2s"},
		"another's call failed": {
			round(-1, aborted(1, &transport.RoundError{Replica: 1, Round: 2, Peer: 2, Kind: transport.Recv, Err: two})),
			who + where + ", round 3, had waited 1.2s (found by replica 1)"},
		"another's function failed": {round(-1, aborted(1, &replicaError{replica: 1, err: two})),
			who + where + ", round 3, had waited 1.2s (found by replica 1)"},
		"its own context ended": {round(-1, late(context.Canceled, 1, two)), `gcl: all-reduce #7 "grads": replica 0 ` +
			"round 3: context canceled (aborted by replica 1: " + who[len("gcl: "):] + ")"},
		"two are lost": {round(2, late(two, 1, lost(3, ""))), `gcl: all-reduce #7 "grads": replica 0 round 3: ` +
			"receive from 2: " + who[len("gcl: "):] + " (aborted by replica 1: replica 3 is lost: its process has ended " +
			"without closing its communicator)"},
	} {
		e := newCallError(t.Context(), `all-reduce #7 "grads"`, 0, c.err)
		e.waited = "1.2s"
		if e.Error() != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, e, c.want)
		}
		if r := (&replicaError{replica: 0, err: e}); strings.HasPrefix(c.want, who) && r.Error() != c.want {
			t.Errorf("%s, of a function:\n%v, want\n%s", name, r, c.want)
		}
		peer := (*PeerError)(nil)
		if strings.HasPrefix(c.want, who) && (!errors.As(e, &peer) || peer.Replica != 2 || peer.Error() != who) {
			t.Errorf("%s, of the peer: %v, want %s", name, peer, who)
		}
		if b := transport.AppendError(nil, c.err); name != "the cause of a context" {
			if there, err := transport.ParseError(b); err != nil || fmt.Sprint(there) != fmt.Sprint(c.err) {
				t.Errorf("%s: %v in another process, %v", name, there, err)
			}
		}
	}
}
