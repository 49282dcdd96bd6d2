package bench

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
)

// stagingChoices are options with which fragments can be sent from where they lie, or from a copy.
var stagingChoices = []gcl.Options{{}, {Method: methods.ClockwiseRing}, {Method: methods.QuadDirectionalRing},
	{Method: methods.ClockwiseRing, Implementation: gcl.Syncful}}

// BenchmarkStageFragments compares an all-reduce from where the data lies with one that stages it first, in time and
// in memory: heap-B/replica is by how much more the connection of a replica has on the heap in the end than when it
// was new, beside the caller's data. Since calls allocate nothing once they are warm, that is the peak.
func BenchmarkStageFragments(b *testing.B) {
	const n = 4
	for _, o := range stagingChoices {
		for _, size := range []byteSize{1 << 20, 16 << 20, 16<<20 + 4} {
			for _, o.StageFragments = range []bool{false, true} {
				b.Run(fmt.Sprintf("method=%v/impl=%v/n=%d/size=%v/stage=%v",
					o.Method, o.Implementation, n, size, o.StageFragments), func(b *testing.B) {
					b.SetBytes(int64(size))
					d := newManyData(n, 1, size, true)
					heap, err := d.heap(b, o)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(heap)/n, "heap-B/replica")
				})
			}
		}
	}
}

// heap carries out the calls as run does, and returns by how many bytes the heap has grown, which hold no data of d.
func (d *manyData) heap(l looper, o gcl.Options) (grown int64, err error) {
	p := newPace(d.size())
	err = gcl.Run(context.Background(), d.n, func(ctx context.Context, c *gcl.Comm) error {
		before := c.Rank() == 0
		var start, end runtime.MemStats
		collect := func(into *runtime.MemStats) error {
			if before {
				runtime.GC()
				runtime.GC() // what the first has finalized
				runtime.ReadMemStats(into)
			}
			return c.Barrier(ctx)
		}
		if err := collect(&start); err != nil {
			return err
		}
		do := func() error { return d.call(ctx, c) }
		if err := warmUp(c, do); err != nil {
			return err
		}
		keep := p.follow
		if c.Rank() == 0 {
			keep = func(do func() error) error { return p.lead(l, do) }
		}
		if err := keep(do); err != nil {
			return err
		}
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		if err := collect(&end); err != nil {
			return err
		}
		if c.Rank() == 0 {
			grown = int64(end.HeapAlloc) - int64(start.HeapAlloc)
		}
		return d.check(c.Rank())
	}, gcl.WithOptions(o))
	return grown, err
}

// TestStagingHeap runs the benchmark's body: staging takes about as much memory as the data, and not more.
func TestStagingHeap(t *testing.T) {
	const n, size = 4, 1 << 20
	for _, o := range stagingChoices {
		var heap [2]int64
		for i, stage := range []bool{false, true} {
			o.StageFragments = stage
			var err error
			calls := times(3)
			if heap[i], err = newManyData(n, 1, size, true).heap(&calls, o); err != nil {
				t.Fatal(err)
			}
		}
		if more := (heap[1] - heap[0]) / n; more < size/4 || more > size*3/2 {
			t.Errorf("%v, %v: staging 1 MiB takes %d bytes more a replica: %v", o.Method, o.Implementation, more, heap)
		}
	}
}
