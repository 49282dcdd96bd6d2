package main

import (
	"fmt"
	"time"
)

// speed is how many images the replicas have trained on, in which time, and how much of that they did not compute.
type speed struct {
	replicas int
	images   int
	took     time.Duration
	waiting  float64 // the part of the replicas' time that ir.Profile.Waiting counts
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
