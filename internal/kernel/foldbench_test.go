package kernel

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkMany folds n inputs to n outputs, as an all-reduce does, and measures bytes of one output per second:
// p50GB/s is the median of short samples, topGB/s the best of them, which a busy machine spoils least. With two
// threads each does one half, between barriers, as peers/arlimit.c does.
func BenchmarkMany(b *testing.B) {
	for _, n := range []int{2, 4, 8} {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"4KiB", 4 << 10}, {"32KiB", 32 << 10}, {"1MiB", 1 << 20}, {"16MiB", 16 << 20}, {"64MiB", 64 << 20}} {
			buffers := make([][]byte, 2*n)
			for i := range buffers {
				buffers[i] = hugePages(size.bytes)
			}
			loop := Many(Add, Float32)
			for _, place := range []string{"in", "out"} {
				for _, stream := range []bool{false, true} {
					for threads := 1; threads <= 2; threads++ {
						if stream && size.bytes < 1<<20 {
							continue
						}
						b.Run(fmt.Sprintf("inputs=%d/outputs=%d/type=float32/size=%s/place=%s/stream=%v/threads=%d",
							n, n, size.name, place, stream, threads), func(b *testing.B) {
							srcs, dsts := buffers[:n], buffers[n:]
							if place == "in" {
								dsts = srcs
							}
							inHalves(b, threads, dsts, srcs, func(dsts, srcs [][]byte) { loop(dsts, srcs, 1, stream) })
						})
					}
				}
			}
			for _, buffer := range buffers {
				freePages(buffer)
			}
		}
	}
}

// BenchmarkCopy measures bytes copied per second, see sample.
func BenchmarkCopy(b *testing.B) {
	for _, mib := range []int{1, 4, 16, 64} {
		dst, src := hugePages(mib<<20), hugePages(mib<<20)
		for _, stream := range []bool{false, true} {
			b.Run(fmt.Sprintf("size=%dMiB/stream=%v", mib, stream), func(b *testing.B) {
				sample(b, len(dst), func() { Copy(dst, src, stream) })
			})
		}
	}
}

// inHalves samples f on everything, or with two threads on a half each.
func inHalves(b *testing.B, threads int, dsts, srcs [][]byte, f func(dsts, srcs [][]byte)) {
	size := len(dsts[0])
	part := func(buffers [][]byte, i int) (parts [][]byte) {
		for _, x := range buffers {
			parts = append(parts, x[size/threads*i:size/threads*(i+1)])
		}
		return parts
	}
	d, s := part(dsts, 0), part(srcs, 0)
	if threads == 1 {
		sample(b, size, func() { f(d, s) })
		return
	}
	both := newBarrier(2)
	var stop atomic.Bool
	go func() {
		runtime.LockOSThread()
		d, s := part(dsts, 1), part(srcs, 1)
		for both.wait(); !stop.Load(); both.wait() {
			f(d, s)
			both.wait()
		}
	}()
	sample(b, size, func() { both.wait(); f(d, s); both.wait() })
	stop.Store(true)
	both.wait()
}

// sample runs f b.N times and reports how fast it goes through bytes.
func sample(b *testing.B, bytes int, f func()) {
	const short = 20 * time.Microsecond // a sample: long for the clock, short for the scheduler
	batch := 1
	for {
		once := time.Hour
		for range 3 {
			start := time.Now()
			for range batch {
				f()
			}
			once = min(once, time.Since(start))
		}
		if once >= short/2 {
			break
		}
		batch *= 2
	}
	var times []float64
	left := batch
	start := time.Now()
	for b.Loop() {
		f()
		if left--; left == 0 {
			now := time.Now()
			times = append(times, float64(now.Sub(start).Nanoseconds())/float64(batch))
			start, left = now, batch
		}
	}
	if len(times) > 0 {
		slices.Sort(times)
		b.ReportMetric(float64(bytes)/times[len(times)/2], "p50GB/s")
		b.ReportMetric(float64(bytes)/times[0], "topGB/s")
		b.ReportMetric(times[0]/1e3, "top-us")
	}
}

// barrier lets threads that have a processor each meet.
type barrier struct {
	n       int64
	arrived atomic.Int64
	_       [56]byte
	turn    atomic.Int64
}

func newBarrier(n int) *barrier { return &barrier{n: int64(n)} }

func (b *barrier) wait() {
	turn := b.turn.Load()
	if b.arrived.Add(1) == b.n {
		b.arrived.Store(0)
		b.turn.Add(1)
		return
	}
	for i := 0; b.turn.Load() == turn; i++ {
		if i%1000 == 999 {
			runtime.Gosched()
		}
	}
}
