package inproc

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// What the kernel took from the process before an endpoint was made is no evidence of crowded processors.
func TestCrowdBefore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	if runtime.NumCPU() < 2 {
		t.Skip("no replica has a processor of its own")
	}
	synctest.Test(t, func(t *testing.T) {
		e := connect(t, 2)[0]
		c := &e.lane.nw.crowd
		c.Init(func() int64 { return 1 << 40 })
		dup, err := e.Dup(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w := &dup.(*endpoint).window
		for range 2 {
			from := c.Elapsed()
			time.Sleep(5 * time.Millisecond)
			c.Waited(w, from)
		}
		if c.Crowded() {
			t.Error("crowded")
		}
	})
}
