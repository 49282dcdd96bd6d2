// Package calls is what transports remember of their calls, to tell replicas that disagree from those that are late.
package calls

import (
	"errors"

	"gogcl.dev/transport"
)

// History is the calls that a replica has made on a lane, those that have a number in their group: the last ones one by
// one, and of each group the last call before those. A copy has the same calls, until one is added.
type History struct {
	calls []entry // by number, in turn
	count uint64
	lost  bool             // a call has been overwritten
	older map[uint64]entry // by group; nil until a call is overwritten by one of another group
}

// entry is a call of a History.
type entry struct {
	transport.Call
	dropped bool // it was begun as another call, which ended without a trace
	made    bool // it has been made since, or was never dropped
}

// NewHistory makes a History that remembers length calls one by one, a power of two.
func NewHistory(length int) History { return History{calls: make([]entry, length)} }

// at is the k-th call before the next one.
func (h *History) at(k uint64) *entry {
	return &h.calls[(h.count-k)&uint64(len(h.calls)-1)]
}

// Add adds a call, unless it is another round of the last one, which is noted, or has no number: then it is no
// collective of a group.
func (h *History) Add(call *transport.Call) {
	if call.Seq == 0 {
		return
	}
	if h.count > 0 {
		if last := h.at(1); last.Seq == call.Seq && last.Group == call.Group {
			if last.made {
				last.Round = call.Round
			} else {
				last.Call, last.made = *call, true
			}
			return
		}
	}
	oldest := h.at(0)
	if oldest.made && oldest.Group != call.Group {
		if h.older == nil {
			h.older = map[uint64]entry{}
		}
		h.older[oldest.Group] = *oldest
	}
	h.lost = h.lost || oldest.Seq != 0
	*oldest = entry{Call: *call, made: true}
	h.count++
}

// Drop says that a call, if it is the last one, has ended without a trace, and may go on under its number as another
// one. Until then it counts as not made.
func (h *History) Drop(call *transport.Call) {
	if h.count == 0 {
		return
	}
	if last := h.at(1); last.Seq == call.Seq && last.Group == call.Group {
		last.dropped, last.made = true, false
	}
}

// Dropped reports whether the call that has the number of c in its group was begun as another one, and dropped.
func (h *History) Dropped(c *transport.Call) bool {
	for k := range h.kept() {
		if mine := h.at(k + 1); mine.Group == c.Group && mine.Seq == c.Seq {
			return mine.dropped
		}
	}
	before := h.older[c.Group]
	return before.Seq == c.Seq && before.dropped
}

// kept is how many calls are remembered one by one.
func (h *History) kept() uint64 { return min(h.count, uint64(len(h.calls))) }

// Last returns the last n calls, of those that are remembered one by one, the newest first.
func (h *History) Last(n int) (out []transport.Call) {
	for k := range min(uint64(n), h.kept()) {
		if e := h.at(k + 1); e.made {
			out = append(out, e.Call)
		}
	}
	return out
}

// Standing says how a call of another replica stands to those in a history.
type Standing uint8

// The standings.
const (
	Unknown  Standing = iota // its group has no calls, or it has no number
	Ahead                    // it is still to come
	Current                  // it is the last that was made in its group
	Same                     // it has been made, and others after it
	Other                    // another call has been made in its place
	Skipped                  // it has not been made, and later ones of its group have
	GoneLong                 // so long ago that there is no saying
)

// Find looks for the call that has the number of c in its group, and returns it where there is one. A call without a
// number is Unknown: it is not compared with those of its group.
func (h *History) Find(c *transport.Call) (transport.Call, Standing) {
	if c.Seq == 0 {
		return transport.Call{}, Unknown
	}
	var last transport.Call
	for k := range h.kept() {
		mine := h.at(k + 1)
		if mine.Group != c.Group || !mine.made {
			continue
		}
		switch {
		case mine.Seq == c.Seq && !mine.Same(*c):
			return mine.Call, Other
		case mine.Seq == c.Seq && last.Seq == 0:
			return mine.Call, Current
		case mine.Seq == c.Seq:
			return mine.Call, Same
		}
		if mine.Seq < c.Seq {
			if last.Seq != 0 {
				return last, Skipped
			}
			return mine.Call, Ahead
		}
		last = mine.Call
	}
	if before, ok := h.older[c.Group]; ok {
		switch {
		case before.Seq < c.Seq && last.Seq == 0:
			return before.Call, Ahead
		case before.Seq == c.Seq && !before.Same(*c):
			return before.Call, Other
		case before.Seq == c.Seq && last.Seq == 0:
			return before.Call, Current
		case before.Seq == c.Seq:
			return before.Call, Same
		}
		return before.Call, GoneLong
	}
	switch {
	case last.Seq == 0:
	case !h.lost:
		return last, Skipped
	default:
		return last, GoneLong
	}
	return transport.Call{}, Unknown
}

// Unpaired is the error of a transfer with a peer that has gone through the same round without it: the one sends
// bytes that the other does not expect. It is nil for a transfer of nothing, which is as good as none.
func Unpaired(rank int, t *transport.Transfer, call transport.Call) *transport.MismatchError {
	switch {
	case len(t.Buf) == 0:
		return nil
	case t.Kind == transport.Send:
		return &transport.MismatchError{Replica: t.Peer, Peer: rank, Mine: call, Theirs: call, TheirsBytes: len(t.Buf)}
	}
	return &transport.MismatchError{Replica: rank, Peer: t.Peer, Mine: call, Theirs: call, MineBytes: len(t.Buf)}
}

// Disagree reports whether an error says that replicas disagree.
func Disagree(err error) bool {
	var mismatch *transport.MismatchError
	var deadlock *transport.DeadlockError
	var unmatched *transport.UnmatchedError
	return errors.As(err, &mismatch) || errors.As(err, &deadlock) || errors.As(err, &unmatched)
}
