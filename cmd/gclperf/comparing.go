package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// comparison is what -tune and -sweep are to do beside what the other settings say.
type comparison struct {
	counts []int  // of replicas, one after the other
	file   string // of -tune; "": it is a sweep
	passes int
	limit  time.Duration // of all of it, or of the part in this process
}

// What -tune and -sweep take where the flag is not given; -tune takes all collectives. The numbers of replicas are
// powers of two, and some between, which methods by powers of two find harder.
var (
	usualCounts      = counts{2, 3, 4, 6, 8, 12, 16}
	usualCollectives = []collective{collective(schedule.AllReduce), collective(schedule.ReduceScatter),
		collective(schedule.AllGather), collective(schedule.AllToAll), collective(schedule.Broadcast)}
)

const (
	usualLargest = 8 << 20
	usualFactor  = 4
	usualTime    = 10 * time.Millisecond
	mostPasses   = 100
)

// comparedFlags are the flags that -tune and -sweep know.
var comparedFlags = []string{"tune", "sweep", "passes", "limit", "collective", "n", "transport", "method",
	"implementation", "dtype", "op", "root", "min", "max", "factor", "sizes", "time"}

// partOf is set in the environment of the processes that -tune and -sweep start. Its value is how long they have.
const partOf = "GCLPERF_LIMIT"

// comparing checks the flags of -tune and -sweep. job is the number of replicas of this process's job, 0 without one.
func (r *raw) comparing(given givenFlags, job int) (*settings, error) {
	mode := "-sweep"
	if given.has("tune") {
		mode = "-tune"
	}
	c := &comparison{counts: r.counts, file: r.tune, passes: r.passes, limit: r.limit}
	switch {
	case r.tune != "" && r.sweep:
		return nil, errors.New("-tune and -sweep exclude each other")
	case given.has("tune") && r.tune == "":
		return nil, errors.New("-tune has no name of a file")
	case r.passes < 1 || r.passes > mostPasses:
		return nil, fmt.Errorf("-passes %d, want 1 to %d", r.passes, mostPasses)
	case r.limit <= 0:
		return nil, fmt.Errorf("-limit %v, want more than 0", r.limit)
	}
	for name := range given {
		if !slices.Contains(comparedFlags, name) {
			return nil, fmt.Errorf("%s does not go with %s, which takes -%s", given.as(name), mode,
				strings.Join(comparedFlags[2:], ", -"))
		}
	}
	limit, started := os.LookupEnv(partOf)
	if job > 0 {
		var err error
		if c.limit, err = time.ParseDuration(limit); !started || err != nil {
			return nil, fmt.Errorf("%s starts jobs of several numbers of replicas itself: start gclperf by itself", mode)
		}
	}
	usual := *r
	if !given.has("n") {
		c.counts = usualCounts
	}
	usual.n, usual.place, usual.check = slices.Max(c.counts), outOfPlace.String(), 1
	if job > 0 {
		usual.n = job
	}
	if !given.has("max") {
		usual.max = fmt.Sprint(usualLargest)
	}
	if !given.has("factor") {
		usual.factor = usualFactor
	}
	if !given.has("time") {
		usual.time = usualTime
	}
	s := &settings{root: r.root, time: usual.time, warm: -1, tries: 1, compares: c}
	checked := maps.Clone(given)
	if job > 0 {
		delete(checked, "n")
	}
	if s, err := usual.plain(s, checked, job); err != nil {
		return s, err
	}
	return s, s.choices(given)
}

// choices completes the settings of a comparison: what the flags leave open.
func (s *settings) choices(given givenFlags) error {
	c := s.compares
	if !given.has("collective") {
		s.collectives = usualCollectives
		if c.file != "" {
			s.collectives = allCollectives()
		}
	}
	if !given.has("method") {
		s.methods = methods.All()
		slices.SortStableFunc(s.methods, func(a, b methods.Method) int { // of those that are alike the simpler one
			return cmp.Compare(a.Rings(), b.Rings())
		})
	}
	if !given.has("implementation") && !s.processes {
		s.implementations = []gcl.Implementation{gcl.Syncless, gcl.Syncful}
	}
	if err := once("-n", c.counts); err != nil {
		return err
	}
	slices.Sort(c.counts)
	switch {
	case c.counts[0] < 2:
		return fmt.Errorf("-n %d, want 2 or more: one replica sends nothing", c.counts[0])
	case s.root >= c.counts[0]:
		return fmt.Errorf("%s %d is not a rank of %d replicas", given.as("root"), s.root, c.counts[0])
	}
	for _, m := range s.methods {
		if m == methods.Auto || m == methods.Native {
			return fmt.Errorf("-method %v is not compared: want some of those that make schedules", m)
		}
	}
	for _, i := range s.implementations {
		if i == gcl.Hybrid {
			return errors.New("-implementation Hybrid is not compared: it is for several hosts")
		}
	}
	return nil
}

// refuseGiven is an error if one of some flags is given.
func refuseGiven(given givenFlags, names []string, why string) error {
	for _, name := range names {
		if given.has(name) {
			return fmt.Errorf("%s is %s", given.as(name), why)
		}
	}
	return nil
}
