package inproc_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// BenchmarkLate has one replica come a few milliseconds after the others: over-us is how much later than that the
// operation ends, and cpu-us how long all together were at work, waiting included.
func BenchmarkLate(b *testing.B) {
	const late = 3 * time.Millisecond
	for _, n := range []int{2, 8} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			eps, err := inproc.New(n)
			if err != nil {
				b.Fatal(err)
			}
			members := make([]int, n)
			for i := range members {
				members[i] = i
			}
			before := processorTime(b)
			var wg sync.WaitGroup
			for r, e := range eps {
				wg.Go(func() {
					var buf [8]byte
					for i := range b.N {
						if r == i%n {
							time.Sleep(late)
						}
						_, _, err := e.(transport.Boards).Gather(context.Background(), transport.Call{Seq: uint64(i)},
							members, buf[:], 8, sum{})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			each := float64(b.N) * float64(time.Microsecond)
			b.ReportMetric(float64(b.Elapsed())/each-float64(late/time.Microsecond), "over-us")
			b.ReportMetric(float64(processorTime(b)-before)/each, "cpu-us")
		})
	}
}

// processorTime is how long the process has had processors.
func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
