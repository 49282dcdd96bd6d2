package main

import (
	"fmt"
	"time"

	"gogcl.dev/ir"
)

// speed is how many images the replicas have trained on, in which time, and how much of that they did not compute.
type speed struct {
	replicas int
	images   int
	took     time.Duration
	waiting  float64 // the part of the replicas' time, from 0 to 1
}

func (s *speed) add(images int, took time.Duration) {
	s.images += images
	s.took += took
}

// legend explains String.
const legend = "comm+wait: share of time in collectives, waiting for others or for a processor"

// String is short, so that the line it ends fits a terminal of 80 columns. One replica has no one to wait for.
func (s speed) String() string {
	text := fmt.Sprintf("%.0f samples/s", float64(s.images)/s.took.Seconds())
	if s.replicas > 1 {
		text += fmt.Sprintf("  %.0f%% comm+wait", 100*s.waiting)
	}
	return text
}

// waiting is the part of the replicas' time that they spend in collectives, in waiting for those that run beside them,
// and in waiting for each other at the end of a step. That another replica has the processor is part of it.
func waiting(of ir.Profile) float64 {
	var all, waited time.Duration
	for _, r := range of.Replicas {
		for kind, took := range r.Time {
			all += took
			switch kind {
			case "collective", "wait", "finish":
				waited += took
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(waited) / float64(all)
}
