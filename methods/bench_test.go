package methods_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// large is an all-reduce of many ranks, on the ring 0, 1, 2, ....
func large(m methods.Method, n int) methods.Spec {
	s := methods.Spec{Method: m, Collective: schedule.AllReduce, Size: n}
	if m.Rings() > 0 {
		s.Ring = make([]int, n)
		for i := range s.Ring {
			s.Ring[i] = i
		}
	}
	return s
}

// sweep runs a benchmark for each method and size.
func sweep(b *testing.B, run func(b *testing.B, s methods.Spec)) {
	for _, c := range []struct {
		method methods.Method
		sizes  []int
	}{
		{methods.ClockwiseRing, []int{128, 256, 512, 1024}},
		{methods.RecursiveDoubling, []int{1024, 4096, 16384, 65536}},
	} {
		for _, n := range c.sizes {
			b.Run(fmt.Sprintf("method=%v/n=%d", c.method, n), func(b *testing.B) {
				b.ReportAllocs()
				run(b, large(c.method, n))
			})
		}
	}
}

// BenchmarkCheck proves an all-reduce that is in memory. heap-MiB is what the heap holds at the end of a check, the
// schedule and garbage included.
func BenchmarkCheck(b *testing.B) {
	sweep(b, func(b *testing.B, spec methods.Spec) {
		s, err := methods.Build(spec)
		if err != nil {
			b.Fatal(err)
		}
		measured(b, func() error { return schedule.Check(s) })
	})
}

// BenchmarkExamine makes an all-reduce a rank at a time and proves it. One run of it in a process of its own shows how
// much memory a proof takes:
//
//	go test -c -o methods.test ./methods
//	/usr/bin/time -v ./methods.test -test.run '^$' -test.bench 'Examine/method=clockwise_ring/n=1024' -test.benchtime 1x
func BenchmarkExamine(b *testing.B) {
	sweep(b, func(b *testing.B, spec methods.Spec) {
		measured(b, func() error {
			_, err := methods.Examine(spec)
			return err
		})
	})
}

// measured runs do again and again, beginning each time with a heap that has no garbage.
func measured(b *testing.B, do func() error) {
	heap := uint64(0)
	for b.Loop() {
		b.StopTimer()
		debug.FreeOSMemory()
		b.StartTimer()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap = max(heap, m.HeapSys-m.HeapReleased)
		b.StartTimer()
	}
	b.ReportMetric(float64(heap)/(1<<20), "heap-MiB")
}
