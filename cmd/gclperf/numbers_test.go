package main

import (
	"math"
	"testing"
	"time"
)

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		s             settings
		each          float64
		calls, spans  int
		about, orMore bool
	}{
		{s: settings{time: 100 * time.Millisecond}, each: 1e-6, calls: 5000, spans: 20},
		{s: settings{time: 100 * time.Millisecond}, each: 1e-7, calls: 20000, spans: 50},
		{s: settings{time: 10 * time.Millisecond}, each: 1e-6, calls: 1000, spans: 10}, // 1 ms at least
		{s: settings{time: 100 * time.Millisecond}, each: .05, calls: 1, spans: 5},
		{s: settings{time: 100 * time.Second}, each: .05, calls: 100, spans: 20},
		{s: settings{time: time.Hour}, each: 1e-6, calls: 20000, spans: 200},
		{s: settings{time: time.Hour, iters: 1}, each: 1e-6, calls: 1, spans: 1},
		{s: settings{time: time.Hour, iters: 20}, each: .05, calls: 1, spans: 20},
		{s: settings{time: time.Hour, iters: 20}, each: 1e-6, calls: 20, spans: 1},
		{s: settings{time: time.Hour, iters: 30}, each: .05, calls: 2, spans: 15},
		{s: settings{time: time.Hour, iters: 100_000}, each: 1e-6, calls: 5000, spans: 20},
		{s: settings{time: 100 * time.Millisecond, sync: true}, each: 1e-3, calls: 1, spans: 100},
		{s: settings{time: 100 * time.Millisecond, sync: true}, each: 1, calls: 1, spans: 7},
		{s: settings{time: time.Hour, sync: true}, each: 1e-6, calls: 1, spans: 200_000},
		{s: settings{time: time.Hour, sync: true, iters: 17}, each: 1e-6, calls: 1, spans: 17},
	} {
		calls, spans := plan(&c.s, c.each)
		if math.Abs(float64(calls-c.calls)) > 1 || math.Abs(float64(spans-c.spans)) > 1 ||
			c.s.iters > 0 && calls*spans < c.s.iters {
			t.Errorf("time %v, iters %d, sync %v, %v s each: %d calls %d times, want %d and %d",
				c.s.time, c.s.iters, c.s.sync, c.each, calls, spans, c.calls, c.spans)
		}
	}
}
