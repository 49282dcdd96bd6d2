package cheapest_test

import (
	"fmt"
	"testing"

	"gogcl.dev/internal/cheapest"
	"gogcl.dev/internal/measure"
	"gogcl.dev/methods/schedule"
)

// BenchmarkFirstChoice is what the first choice of a class takes, in time and in that of processors, which tells more
// where others keep them busy.
func BenchmarkFirstChoice(b *testing.B) {
	for _, name := range []string{"fattree:8x8x8", "torus:8x8x8", "open-ladder:512", "fattree:16x16x16",
		"torus:16x16x16", "open-ladder:4096"} {
		for _, c := range []schedule.Collective{schedule.AllReduce, schedule.ReduceScatter, schedule.AllGather,
			schedule.AllToAll, schedule.Broadcast, schedule.Reduce, schedule.Gather, schedule.Scatter} {
			for _, bytes := range []int64{1 << 10, 1 << 20, 1 << 30} {
				b.Run(fmt.Sprintf("network=%s/collective=%v/bytes=%d", name, c, bytes), func(b *testing.B) {
					m := cheapest.NetworkForTests(b, name)
					b.ReportAllocs()
					began := measure.CPUSeconds()
					for b.Loop() {
						cheapest.TableForTests(b, m, cheapest.Group{}).Choose(c, bytes)
					}
					b.ReportMetric((measure.CPUSeconds()-began)*1e3/float64(b.N), "cpu-ms/op")
				})
			}
		}
	}
}

// BenchmarkChoice is a later one.
func BenchmarkChoice(b *testing.B) {
	table := cheapest.TableForTests(b, cheapest.NetworkForTests(b, "torus:4x4"), cheapest.Group{})
	b.ReportAllocs()
	for b.Loop() {
		table.Choose(schedule.AllReduce, 1<<20)
	}
}
