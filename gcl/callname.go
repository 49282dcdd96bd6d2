package gcl

import (
	"gogcl.dev/transport"

	"gogcl.dev/gcl/internal/wire"
)

// names holds, for an error's text, what the calls in it were named by Comm.Named on their replicas. The transport
// knows no names, and replicas need not use the same; a process's flight recorders know those of its own.
type names map[callOf]string

// callOf is a call of a replica, as far as a transport.Call tells it from others of the group.
type callOf struct {
	replica    int
	number     uint64
	collective uint8
}

// of is the name of a replica's call, or "".
func (n names) of(replica int, c transport.Call) string {
	number, _ := wire.PhaseOf(c.Seq)
	return n[callOf{replica, number, c.Collective}]
}

// namesIn looks up the calls in an error.
func (s *flights) namesIn(err error) names {
	var out names
	note := func(replica int, c transport.Call) {
		number, phase := wire.PhaseOf(c.Seq)
		for _, f := range s.list() {
			if f.replica != replica {
				continue
			}
			f.newest(func(r *record) bool {
				if r.seq != number || r.collective != c.Collective || phase == 0 && r.label.group != c.Group {
					return true
				}
				if r.label.name != "" {
					if out == nil {
						out = names{}
					}
					out[callOf{replica, number, c.Collective}] = r.label.name
				}
				return false
			})
		}
	}
	var walk func(err error)
	walk = func(err error) {
		switch e := err.(type) {
		case *callError, *replicaError: // have their own
			return
		case *transport.MismatchError:
			note(e.Replica, e.Mine)
			note(e.Peer, e.Theirs)
		case *transport.DeadlockError:
			for i, r := range e.Replicas {
				note(r, e.Calls[i])
			}
		case *transport.UnmatchedError:
			note(e.Peer, e.Theirs)
		}
		for _, inside := range insides(err) {
			walk(inside)
		}
	}
	if s != nil {
		walk(err)
	}
	return out
}
