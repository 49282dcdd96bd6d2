package cheapest

import (
	"errors"
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
	for _, m := range methods.All() {
		s := t.spec(m, c)
		if m.Own() && !m.InGallery() || s.Makes() != nil || sameAsDirect(s) {
			continue
		}
		steps := len(t.members) <= mostExpanded
		if name := m.String(); name == "swing" || name == "swing_2d" {
			if len(t.members) > mostSwingPriced {
				continue
			}
			steps = true
		}
		best.Among++
		for _, s.Pieces = range Cuts(s) {
			e, err := t.whole(s, bytes, steps, best)
			if errors.Is(err, errAbove) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if e.Time < best.Time {
				best.Method, best.Pieces, best.Estimate = m, s.Pieces, e
			}
		}
	}
	return best, nil
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
	s := t.spec(chosen.Method, c)
	s.Pieces = chosen.Pieces
	e, err := t.whole(s, bytes, len(t.members) <= mostExpanded, &Choice{Estimate: cost.Estimate{Time: math.MaxInt64}})
	return e.Time, err
}
