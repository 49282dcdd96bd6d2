package main

import (
	"math"
	"testing"
	"time"
)

func TestBusFactor(t *testing.T) {
	for _, c := range []struct {
		collective collective
		n          int
		want       float64
	}{
		{allReduce, 1, 0}, {allReduce, 2, 1}, {allReduce, 8, 1.75},
		{reduceScatter, 2, .5}, {reduceScatter, 8, .875}, {allGather, 4, .75}, {allToAll, 4, .75},
		{broadcast, 1, 1}, {broadcast, 8, 1}, {reduce, 1, 1}, {reduce, 8, 1}, {gather, 4, .75}, {scatter, 4, .75},
	} {
		if got := c.collective.busFactor(c.n); got != c.want {
			t.Errorf("%v over %d: %v, want %v", c.collective, c.n, got, c.want)
		}
	}
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		q, want float64
		sorted  []float64
	}{
		{.5, 3, []float64{3}}, {.99, 3, []float64{3}}, {.5, 1.5, []float64{1, 2}}, {.5, 2, []float64{1, 2, 9}}, {1, 9, []float64{1, 2, 9}}, {0, 1, []float64{1, 2, 9}},
		{.9, 9, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
	} {
		if got := quantile(c.sorted, c.q); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v of %v: %v, want %v", c.q, c.sorted, got, c.want)
		}
	}
}

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

func TestFillAndCompare(t *testing.T) {
	block := make([]byte, period*4)
	for i := range block {
		block[i] = byte(i * i * 7 >> 3)
	}
	for _, n := range []int{0, 1, 4092, 4093, 4094, 10000} {
		for _, first := range []int{0, 1, 4092, 4093, 5000} {
			buf := make([]byte, n*4)
			fill(buf, block, 4, first)
			for i := range n {
				if at := (first + i) % period * 4; string(buf[i*4:i*4+4]) != string(block[at:at+4]) {
					t.Fatalf("%d elements from %d: element %d", n, first, i)
				}
			}
			if wrong, _ := compare(buf, block, 4, first); wrong != 0 {
				t.Fatalf("%d elements from %d: %d wrong", n, first, wrong)
			}
			for _, i := range []int{0, n / 2, n - 1} {
				if n == 0 {
					continue
				}
				buf[i*4+3] ^= 1
				if wrong, where := compare(buf, block, 4, first); wrong != 1 || where != i {
					t.Fatalf("%d elements from %d: %d wrong at %d, want one at %d", n, first, wrong, where, i)
				}
				buf[i*4+3] ^= 1
			}
		}
	}
}
