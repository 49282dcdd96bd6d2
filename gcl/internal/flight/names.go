package flight

import (
	"slices"

	"gogcl.dev/transport"

	"gogcl.dev/gcl/internal/wire"
)

// Names holds, for an error's text, what a transport.Call has no room for: what the calls in it were named by
// Comm.Named on their replicas, which need not use the same names, and who is in groups whose numbers do not tell. A
// process's flight recorders know the names of its own replicas.
type Names struct {
	calls  map[callOf]string
	groups map[groupOf]string // of lists and of phases only
}

// groupOf is a group as a replica sees it.
type groupOf struct {
	replica int
	group   uint64
}

// callOf is a call of a replica, as far as a transport.Call tells it from others of the group.
type callOf struct {
	replica    int
	group      uint64
	number     uint64
	collective uint8
}

// Of is the name of a replica's call, or "".
func (n Names) Of(replica int, c transport.Call) string {
	number, _ := wire.PhaseOf(c.Seq)
	return n.calls[callOf{replica, c.Group, number, wire.Kind(c.Collective)}]
}

// GroupOf is the name of the group of a replica's call.
func (n Names) GroupOf(replica int, c transport.Call) string {
	if name := n.groups[groupOf{replica, c.Group}]; name != "" {
		return name
	}
	return wire.GroupName(c.Group)
}

// NamesIn looks up the calls in an error, but not inside of errors that hold names already.
func (s *Recorders) NamesIn(err error, named func(error) bool) Names {
	var out Names
	note := func(replica int, c transport.Call) {
		number, phase := wire.PhaseOf(c.Seq)
		if name, ok := s.phases.Load(c.Group); ok && phase > 0 {
			out.nameGroup(replica, c.Group, name.(string))
		}
		for _, f := range s.list() {
			if f.Replica != replica {
				continue
			}
			f.newest(func(r *record) bool {
				seq, in := r.in(c.Group)
				if phase > 0 {
					seq = r.seq
				}
				if seq != number || wire.Kind(r.collective) != wire.Kind(c.Collective) || phase == 0 && !in {
					return true
				}
				if r.label.Name != "" {
					if out.calls == nil {
						out.calls = map[callOf]string{}
					}
					out.calls[callOf{replica, c.Group, number, wire.Kind(c.Collective)}] = r.label.Name
				}
				if r.label.Lists != "" && r.label.Group == c.Group {
					out.nameGroup(replica, c.Group, r.label.GroupName())
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

// nameGroup notes the name of a group as a replica sees it.
func (n *Names) nameGroup(replica int, group uint64, name string) {
	if n.groups == nil {
		n.groups = map[groupOf]string{}
	}
	n.groups[groupOf{replica, group}] = name
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
