package ticks

import "time"

var start = time.Now()

// sinceStart is in nanoseconds.
func sinceStart() int64 { return int64(time.Since(start)) }
