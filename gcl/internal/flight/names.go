package flight

import (
	"slices"

	"gogcl.dev/transport"

	"gogcl.dev/gcl/internal/wire"
)

// Names holds, for an error's text, what the calls in it were named by Comm.Named on their replicas. The transport
// knows no names, and replicas need not use the same; a process's flight recorders know those of its own.
type Names map[callOf]string

// callOf is a call of a replica, as far as a transport.Call tells it from others of the group.
type callOf struct {
	replica    int
	number     uint64
	collective uint8
}

// Of is the name of a replica's call, or "".
func (n Names) Of(replica int, c transport.Call) string {
	number, _ := wire.PhaseOf(c.Seq)
	return n[callOf{replica, number, c.Collective}]
}

// NamesIn looks up the calls in an error, but not inside of errors that hold names already.
func (s *Recorders) NamesIn(err error, named func(error) bool) Names {
	var out Names
	note := func(replica int, c transport.Call) {
		number, phase := wire.PhaseOf(c.Seq)
		for _, f := range s.list() {
			if f.Replica != replica {
				continue
			}
			f.newest(func(r *record) bool {
				if r.seq != number || r.collective != c.Collective || phase == 0 && r.label.Group != c.Group {
					return true
				}
				if r.label.Name != "" {
					if out == nil {
						out = Names{}
					}
					out[callOf{replica, number, c.Collective}] = r.label.Name
				}
				return false
			})
		}
	}
	var walk func(err error)
	walk = func(err error) {
		if named(err) {
			return
		}
		switch e := err.(type) {
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
		for _, inside := range Wrapped(err) {
			walk(inside)
		}
	}
	if s != nil {
		walk(err)
	}
	return out
}

// Wrapped are the errors that err wraps.
func Wrapped(err error) []error {
	var parts []error
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		parts = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		parts = slices.Clone(e.Unwrap())
	}
	return slices.DeleteFunc(parts, func(e error) bool { return e == nil })
}
