package main

import (
	"fmt"
	"slices"
)

// judgeSurvivors says what is wrong with the end of a job, to which those that came have come, or are nil. One that was
// taken in and has given up by then, which it may on a busy machine, comes again, as another one. So of those that come
// only their number is known before, and that all name the same.
func judgeSurvivors(all, came []*process, e ends) string {
	var left []int
	began := len(all)
	for r := range all {
		if !slices.Contains(e.victims, r) {
			left = append(left, r)
		}
	}
	for _, p := range came {
		if p != nil {
			left, all = append(left, len(all)), append(slices.Clone(all), p)
		}
	}
	var first *survived
	for r, p := range all {
		victim := slices.Contains(e.victims, r)
		switch {
		case victim && !e.stop:
			if p.report != nil && p.report.Error != "" { // it has been killed after its end, or not at all
				return fmt.Sprintf("replica %d, which was to be killed: %s", r, p.report.Error)
			}
			continue
		case p.report == nil || p.report.Survived == nil:
			return fmt.Sprintf("replica %d: %s, no report\n%s", r, p.state, p.stderr.text)
		case victim:
			if !p.report.Survived.LeftBehind {
				return fmt.Sprintf("replica %d, which was stopped: %q, want that it is left behind", r, p.report.Error)
			}
			continue
		case p.report.Error != "":
			return fmt.Sprintf("replica %d: %s", r, p.report.Error)
		}
		got := p.report.Survived
		later := slices.IndexFunc(got.Members, func(m int) bool { return m >= began })
		if later < 0 {
			later = len(got.Members)
		}
		switch {
		case len(got.Members) != len(left) || !slices.Equal(got.Members[:later], left[:later]) ||
			later < len(left) && left[later] < began:
			return fmt.Sprintf("replica %d has gone on with %v, want %v", r, got.Members, left)
		case first == nil:
			first = got
		case !slices.Equal(first.Members, got.Members):
			return fmt.Sprintf("replica %d has gone on with %v, and replica %d with %v", left[0], first.Members, r,
				got.Members)
		case first.Steps != got.Steps || first.State != got.State:
			return fmt.Sprintf("replica %d has done %d steps to %#x, and replica %d %d to %#x", left[0], first.Steps,
				first.State, r, got.Steps, got.State)
		}
	}
	return ""
}
