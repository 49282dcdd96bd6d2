package flight

import (
	"slices"

	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/methods/schedule"
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
// members, which is any collective without a root but what Local and Execute do, or has had the error of a call that
// was not refused.
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
			settled = r.state == done && schedule.Collective(r.collective).Contract().Meets() && r.path != route.Local
		}
		return !settled && (later || r.label.Group != group)
	})
	return settled
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

// Made reports whether a replica has made a call of a group, as far as that is known, and was not refused it for its
// arguments.
func (f *Recorder) Made(group, seq uint64) bool {
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
		case r.label.Group != group:
		case r.seq == seq:
			found = *r
		case r.seq < seq:
			earlier = true
		}
		return found.label == nil && !earlier
	})
	return found, found.label != nil || earlier || seen < flightLength
}
