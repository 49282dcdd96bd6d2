package flight

import (
	"slices"

	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// Peers are the recorders of a lane at some replicas of this process.
func (s *Recorders) Peers(lane uint64, replicas []int) []*Recorder {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*Recorder
	for _, f := range s.all {
		if f.lane == lane && slices.Contains(replicas, f.Replica) {
			out = append(out, f)
		}
	}
	return out
}

// SettledSince reports whether a replica, after its call of a group with a number, has carried out one that needs all
// members, or has had the error of a call that was not refused. All members are needed by any collective without a root
// but what Local and Execute do, and but calls by counts over messages.
func (f *Recorder) SettledSince(group, seq uint64) (settled bool) {
	if f.records == nil {
		return false
	}
	f.newest(func(r *record) bool {
		later := r.label.Group == group && r.seq > seq
		switch {
		case r.state == failed:
			settled = !r.refused
		case later:
			meets := schedule.Collective(r.collective).Contract().Meets()
			byCounts := r.dtype&wire.ByCounts != 0 && r.path == route.Messages
			settled = r.state == done && meets && r.path != route.Local && !byCounts
		}
		return !settled && (later || r.label.Group != group)
	})
	return settled
}

// Made is the call that a replica is done with, of the group and the number of a call that another has made: equal, if
// it agrees as far as is known. Not ok says that it has made none so far, is in it, or has failed.
func (f *Recorder) Made(theirs transport.Call) (mine transport.Call, ok bool) {
	if c, ok := f.Unconfirmed(theirs.Group, theirs.Seq); ok {
		return c, true
	}
	switch r, known := f.call(theirs.Group, theirs.Seq); {
	case !known:
		return theirs, true
	case r.label == nil || r.state != done:
		return mine, false
	case r.collective != theirs.Collective:
		return r.fingerprint(), true
	}
	return theirs, true
}

// Past reports whether a replica is done with a call of a group, or will not make it any more. One that was refused it
// for its arguments may still make the next, which shows who is in another call, or leave.
func (f *Recorder) Past(group, seq uint64) bool {
	if f.IsClosed() {
		return true
	}
	r, known := f.call(group, seq)
	return !known || r.label != nil && r.state != running && !r.refused
}

// Came reports whether a replica has made a call of a group, as far as that is known, and was not refused it for its
// arguments.
func (f *Recorder) Came(group, seq uint64) bool {
	r, known := f.call(group, seq)
	return !known || r.label != nil && !r.refused
}

// call is a replica's call of a group with a number, without a label if it has not come to that. It is unknown when
// there is no record of it any more, for all the calls since.
func (f *Recorder) call(group, seq uint64) (found record, known bool) {
	seen, earlier := 0, false
	f.newest(func(r *record) bool {
		seen++
		switch {
		case r.label.Group != group: // nor is a message asked for
		case r.seq == seq:
			found = *r
		case r.seq < seq:
			earlier = true
		}
		return found.label == nil && !earlier
	})
	return found, found.label != nil || earlier || seen < flightLength
}
