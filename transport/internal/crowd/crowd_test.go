package crowd

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A window is evidence of crowded processors when long waits took a quarter of it and the kernel took processors from
// the process at the rate of crowdedRate. One of the two alone is none: a replica that comes late, or a busy program.
func TestTooMuch(t *testing.T) {
	const took = 10 * time.Millisecond
	for _, test := range []struct {
		waited time.Duration
		taken  int64
		want   bool
	}{
		{took, 100, true},
		{took / 4, 12, true},
		{took/4 - 1, 100, false},
		{took, 11, false},
		{0, 0, false},
	} {
		t.Run(fmt.Sprintf("waited=%v/taken=%d", test.waited, test.taken), func(t *testing.T) {
			w := Window{waited: test.waited, taken: 1000}
			if got := w.tooMuch(took, 1000+test.taken); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// A crowded time lasts 10 ms. One that begins sooner after the last than that lasted is twice as long, up to a second;
// after more time without it is 10 ms again.
func TestCrowdedTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Watch{began: time.Now()}
		lasts := func(want time.Duration) {
			t.Helper()
			c.begin(c.Elapsed(), true)
			time.Sleep(want - time.Nanosecond)
			c.begin(c.Elapsed(), true) // changes nothing
			if !c.Crowded() {
				t.Errorf("over before %v", want)
			}
			time.Sleep(time.Nanosecond)
			if c.Crowded() || c.until.Load() != 0 {
				t.Errorf("not over after %v", want)
			}
		}
		time.Sleep(time.Minute)
		if c.Crowded() {
			t.Error("crowded from the beginning")
		}
		want := minCrowded
		for range 10 {
			lasts(want)
			time.Sleep(want - time.Nanosecond)
			want = min(2*want, maxCrowded)
		}
		if want != maxCrowded {
			t.Fatalf("tried up to %v only", want)
		}
		time.Sleep(time.Nanosecond)
		lasts(minCrowded)
	})
}

// Long waits add up in a window, and a window ends with the first long wait after 5 ms.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Watch{began: time.Now(), taken: Taken}
		w := Window{taken: -1 << 40, counts: true} // so many times were processors taken
		for range 4 {
			from := c.Elapsed()
			time.Sleep(time.Millisecond)
			c.Waited(&w, from)
		}
		if w.began != 0 || w.waited != 4*time.Millisecond || c.Crowded() {
			t.Fatalf("after 4 ms %v of waiting in a window since %v, crowded: %t", w.waited, w.began, c.Crowded())
		}
		from := c.Elapsed()
		time.Sleep(time.Millisecond)
		c.Waited(&w, from)
		if w.began != 5*time.Millisecond || w.waited != 0 || !c.Crowded() {
			t.Errorf("after 5 ms %v of waiting in a window since %v, crowded: %t", w.waited, w.began, c.Crowded())
		}
	})
}

// Readings of one window after the other, and after which of them the processors count as crowded.
func TestReadings(t *testing.T) {
	const ms = time.Millisecond
	type reading struct {
		took, waited time.Duration
		taken        int64
		crowded      bool
	}
	for _, test := range []struct {
		name     string
		readings []reading
	}{
		{"start", []reading{ // the monitor of Go's runtime wakes, and the replicas have not all begun
			{5 * ms, 2 * ms, 42, false}, {5 * ms, 2 * ms, 5, false}, {5 * ms, 0, 1, false}}},
		{"after idling", []reading{ // it does so again
			{5 * ms, 0, 1, false}, {101 * ms, 0, 1, false}, {5 * ms, 2 * ms, 42, false}, {5 * ms, 2 * ms, 5, false}}},
		{"busy", []reading{
			{5 * ms, 2 * ms, 9, false}, {5 * ms, 2 * ms, 9, true}}},
		{"busy after a window that shows nothing", []reading{
			{100 * ms, 0, 0, false}, {5 * ms, 2 * ms, 9, true}}},
		{"busy later", []reading{
			{5 * ms, 0, 9, false}, {500 * ms, 0, 9, false}, {5 * ms, 2 * ms, 9, false}, {5 * ms, 2 * ms, 9, true}}},
		{"a try that fails", []reading{
			{5 * ms, 2 * ms, 9, false}, {5 * ms, 2 * ms, 9, true}, {11 * ms, 0, 9, false}, {5 * ms, 2 * ms, 9, true},
			{150 * ms, 0, 9, false}, {5 * ms, 2 * ms, 9, false}, {5 * ms, 2 * ms, 9, true}}},
		{"a long crowded time", []reading{
			{5 * ms, 2 * ms, 9, false}, {5 * ms, 2 * ms, 9, true}, {11 * ms, 0, 9, false}, {5 * ms, 2 * ms, 9, true},
			{21 * ms, 0, 9, false}, {5 * ms, 2 * ms, 9, true}, {41 * ms, 0, 9, false}, {5 * ms, 2 * ms, 9, true},
			{81 * ms, 0, 9, false}, {5 * ms, 2 * ms, 9, true}, {161 * ms, 0, 9, false}, {5 * ms, 2 * ms, 9, true}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				taken := int64(0)
				c := Watch{began: time.Now(), taken: func() int64 { return taken }}
				w := c.Window()
				for i, r := range test.readings {
					time.Sleep(r.took - r.waited)
					from := c.Elapsed()
					time.Sleep(r.waited)
					taken += r.taken
					c.Waited(&w, from)
					if c.Crowded() != r.crowded {
						t.Fatalf("after reading %d crowded: %t, want %t", i, c.Crowded(), r.crowded)
					}
				}
			})
		})
	}
}
