package main

import (
	"testing"
	"testing/fstest"
	"time"

	"gogcl.dev/internal/measure"
)

// TestOrigin: what no field of a measurement has is in the flags and the options that stand beside it.
func TestOrigin(t *testing.T) {
	t.Setenv("GCL_OPTIONS", "{\"method\":\n \"auto\"}")
	s := &settings{time: 20 * time.Millisecond, warm: 5, tries: 2, sync: true, metrics: true, reproducible: true}
	const want = `-time 20ms -w 5 -c 2 -sync -metrics -reproducible GCL_OPTIONS={"method": "auto"}`
	if got := measure.NewOrigin(s.flags(), time.Now()); got.Settings != want {
		t.Errorf("%+v", got)
	}
}

// TestLoad is two programs beside this one, on three processors.
func TestLoad(t *testing.T) {
	at := func(user, idle, steal, own string) cpuTimes {
		return readTimes(fstest.MapFS{
			"proc/stat": {Data: []byte("cpu  " + user + " 10 20 " + idle + " 5 0 0 " + steal + " 7 0\n" +
				"cpu0 1\ncpu1 1\ncpu2 1\nintr 5\n")},
			"proc/self/stat": {Data: []byte("77 (a) b) R 1 1 1 0 -1 4194304 0 0 0 0 " + own + " 9 0 0 20 0 1 0 5 0\n")},
		})
	}
	before, after := at("100", "1000", "0", "50"), at("350", "1040", "10", "150")
	if got := loadOf(before, after, after.own-before.own); got != 1.6 { // 260 busy of 300, 100 our own, in 100 of time
		t.Errorf("%v, want 1.6: %+v, %+v", got, before, after)
	}
	if got := loadOf(before, after, 1000); got != 0 {
		t.Errorf("%v, want 0", got)
	}
	unknown := readTimes(fstest.MapFS{})
	for _, pair := range [][2]cpuTimes{{unknown, after}, {before, unknown}, {after, after}} {
		if got := loadOf(pair[0], pair[1], 0); got != -1 {
			t.Errorf("%+v: %v, want -1", pair, got)
		}
	}
	for _, self := range []string{"", "77 (a) R 1 2", "77 (a) R 1 1 1 0 -1 4194304 0 0 0 0 x 9 0 0"} {
		if got := readTimes(fstest.MapFS{"proc/stat": {Data: []byte("cpu 1 1 1 1 1 1 1 1\ncpu0 1\n")},
			"proc/self/stat": {Data: []byte(self)}}); got.known {
			t.Errorf("%q: %+v", self, got)
		}
	}
}
