package cheapest

import (
	"errors"
	"iter"
	"math"
	"time"

	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
)

// mostExpanded is the largest group whose methods Exhaustive prices by their schedules. Those of more ranks have
// millions of steps.
const mostExpanded = 64

// mostSwingPriced is the largest group for which Exhaustive makes the schedules of swing, which takes seconds.
const mostSwingPriced = 512

// Exhaustive is the best method for a collective of so many bytes, of all methods, as Choose would have it if time did
// not matter: for the bytes and not their class. It prices schedules, step by step. Among more than 64 ranks it prices
// descriptions of messages, in which a test has found the same prices up to there, and leaves a method that is sure to
// take longer than another; swing it prices by its schedule up to 512 ranks, and not above. Among is how many methods
// do the call.
func (t *Table) Exhaustive(c schedule.Collective, bytes int64) (*Choice, error) {
	best := &Choice{Bytes: bytes}
	best.Time = math.MaxInt64
	var last methods.Method
	for s := range t.Requests(c) {
		if s.Method != last {
			last = s.Method
			best.Among++
		}
		e, err := t.whole(s, bytes, BySteps(s), best)
		if errors.Is(err, errAbove) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if e.Time < best.Time {
			best.Method, best.Pieces, best.Estimate = s.Method, s.Pieces, e
		}
	}
	return best, nil
}

// Requests yields what all methods are asked for that do a collective, a pipeline once for each number of its pieces:
// all but swing among more than 512 ranks.
func (t *Table) Requests(c schedule.Collective) iter.Seq[methods.Spec] {
	return func(yield func(methods.Spec) bool) {
		for _, m := range methods.All() {
			s := t.spec(m, c)
			left := m.Own() && !m.InGallery() || sameAsDirect(s) || swings(s) && s.Size > mostSwingPriced
			if left || s.Makes() != nil {
				continue
			}
			for _, s.Pieces = range Cuts(s) {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// BySteps reports whether a request has few steps, so that its schedule is looked at and not what describes its
// messages; of swing only the schedule shows them.
func BySteps(s methods.Spec) bool { return s.Size <= mostExpanded || swings(s) }

// Request is what the chosen method is asked for.
func (t *Table) Request(chosen *Choice, c schedule.Collective) methods.Spec {
	s := t.spec(chosen.Method, c)
	s.Pieces = chosen.Pieces
	return s
}

// errAbove is of a price above the best one.
var errAbove = errors.New("cheapest: a price above the best")

// whole prices a request by its steps or by its messages.
func (t *Table) whole(s methods.Spec, bytes int64, steps bool, best *Choice) (cost.Estimate, error) {
	if steps {
		made, err := methods.Build(s)
		if err != nil {
			return cost.Estimate{}, err
		}
		return t.prices.model.Price(made, t.members, bytes)
	}
	traffic, err := s.Traffic()
	if err != nil {
		return cost.Estimate{}, err
	}
	e, within, err := t.prices.model.PriceWithin(traffic, t.members, bytes, best.Time)
	if err == nil && !within {
		err = errAbove
	}
	return e, err
}

// Exactly is what a choice takes for so many bytes, and not for its class.
func (t *Table) Exactly(chosen *Choice, c schedule.Collective, bytes int64) (time.Duration, error) {
	s := t.Request(chosen, c)
	e, err := t.whole(s, bytes, BySteps(s), &Choice{Estimate: cost.Estimate{Time: math.MaxInt64}})
	return e.Time, err
}
