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

// TestTaken: the median over parts of what was used between two readings. What the reading itself used is not in it.
func TestTaken(t *testing.T) {
	readings := []reading{{0, 1, 10}, {3, 3.5, 20}, {9.5, 20, 21}, {28, 29, 51}}
	var all []taken
	for i, r := range readings[1:] {
		all = append(all, readings[i].until(r, 2))
	}
	if got, want := medianTaken(all), (taken{allocs: 5, cpu: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	unknown := reading{-1, -1, 52}
	for _, u := range []taken{readings[3].until(unknown, 1), unknown.until(reading{50, 50, 53}, 1)} {
		if want := (taken{allocs: 1, unknown: 1}); u != want {
			t.Errorf("%+v, want %+v", u, want)
		}
	}
	if got := medianTaken(append(all, readings[3].until(reading{-1, -1, 52}, 1))); got.unknown != 1 {
		t.Errorf("%+v", got)
	}
}
