package main

import (
	"fmt"
	"time"

	"gogcl.dev/ir"
)

// speed is how many images the replicas have trained on, in which time, and how much of that they did not compute but
// communicate.
type speed struct {
	images        int
	took          time.Duration
	communication float64 // the part of the replicas' time, from 0 to 1
}

func (s *speed) add(images int, took time.Duration) {
	s.images += images
	s.took += took
}

// String is short enough for a status line on a terminal of 80 columns.
func (s speed) String() string {
	return fmt.Sprintf("%.0f samples/s  %.0f%% communication", float64(s.images)/s.took.Seconds(), 100*s.communication)
}

// communication is the part of the replicas' time that they spend in collectives, or waiting for those that run
// beside them; waiting for each other is part of it.
func communication(of ir.Profile) float64 {
	var all, talking time.Duration
	for _, r := range of.Replicas {
		for kind, took := range r.Time {
			all += took
			if kind == "collective" || kind == "wait" {
				talking += took
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(talking) / float64(all)
}
