package main

import (
	"fmt"
	"time"
)

// speed is how many images the replicas have trained on, in which time.
type speed struct {
	images int
	took   time.Duration
}

func (s *speed) add(images int, took time.Duration) {
	s.images += images
	s.took += took
}

// String is short enough for a status line on a terminal of 80 columns.
func (s speed) String() string {
	return fmt.Sprintf("%.0f samples/s", float64(s.images)/s.took.Seconds())
}
