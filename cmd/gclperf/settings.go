package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"gogcl.dev/internal/measure"
)

// The most calls: that warm up, that -c checks before the timed ones and after them, that -sync times.
const (
	maxWarmUp  = 2000
	maxChecked = 1000
	maxSynced  = 200_000
)

// simulatedCalls is -iters on a network on which all calls take as long.
const simulatedCalls = 5

// settings are the flags, parsed and checked.
type settings struct {
	*measure.Settings
	reproducible bool
	places       []measure.Place

	iters int // calls at each size, 0: as many as fit into time
	time  time.Duration
	warm  int // calls before the timed ones, -1: as many as fit into warmUp
	tries int // checked calls before the timed ones, and as many after them
	sync  bool
	dirty bool // also calls before each of which every replica rewrites its input
	batch bool // calls are made by a gcl.Batch

	metrics bool // calls are counted

	format  format
	verbose bool // the table has percentiles and allocations
	cpu     bool // the table has processor times
	svg     string
	out     string // file to append to, "" for none
	floor   []floorPoint
}

// format is how measurements are printed.
type format uint8

const (
	asTable format = iota
	asJSON
	asCSV
	asJSONLines // of -out only
)

// settings checks the flags, of which some were given. job is the number of replicas in the job of this process, 0
// without one.
func (r *raw) settings(given measure.Given, job int) (*settings, error) {
	common, err := r.Settings(given, r.n, job)
	if err != nil {
		return nil, err
	}
	s := &settings{Settings: common, iters: r.iters, time: r.time, reproducible: r.reproducible, sync: r.sync,
		dirty: r.dirty, batch: r.batch, metrics: r.metrics, warm: -1, tries: r.check, verbose: r.verbose, cpu: r.cpu,
		svg: r.svg, out: r.out}
	if s.simulates() && !given.Has("iters") && !given.Has("time") {
		s.iters = simulatedCalls
	}
	if s.places, err = measure.ParsePlaces(r.place); err != nil {
		return nil, err
	}
	switch {
	case r.json && r.csv:
		return nil, errors.New("-json and -csv exclude each other")
	case r.json:
		s.format = asJSON
	case r.csv:
		s.format = asCSV
	}
	return s, s.checkFlags(r, given)
}

// checkFlags looks at the numbers and files.
func (s *settings) checkFlags(r *raw, given measure.Given) error {
	switch {
	case r.check < 0 || r.check > maxChecked:
		return fmt.Errorf("-c %d, want 0 to %d", r.check, maxChecked)
	case given.Has("w") && (r.warm < 0 || r.warm > maxWarmUp):
		return fmt.Errorf("-w %d, want 0 to %d", r.warm, maxWarmUp)
	case r.verbose && (r.json || r.csv):
		return errors.New("-v is for the table: -json and -csv have its columns anyway")
	case r.cpu && (r.json || r.csv):
		return errors.New("-cpu is for the table: -json and -csv have its column anyway")
	case given.Has("iters") && r.iters < 1:
		return fmt.Errorf("-iters %d, want 1 or more", r.iters)
	case r.sync && r.iters > maxSynced:
		return fmt.Errorf("-iters %d, want %d at most with -sync", r.iters, maxSynced)
	case given.Has("iters") && given.Has("time"):
		return errors.New("-iters and -time exclude each other")
	case r.time <= 0:
		return fmt.Errorf("-time %v, want more than 0", r.time)
	case given.Has("svg") && r.svg == "":
		return errors.New("-svg has no name of a file")
	case given.Has("out") && r.out == "":
		return errors.New("-out has no name of a file")
	case given.Has("floor") && s.Processes:
		return errors.New("-floor is that of one address space, want -transport inproc")
	case given.Has("floor") && r.svg == "":
		return errors.New("-floor is drawn by -svg only")
	}
	if given.Has("w") {
		s.warm = r.warm
	}
	if given.Has("floor") {
		text, err := os.ReadFile(r.floor)
		if err != nil {
			return fmt.Errorf("-floor: %w", err)
		}
		if s.floor, err = parseFloor(string(text)); err != nil {
			return fmt.Errorf("-floor %s: %w", r.floor, err)
		}
	}
	return nil
}

// flags are the settings that a measurement has no field for, as they are given.
func (s *settings) flags() string {
	out := fmt.Sprint("-time ", s.time)
	if s.iters > 0 {
		out = fmt.Sprint("-iters ", s.iters)
	}
	if s.warm >= 0 {
		out += fmt.Sprint(" -w ", s.warm)
	}
	out += fmt.Sprint(" -c ", s.tries)
	if s.simulates() {
		out += " -network " + s.On
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"-sync", s.sync}, {"-dirty", s.dirty}, {"-batch", s.batch}, {"-metrics", s.metrics},
		{"-reproducible", s.reproducible},
	} {
		if f.set {
			out += " " + f.name
		}
	}
	return out
}

// simulates reports whether the replicas are on a network of -network.
func (s *settings) simulates() bool { return s.Settings != nil && s.Network.Network != nil }
